//! Claims in PostgreSQL, for workers on several machines.
//!
//! A claim is a row, durable when its insert is answered. Whether whoever claimed it is still at it is asked of the server, not
//! guessed from the time: each store holds an advisory lock for as long as its connection lives, so a claim without a result
//! whose holder's lock is free is *in doubt*, and one whose holder's lock is taken is *busy*.
//!
//! What must stay true: a claim in doubt is never given to anybody else; an insert without an answer is asked about again under
//! the same number, and counts as ours only if that number stands in the row.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, NoTls, Socket};
use tracing::warn;

use super::{Claim, Error, KEY_BYTES_MAX, Keeping, RESULT_BYTES_MAX, Store};

/// The first half of our advisory locks: "vorr" in ASCII, so that they meet nobody else's.
const LOCK_CLASS: i32 = 0x766f_7272;
/// Claims between two looks at what has expired and how many keys there are.
const CLAIMS_PER_SWEEP: u64 = 1_000;
/// Expired keys removed at a time, so that no sweep holds up a claim for long.
const SWEPT_MAX: i64 = 5_000;
/// How often a claim looks again at a key that others claim and remove at the same moment; then it is busy.
const LOOKS_MAX: usize = 3;

/// Made under a lock, because two that make the same table at once disturb each other.
const SCHEMA: &str = "
BEGIN;
SELECT pg_advisory_xact_lock(1987015282, 0);
CREATE SEQUENCE IF NOT EXISTS vorrang_once_holders AS integer CYCLE;
CREATE TABLE IF NOT EXISTS vorrang_once (
    key text PRIMARY KEY,
    holder integer NOT NULL,
    number bigint NOT NULL,
    expires timestamptz NOT NULL,
    result bytea
);
CREATE INDEX IF NOT EXISTS vorrang_once_expires ON vorrang_once (expires);
COMMIT;
-- A claim that a crash of the server could undo would let its effect happen twice.
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
";
const CLAIM: &str = "
INSERT INTO vorrang_once AS known (key, holder, number, expires)
VALUES ($1, $2, $3, now() + make_interval(secs => $4))
ON CONFLICT (key) DO UPDATE
SET holder = excluded.holder, number = excluded.number, expires = excluded.expires, result = NULL
WHERE known.expires <= now()";
const LOOK: &str = "SELECT holder, number, result FROM vorrang_once WHERE key = $1";
const IS_GONE: &str = "SELECT pg_try_advisory_xact_lock($1, $2)";
const FINISH: &str = "UPDATE vorrang_once SET result = $4 WHERE key = $1 AND holder = $2 AND number = $3";
const RELEASE: &str =
    "DELETE FROM vorrang_once WHERE key = $1 AND holder = $2 AND number = $3 AND result IS NULL";
/// No store is holder 0, so nobody takes such a claim for busy.
const DOUBT: &str =
    "UPDATE vorrang_once SET holder = 0 WHERE key = $1 AND holder = $2 AND number = $3 AND result IS NULL";
const SWEEP: &str =
    "DELETE FROM vorrang_once WHERE key IN (SELECT key FROM vorrang_once WHERE expires <= now() LIMIT $1)";
const COUNT: &str = "SELECT count(*) FROM vorrang_once";

type Connecting = Pin<Box<dyn Future<Output = Result<Client, Error>> + Send>>;

/// A store in a PostgreSQL database, in the table `vorrang_once`, which is made if it is missing. Cheap to clone.
///
/// The connection must be one session: a pooler that gives each transaction another one takes the advisory lock away.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    connect: Box<dyn Fn() -> Connecting + Send + Sync>,
    keeping: Keeping,
    holder: i32,
    numbers: AtomicI64,
    client: tokio::sync::Mutex<Arc<Client>>,
    /// What this process is at, and under which number it claimed it.
    busy: Mutex<BTreeMap<Box<str>, i64>>,
    claims: AtomicU64,
    /// Keys at the last count, and those claimed here since.
    keys: AtomicU64,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("holder", &self.holder).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects without TLS, with a connection string such as `host=db user=worker dbname=jobs` or
    /// `postgresql://worker@db/jobs`.
    pub async fn connect(config: &str, keeping: Keeping) -> Result<PostgresStore, Error> {
        PostgresStore::connect_with(config.parse().map_err(failed)?, NoTls, keeping).await
    }

    /// Connects with the TLS of your choice.
    pub async fn connect_with<T>(config: Config, tls: T, keeping: Keeping) -> Result<PostgresStore, Error>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let connect = move || -> Connecting {
            let (config, tls) = (config.clone(), tls.clone());
            Box::pin(async move {
                let (client, connection) = config.connect(tls).await.map_err(failed)?;
                // It ends when the client is dropped or the server is gone.
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        warn!(%error, "the connection to PostgreSQL ended");
                    }
                });
                client.batch_execute(SCHEMA).await.map_err(failed)?;
                Ok(client)
            })
        };
        let client = connect().await?;
        let holder = client
            .query_one("SELECT nextval('vorrang_once_holders')::integer", &[])
            .await
            .and_then(|row| row.try_get(0))
            .map_err(failed)?;
        hold(&client, holder).await?;
        let store = PostgresStore {
            inner: Arc::new(Inner {
                connect: Box::new(connect),
                keeping,
                holder,
                numbers: AtomicI64::new(0),
                client: tokio::sync::Mutex::new(Arc::new(client)),
                busy: Mutex::default(),
                claims: AtomicU64::new(0),
                keys: AtomicU64::new(0),
            }),
        };
        store.inner.sweep().await?;
        Ok(store)
    }
}

/// Takes the lock that says that this holder lives. Shared, because after a broken connection the old session may still have
/// it for a while.
async fn hold(client: &Client, holder: i32) -> Result<(), Error> {
    let text = "SELECT pg_advisory_lock_shared($1, $2)";
    client.execute(text, &[&LOCK_CLASS, &holder]).await.map(|_| ()).map_err(failed)
}

fn failed(error: tokio_postgres::Error) -> Error {
    Error::Database { source: Box::new(error) }
}

impl Inner {
    /// The connection, a new one if the last has ended.
    async fn client(&self) -> Result<Arc<Client>, Error> {
        let mut client = self.client.lock().await;
        if client.is_closed() {
            let new = (self.connect)().await?;
            hold(&new, self.holder).await?;
            *client = Arc::new(new);
        }
        Ok(Arc::clone(&client))
    }

    /// Does `ask`, and once more on a new connection if the first one broke. What is asked may happen twice.
    async fn twice<T, F, Answer>(&self, ask: F) -> Result<T, Error>
    where
        F: Fn(Arc<Client>) -> Answer,
        Answer: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let client = self.client().await?;
        match ask(Arc::clone(&client)).await {
            Err(error) if client.is_closed() || error.is_closed() => {
                drop(client);
                ask(self.client().await?).await.map_err(failed)
            }
            answer => answer.map_err(failed),
        }
    }

    async fn claim(&self, key: &str, number: i64) -> Result<Claim, Error> {
        let seconds = self.keeping.time_to_live.as_secs_f64();
        for _ in 0..LOOKS_MAX {
            let inserted = self
                .twice(|client| async move {
                    client.execute(CLAIM, &[&key, &self.holder, &number, &seconds]).await
                })
                .await?;
            if inserted > 0 {
                self.keys.fetch_add(1, Ordering::Relaxed);
                return Ok(Claim::New);
            }
            let row = self.twice(|client| async move { client.query_opt(LOOK, &[&key]).await }).await?;
            // Removed in between: it may be free now.
            let Some(row) = row else { continue };
            let holder: i32 = row.try_get(0).map_err(failed)?;
            let by: i64 = row.try_get(1).map_err(failed)?;
            let result: Option<&[u8]> = row.try_get(2).map_err(failed)?;
            return Ok(match result {
                Some(result) => Claim::Done(Bytes::copy_from_slice(result)),
                // The insert had no answer, but it happened.
                None if holder == self.holder && by == number => Claim::New,
                None if holder == self.holder => {
                    if self.busy().get(key) == Some(&by) {
                        Claim::Busy
                    } else {
                        Claim::InDoubt
                    }
                }
                None if self.is_gone(holder).await? => Claim::InDoubt,
                None => Claim::Busy,
            });
        }
        Ok(Claim::Busy)
    }

    async fn is_gone(&self, holder: i32) -> Result<bool, Error> {
        let asked =
            |client: Arc<Client>| async move { client.query_one(IS_GONE, &[&LOCK_CLASS, &holder]).await };
        self.twice(asked).await?.try_get(0).map_err(failed)
    }

    /// Removes what has expired, and counts.
    async fn sweep(&self) -> Result<(), Error> {
        self.twice(|client| async move { client.execute(SWEEP, &[&SWEPT_MAX]).await }).await?;
        let row = self.twice(|client| async move { client.query_one(COUNT, &[]).await }).await?;
        let keys: i64 = row.try_get(0).map_err(failed)?;
        self.keys.store(u64::try_from(keys).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    /// Whether there is room for another key. Other processes' claims are seen at every thousandth of our own.
    async fn check_room(&self) -> Result<(), Error> {
        let full = || {
            usize::try_from(self.keys.load(Ordering::Relaxed)).unwrap_or(usize::MAX) >= self.keeping.keys_max
        };
        if self.claims.fetch_add(1, Ordering::Relaxed) % CLAIMS_PER_SWEEP == CLAIMS_PER_SWEEP - 1 || full() {
            self.sweep().await?;
        }
        if full() { Err(Error::Full { keys: self.keeping.keys_max }) } else { Ok(()) }
    }

    /// Ends what this process was at; under which number it was claimed.
    fn ended(&self, key: &str) -> Option<i64> {
        self.busy().remove(key)
    }

    /// Nothing panics while this is held.
    fn busy(&self) -> MutexGuard<'_, BTreeMap<Box<str>, i64>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim that is being asked for; if it fails or is given up, this process is not at it.
struct Attempt<'a> {
    inner: &'a Inner,
    key: &'a str,
    keep: bool,
}

impl<'a> Attempt<'a> {
    /// None if this process is at it already.
    fn begin(inner: &'a Inner, key: &'a str, number: i64) -> Option<Attempt<'a>> {
        let mut busy = inner.busy();
        if busy.contains_key(key) {
            return None;
        }
        busy.insert(key.into(), number);
        drop(busy);
        Some(Attempt { inner, key, keep: false })
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.keep {
            self.inner.ended(self.key);
        }
    }
}

impl Store for PostgresStore {
    async fn claim(&self, key: &str) -> Result<Claim, Error> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(Error::Key { bytes: key.len() });
        }
        let number = self.inner.numbers.fetch_add(1, Ordering::Relaxed);
        let Some(mut attempt) = Attempt::begin(&self.inner, key, number) else { return Ok(Claim::Busy) };
        self.inner.check_room().await?;
        let claim = self.inner.claim(key, number).await?;
        attempt.keep = claim == Claim::New;
        Ok(claim)
    }

    async fn finish(&self, key: &str, result: Bytes) -> Result<(), Error> {
        if result.len() > RESULT_BYTES_MAX {
            return Err(Error::ResultTooLarge { bytes: result.len() });
        }
        let Some(number) = self.inner.busy().get(key).copied() else { return Err(Error::NotClaimed) };
        let holder = self.inner.holder;
        let written = self
            .inner
            .twice(|client| {
                let result = result.clone();
                async move { client.execute(FINISH, &[&key, &holder, &number, &&*result]).await }
            })
            .await?;
        self.inner.ended(key);
        if written == 0 { Err(Error::NotClaimed) } else { Ok(()) }
    }

    async fn release(&self, key: &str) -> Result<(), Error> {
        let Some(number) = self.inner.busy().get(key).copied() else { return Err(Error::NotClaimed) };
        let holder = self.inner.holder;
        self.inner
            .twice(|client| async move { client.execute(RELEASE, &[&key, &holder, &number]).await })
            .await?;
        self.inner.ended(key);
        Ok(())
    }

    fn doubt(&self, key: &str) {
        let (inner, key) = (Arc::clone(&self.inner), key.to_owned());
        let Some(number) = inner.ended(&key) else { return };
        // Here the key is in doubt from now on; the others learn it, or find it out when our connection ends.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let (key, holder) = (key.as_str(), inner.holder);
            let told =
                inner.twice(|client| async move { client.execute(DOUBT, &[&key, &holder, &number]).await });
            if let Err(error) = told.await {
                warn!(%error, "a claim in doubt could not be marked");
            }
        });
    }
}

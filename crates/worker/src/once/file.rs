//! Claims in one file, for one process: an append log read back at start, compacted when most of it is history.
//!
//! One thread owns file and memory. It takes whatever claims wait, writes them as one frame, syncs once, and
//! answers them all: many handlers share one sync. A failed write or sync is final.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use tokio::sync::{mpsc, oneshot};

use super::frame::{self, FRAME_BYTES_MAX, MAGIC, Read, Record};
use super::{Claim, Error, KEY_BYTES_MAX, Keeping, RESULT_BYTES_MAX, Store};

/// Requests that wait for the thread; more wait at their callers.
const WAITING_MAX: usize = 1_024;
/// A file smaller than this is not worth compacting.
const COMPACT_BYTES_MIN: u64 = 1_024 * 1_024;

/// A store in a file.
#[derive(Debug)]
pub struct FileStore {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl FileStore {
    /// Opens or makes the store at `path`.
    pub fn open(path: &Path, keeping: Keeping) -> Result<FileStore, Error> {
        let ledger = Ledger::open(path, keeping)?;
        let (requests, waiting) = mpsc::channel(WAITING_MAX);
        let thread = thread::Builder::new()
            .name("once-store".to_owned())
            .spawn(move || ledger.run(waiting))
            .map_err(|source| Error::Disk { path: path.to_path_buf(), source })?;
        Ok(FileStore { requests: Some(requests), thread: Some(thread) })
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Request,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let requests = self.requests.as_ref().ok_or(Error::Stopped)?;
        requests.send(request(reply)).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)?
    }
}

impl Store for FileStore {
    async fn claim(&self, key: &str) -> Result<Claim, Error> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(Error::Key { bytes: key.len() });
        }
        self.ask(|reply| Request::Claim { key: key.into(), reply }).await
    }

    async fn finish(&self, key: &str, result: Bytes) -> Result<(), Error> {
        if result.len() > RESULT_BYTES_MAX {
            return Err(Error::ResultTooLarge { bytes: result.len() });
        }
        self.ask(|reply| Request::Finish { key: key.into(), result, reply }).await
    }

    async fn release(&self, key: &str) -> Result<(), Error> {
        self.ask(|reply| Request::Release { key: key.into(), reply }).await
    }

    fn doubt(&self, key: &str) {
        if let Some(requests) = &self.requests {
            // A full or stopped thread leaves the key busy until restart, when it is in doubt anyway.
            let _ = requests.try_send(Request::Doubt { key: key.into() });
        }
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing more to say to anybody.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
enum Request {
    Claim { key: Box<str>, reply: oneshot::Sender<Result<Claim, Error>> },
    Finish { key: Box<str>, result: Bytes, reply: oneshot::Sender<Result<(), Error>> },
    Release { key: Box<str>, reply: oneshot::Sender<Result<(), Error>> },
    Doubt { key: Box<str> },
}

/// An answer that waits for the sync.
enum Promise {
    Claim(oneshot::Sender<Result<Claim, Error>>, Claim),
    Done(oneshot::Sender<Result<(), Error>>),
}

#[derive(Debug, Clone)]
struct Entry {
    expires: u64,
    /// None while the effect has not been reported.
    result: Option<Bytes>,
    /// Whether somebody in this process is at it.
    busy: bool,
}

/// File and memory, owned by one thread.
#[derive(Debug)]
struct Ledger {
    path: PathBuf,
    file: File,
    keeping: Keeping,
    keys: BTreeMap<Box<str>, Entry>,
    /// Keys in the order in which they expire.
    expiring: std::collections::BTreeSet<(u64, Box<str>)>,
    /// The file's length, and how much of it would be left after a compaction.
    bytes: u64,
    live: u64,
}

impl Ledger {
    fn open(path: &Path, keeping: Keeping) -> Result<Ledger, Error> {
        let disk = |source| Error::Disk { path: path.to_path_buf(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(disk)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: path.to_path_buf() }),
            Err(TryLockError::Error(source)) => return Err(disk(source)),
        }
        let bytes = Bytes::from(fs::read(path).map_err(disk)?);
        let mut ledger = Ledger {
            path: path.to_path_buf(),
            file: file.try_clone().map_err(disk)?,
            keeping,
            keys: BTreeMap::new(),
            expiring: std::collections::BTreeSet::new(),
            bytes: 0,
            live: 0,
        };
        if bytes.len() < MAGIC.len() && MAGIC.starts_with(&bytes) {
            // New, or its very first write was torn.
            file.set_len(0).map_err(disk)?;
            file.write_all(MAGIC).map_err(disk)?;
            file.sync_all().map_err(disk)?;
            sync_folder(path).map_err(disk)?;
            ledger.bytes = u64::try_from(MAGIC.len()).unwrap_or(0);
            return Ok(ledger);
        }
        let kept = ledger.replay(&bytes)?;
        if kept < length(bytes.len()) {
            file.set_len(kept).map_err(disk)?;
            file.sync_all().map_err(disk)?;
        }
        ledger.bytes = kept;
        Ok(ledger)
    }

    /// Folds a file's records into memory; returns how much of the file is sound.
    fn replay(&mut self, bytes: &Bytes) -> Result<u64, Error> {
        let path = self.path.clone();
        let damaged = |offset: usize, what| {
            Err(Error::Damaged { path, offset: u64::try_from(offset).unwrap_or(u64::MAX), what })
        };
        if !bytes.starts_with(MAGIC) {
            return damaged(0, "it is not a store of claims");
        }
        let mut offset = MAGIC.len();
        loop {
            match frame::read(&bytes.slice(offset.min(bytes.len())..)) {
                Read::End | Read::Torn => return Ok(length(offset)),
                Read::Damaged(what) => return damaged(offset, what),
                Read::Frame { records, bytes } => {
                    for record in records {
                        self.fold(record, false);
                    }
                    offset = offset.saturating_add(bytes);
                }
            }
        }
    }

    fn fold(&mut self, record: Record, busy: bool) {
        let (key, entry) = match record {
            Record::Claimed { key, expires } => (key, Some(Entry { expires, result: None, busy })),
            Record::Done { key, expires, result } => {
                (key, Some(Entry { expires, result: Some(result), busy: false }))
            }
            Record::Released { key } => (key, None),
        };
        if let Some(old) = self.keys.remove(&key) {
            self.live = self.live.saturating_sub(length(record_of(&key, &old).size()));
            self.expiring.remove(&(old.expires, key.clone()));
        }
        if let Some(entry) = entry {
            self.live = self.live.saturating_add(length(record_of(&key, &entry).size()));
            self.expiring.insert((entry.expires, key.clone()));
            self.keys.insert(key, entry);
        }
    }

    /// Serves requests until the store is dropped or a write fails.
    fn run(mut self, mut waiting: mpsc::Receiver<Request>) {
        while let Some(first) = waiting.blocking_recv() {
            let now = wall_millis();
            self.expire(now);
            let (mut records, mut promises, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
            let mut next = Some(first);
            while let Some(request) = next {
                self.handle(now, request, &mut records, &mut promises);
                bytes = bytes.saturating_add(records.last().map_or(0, Record::size));
                next = if bytes < FRAME_BYTES_MAX / 2 { waiting.try_recv().ok() } else { None };
            }
            let written = if records.is_empty() { Ok(()) } else { self.write(&records) };
            match written {
                Ok(()) => promises.into_iter().for_each(Promise::keep),
                Err(source) => {
                    let path = self.path.clone();
                    if let Some(first) = promises.pop() {
                        first.fail(Error::Disk { path, source });
                    }
                    for promise in promises {
                        promise.fail(Error::Stopped);
                    }
                    return;
                }
            }
        }
    }

    fn handle(&mut self, now: u64, request: Request, records: &mut Vec<Record>, promises: &mut Vec<Promise>) {
        let expires =
            now.saturating_add(u64::try_from(self.keeping.time_to_live.as_millis()).unwrap_or(u64::MAX));
        match request {
            Request::Claim { key, reply } => {
                let claim = match self.keys.get(&key) {
                    Some(Entry { result: Some(result), .. }) => Claim::Done(result.clone()),
                    Some(Entry { busy: true, .. }) => Claim::Busy,
                    Some(_) => Claim::InDoubt,
                    None if self.keys.len() >= self.keeping.keys_max => {
                        // Nobody listens any more: then nothing was promised either.
                        let _ = reply.send(Err(Error::Full { keys: self.keys.len() }));
                        return;
                    }
                    None => {
                        let record = Record::Claimed { key, expires };
                        self.fold(record.clone(), true);
                        records.push(record);
                        Claim::New
                    }
                };
                // A result that is being written in this very frame is not promised before it is on disk.
                promises.push(Promise::Claim(reply, claim));
            }
            Request::Finish { key, result, reply } => {
                let record = Record::Done { key, expires, result };
                self.fold(record.clone(), false);
                records.push(record);
                promises.push(Promise::Done(reply));
            }
            Request::Release { key, reply } => {
                let record = Record::Released { key };
                self.fold(record.clone(), false);
                records.push(record);
                promises.push(Promise::Done(reply));
            }
            Request::Doubt { key } => {
                if let Some(entry) = self.keys.get_mut(&key) {
                    entry.busy = false;
                }
            }
        }
    }

    fn expire(&mut self, now: u64) {
        while let Some((_, key)) = self.expiring.first().filter(|(at, _)| *at <= now).cloned() {
            self.fold(Record::Released { key }, false);
        }
    }

    fn write(&mut self, records: &[Record]) -> io::Result<()> {
        let mut bytes = BytesMut::new();
        frame::put(&mut bytes, records);
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.bytes = self.bytes.saturating_add(length(bytes.len()));
        let mostly_history = self.bytes > COMPACT_BYTES_MIN && self.bytes / 2 > self.live;
        if mostly_history { self.compact() } else { Ok(()) }
    }

    /// Writes what is still known to a new file and puts it in the old one's place.
    fn compact(&mut self) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let mut bytes = BytesMut::from(&MAGIC[..]);
        let mut records = Vec::new();
        let mut size = 0;
        for (key, entry) in &self.keys {
            let record = record_of(key, entry);
            size += record.size();
            records.push(record);
            if size > FRAME_BYTES_MAX / 2 {
                frame::put(&mut bytes, &records);
                records.clear();
                size = 0;
            }
        }
        frame::put(&mut bytes, &records);
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(&beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        drop(file);
        let file = OpenOptions::new().read(true).append(true).open(&beside)?;
        file.try_lock().map_err(|_| io::Error::other("the new file is in use"))?;
        fs::rename(&beside, &self.path)?;
        sync_folder(&self.path)?;
        self.file = file;
        self.bytes = length(bytes.len());
        Ok(())
    }
}

impl Promise {
    /// The listener may have gone; then nobody needs the answer.
    fn keep(self) {
        match self {
            Promise::Claim(reply, claim) => drop(reply.send(Ok(claim))),
            Promise::Done(reply) => drop(reply.send(Ok(()))),
        }
    }

    fn fail(self, error: Error) {
        match self {
            Promise::Claim(reply, _) => drop(reply.send(Err(error))),
            Promise::Done(reply) => drop(reply.send(Err(error))),
        }
    }
}

fn record_of(key: &str, entry: &Entry) -> Record {
    match &entry.result {
        None => Record::Claimed { key: key.into(), expires: entry.expires },
        Some(result) => Record::Done { key: key.into(), expires: entry.expires, result: result.clone() },
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn wall_millis() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::super::{Failed, Once, once};
use super::*;

fn open(path: &Path) -> FileStore {
    FileStore::open(path, Keeping::default()).unwrap()
}

async fn paid(store: &FileStore, key: &str) -> Result<Once, Failed<&'static str>> {
    once(store, key, async { Ok(Bytes::from_static(b"paid")) }).await
}

fn result() -> Bytes {
    Bytes::from_static(b"paid")
}

#[tokio::test]
async fn an_effect_happens_once_and_its_result_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claims");
    let store = open(&path);
    assert_eq!(paid(&store, "a").await.unwrap(), Once::Performed(result()));
    assert_eq!(paid(&store, "a").await.unwrap(), Once::Already(result()));
    drop(store);
    let store = open(&path);
    assert_eq!(paid(&store, "a").await.unwrap(), Once::Already(result()));
    assert_eq!(paid(&store, "b").await.unwrap(), Once::Performed(result()));
}

#[tokio::test]
async fn an_effect_that_did_not_happen_may_be_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("claims"));
    let outcome = once(&store, "a", async { Err::<Bytes, _>("declined") }).await;
    assert!(matches!(outcome, Err(Failed::Effect("declined"))));
    assert_eq!(paid(&store, "a").await.unwrap(), Once::Performed(result()));
}

#[tokio::test]
async fn a_claim_without_a_report_is_in_doubt_here_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claims");
    let store = open(&path);
    assert_eq!(store.claim("a").await.unwrap(), Claim::New);
    assert_eq!(paid(&store, "a").await.unwrap(), Once::Busy, "somebody is at it");
    let dropped = once(&store, "b", async {
        std::future::pending::<()>().await;
        Ok::<_, ()>(Bytes::new())
    });
    assert!(tokio::time::timeout(Duration::from_millis(50), dropped).await.is_err());
    assert_eq!(paid(&store, "b").await.unwrap(), Once::InDoubt, "its future was dropped");
    drop(store);
    let store = open(&path);
    assert_eq!(paid(&store, "a").await.unwrap(), Once::InDoubt);
    store.release("a").await.unwrap();
    assert_eq!(paid(&store, "a").await.unwrap(), Once::Performed(result()), "somebody looked and decided");
}

/// The process may die at any byte: what was answered is known, and nothing is known that was not asked.
#[tokio::test]
async fn a_file_cut_at_any_byte_knows_every_answer_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claims");
    let store = open(&path);
    let mut answered = Vec::new();
    for number in 0..5 {
        let key = format!("k{number}");
        assert_eq!(store.claim(&key).await.unwrap(), Claim::New);
        answered.push((fs::metadata(&path).unwrap().len(), key.clone(), Claim::InDoubt));
        store.finish(&key, result()).await.unwrap();
        answered.push((fs::metadata(&path).unwrap().len(), key, Claim::Done(result())));
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        let copy = folder.path().join("copy");
        fs::write(&copy, &whole[..cut]).unwrap();
        let ledger = Ledger::open(&copy, Keeping::default()).unwrap();
        for number in 0..5 {
            let key = format!("k{number}");
            let before = |(length, of, _): &&(u64, String, Claim)| {
                *of == key && *length <= u64::try_from(cut).unwrap()
            };
            let expected = answered.iter().filter(before).map(|(_, _, claim)| claim.clone()).next_back();
            let found = ledger.keys.get(key.as_str()).map(|entry| match &entry.result {
                Some(result) => Claim::Done(result.clone()),
                None => Claim::InDoubt,
            });
            assert_eq!(found, expected, "{key} after a cut at {cut}");
        }
    }
}

#[tokio::test]
async fn damage_before_the_end_is_named_and_nothing_is_forgotten_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claims");
    let store = open(&path);
    for key in ["a", "b"] {
        paid(&store, key).await.unwrap();
    }
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    bytes[MAGIC.len() + 13] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let refused = FileStore::open(&path, Keeping::default());
    assert!(matches!(refused, Err(Error::Damaged { offset: 8, .. })), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), bytes, "the file is left as it is");
    fs::write(&path, b"something else").unwrap();
    assert!(matches!(FileStore::open(&path, Keeping::default()), Err(Error::Damaged { offset: 0, .. })));
}

#[tokio::test]
async fn bounds_refuse_and_time_forgets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claims");
    let store = FileStore::open(&path, Keeping { keys_max: 2, ..Keeping::default() }).unwrap();
    assert!(matches!(FileStore::open(&path, Keeping::default()), Err(Error::InUse { .. })));
    for key in ["a", "b"] {
        paid(&store, key).await.unwrap();
    }
    assert!(matches!(store.claim("c").await, Err(Error::Full { keys: 2 })));
    assert!(matches!(store.claim("").await, Err(Error::Key { bytes: 0 })));
    assert!(matches!(store.claim(&"x".repeat(1_025)).await, Err(Error::Key { bytes: 1_025 })));
    let large = Bytes::from(vec![0; RESULT_BYTES_MAX + 1]);
    assert!(matches!(store.finish("a", large).await, Err(Error::ResultTooLarge { .. })));
    drop(store);
    let store = FileStore::open(&path, Keeping { time_to_live: Duration::ZERO, keys_max: 3 }).unwrap();
    assert_eq!(store.claim("c").await.unwrap(), Claim::New);
    assert_eq!(store.claim("c").await.unwrap(), Claim::New, "its time was over at once");
    assert_eq!(paid(&store, "a").await.unwrap(), Once::Already(result()), "this one has a week");
}

#[tokio::test]
async fn history_is_compacted_away_and_what_is_known_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claims");
    let store = std::sync::Arc::new(open(&path));
    let large = Bytes::from(vec![7; RESULT_BYTES_MAX]);
    for _ in 0..40 {
        store.finish("same", large.clone()).await.unwrap();
    }
    let mut claims = tokio::task::JoinSet::new();
    for number in 0..100 {
        let store = std::sync::Arc::clone(&store);
        claims.spawn(async move { store.claim(&format!("k{number}")).await.unwrap() });
    }
    while let Some(claim) = claims.join_next().await {
        assert_eq!(claim.unwrap(), Claim::New);
    }
    drop(store);
    assert!(fs::metadata(&path).unwrap().len() < 2 * COMPACT_BYTES_MIN);
    let ledger = Ledger::open(&path, Keeping::default()).unwrap();
    assert_eq!(ledger.keys.len(), 101);
    assert_eq!(ledger.keys.get("same").unwrap().result, Some(large));
}

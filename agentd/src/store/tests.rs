//! Claims about the log on disk.

use std::sync::Arc;

use proto::ids::{CallId, JobId, Seq, SessionId, Timestamp};
use proto::request::ApproveMode;

use super::job::JobStart;
use super::{NewRow, NewSession, SessionRow, Store, StoreError};
use crate::store::entry::{Created, Entry, Forked, Settings};

fn row(seq: u64, entry: Entry) -> NewRow {
    NewRow { seq: Seq(seq), at: Timestamp(1_000 + seq), entry: Arc::new(entry), audited: None }
}

fn session(name: Option<&str>) -> NewSession {
    let created = Created {
        cwd: "/w".into(),
        name: name.map(Into::into),
        model: "m".into(),
        provider: "scripted".into(),
        mode: proto::mode::Mode::Plan,
    };
    NewSession {
        id: SessionId::new(),
        name: name.map(Into::into),
        cwd: "/w".into(),
        created_at: Timestamp(1),
        spec: "{}".into(),
        first: row(1, Entry::Created(created)),
    }
}

fn notice(text: &str) -> Entry {
    Entry::Notice { text: text.into() }
}

#[tokio::test]
async fn what_was_acknowledged_is_read_back_by_the_next_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let new = session(Some("one"));
    let id = new.id;
    {
        let store = Store::open(&path, Box::new(drop)).unwrap();
        store.create(new).await.unwrap();
        let done = store.append(id, vec![row(2, notice("a")), row(3, notice("b"))]).await.unwrap();
        done.await.unwrap().unwrap();
    }
    let store = Store::open(&path, Box::new(drop)).unwrap();
    let sessions = store.sessions().await.unwrap();
    assert_eq!((sessions[0].id, sessions[0].head), (id, Seq(3)));
    let rows = store.rows(id, Seq(1), 10).await.unwrap();
    assert_eq!(rows.iter().map(|r| r.entry.clone()).collect::<Vec<_>>(), [notice("a"), notice("b")]);
}

#[tokio::test]
async fn a_position_is_never_used_twice() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("a.db"), Box::new(drop)).unwrap();
    let new = session(None);
    let id = new.id;
    store.create(new).await.unwrap();
    let done = store.append(id, vec![row(2, notice("a"))]).await.unwrap();
    done.await.unwrap().unwrap();
    let again = store.append(id, vec![row(2, notice("b"))]).await.unwrap();
    assert!(again.await.unwrap().is_err());
    assert_eq!(store.rows(id, Seq(1), 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_bad_job_does_not_fail_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("a.db"), Box::new(drop)).unwrap();
    let new = session(None);
    let id = new.id;
    store.create(new).await.unwrap();
    let good = store.append(id, vec![row(2, notice("good"))]).await.unwrap();
    let bad = store.append(SessionId::new(), vec![row(1, notice("no such session"))]).await.unwrap();
    let also = store.append(id, vec![row(3, notice("good"))]).await.unwrap();
    assert!(good.await.unwrap().is_ok());
    assert!(bad.await.unwrap().is_err());
    assert!(also.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_name_is_unique_among_sessions_in_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("a.db"), Box::new(drop)).unwrap();
    store.create(session(Some("x"))).await.unwrap();
    assert!(matches!(store.create(session(Some("x"))).await, Err(StoreError::NameTaken)));
}

#[tokio::test]
async fn a_database_of_a_later_release_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    drop(Store::open(&path, Box::new(drop)).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert!(matches!(Store::open(&path, Box::new(drop)), Err(StoreError::Newer { version: 99, .. })));
}

#[tokio::test]
async fn the_database_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let store = Store::open(&path, Box::new(drop)).unwrap();
    store.create(session(None)).await.unwrap();
    for name in ["a.db", "a.db-wal"] {
        let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// A fork takes the rows of jobs over, and the other session's jobs do not run in it.
#[tokio::test]
async fn a_session_rests_when_its_own_jobs_are_over() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("a.db"), Box::new(drop)).unwrap();
    let (source, copy) = (session(None), session(None));
    let (id, fork) = (source.id, copy.id);
    store.create(source).await.unwrap();
    let settled = || Entry::SettingsChanged {
        settings: Settings { model: "m".into(), effort: None, max_tokens: 1 },
        by: "me".into(),
    };
    let done = store.append(id, vec![row(2, Entry::JobStarted(job())), row(3, settled())]).await.unwrap();
    done.await.unwrap().unwrap();
    let entry = Entry::Forked(Forked { from: id, at: Seq(3), by: "me".into(), note: String::new() });
    store.fork(id, Seq(3), NewSession { first: row(4, entry), ..copy }).await.unwrap();
    let open = |rows: Vec<SessionRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(open(store.unsettled().await.unwrap()), [id]);
    let done = store.append(fork, vec![row(5, Entry::JobStarted(job())), row(6, settled())]).await.unwrap();
    done.await.unwrap().unwrap();
    assert_eq!(open(store.unsettled().await.unwrap()), [id, fork], "its own job counts");
}

fn job() -> JobStart {
    JobStart {
        job: JobId::new(),
        call: CallId::new(),
        command: "sleep 9".into(),
        description: String::new(),
        cwd: "/w".into(),
        started_at: Timestamp(1),
        deadline_ms: 1,
        silence_ms: 0,
        shim: None,
        approve: ApproveMode::Ask,
        moved: false,
    }
}

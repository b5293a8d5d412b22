//! For any bytes and any edit that applies: bytes outside of the edit are the same, the edit is what the definition says,
//! and undo brings back the bytes and the mode. Checked against a definition so plain that it is slow.
//!
//! `EDIT_CASES` says how many edits (2,500); each run makes others, and `AGENTD_SEED` makes a run's again.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proto::shim::files::{Apply, Fault, FileOp, FileReply, Insert, Mode, StrReplace, Undo};
use shim::files::Files;

/// Edits without `EDIT_CASES`.
const CASES: u32 = 10_000;

/// A seed from the environment, to repeat a failure, or a fresh one.
fn seed() -> [u8; 32] {
    let number = match std::env::var("AGENTD_SEED") {
        Ok(text) => text.parse().expect("AGENTD_SEED is a number"),
        Err(_) => uuid::Uuid::new_v4().as_u128(),
    };
    println!("AGENTD_SEED={number}");
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(&number.to_le_bytes());
    seed
}

/// Pieces of which files are made: everything that editors get wrong.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(b"\n".to_vec()),
        3 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(b"\xEF\xBB\xBF".to_vec()),
        1 => Just(b"\xE9".to_vec()),
        1 => Just("é✓".as_bytes().to_vec()),
        1 => Just(b"\t ".to_vec()),
        6 => "[ab]{1,2}".prop_map(String::into_bytes),
        2 => "[c-z]{1,3}".prop_map(String::into_bytes),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![Just("\n".to_owned()), Just("\r\n".to_owned()), Just("é".to_owned()), "[ab]{1,2}", "[x-z]"];
    proptest::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

#[derive(Clone, Debug)]
struct Wish {
    bytes: Vec<u8>,
    mode: u32,
    /// Where the wanted text is cut out of the file, in thousandths.
    cut: (usize, usize),
    new: String,
    /// Insert instead, after this many thousandths of the lines.
    insert: Option<usize>,
}

fn wish() -> impl Strategy<Value = Wish> {
    let bytes = proptest::collection::vec(piece(), 0..14).prop_map(|pieces| pieces.concat());
    let mode = prop_oneof![Just(0o644), Just(0o600), Just(0o755), Just(0o4711)];
    let insert = proptest::option::weighted(0.3, 0..1000_usize);
    (bytes, mode, (0..1000_usize, 0..1000_usize), text(), insert).prop_map(|(bytes, mode, cut, new, insert)| Wish {
        bytes,
        mode,
        cut,
        new,
        insert,
    })
}

fn folded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, byte) in bytes.iter().enumerate() {
        if !(*byte == b'\r' && bytes.get(index + 1) == Some(&b'\n')) {
            out.push(*byte);
        }
    }
    out
}

/// Every place of the wanted text, by trying all of them; none starts or ends inside of a CRLF.
fn places(bytes: &[u8], wanted: &str) -> Vec<(usize, usize)> {
    let wanted = folded(wanted.as_bytes());
    let inside = |at: usize| at > 0 && bytes.get(at) == Some(&b'\n') && bytes[at - 1] == b'\r';
    let mut all = Vec::new();
    for start in (0..=bytes.len()).filter(|at| !inside(*at)) {
        for end in (start..=bytes.len()).filter(|at| !inside(*at)) {
            if folded(&bytes[start..end]) == wanted {
                all.push((start, end));
            }
        }
    }
    all
}

/// Whether `after` is `before` with only `start..end` replaced.
fn same_outside(before: &[u8], after: &[u8], start: usize, end: usize) -> bool {
    after.len() >= start + before.len() - end && after.starts_with(&before[..start]) && after.ends_with(&before[end..])
}

fn check_replace(before: &[u8], after: &[u8], old: &str, new: &str) -> Result<(), TestCaseError> {
    let places = places(before, old);
    prop_assert_eq!(places.len(), 1, "applied although not unique");
    let (start, end) = places[0];
    prop_assert!(same_outside(before, after, start, end), "bytes outside changed: {:?}", after);
    let inside = &after[start..after.len() - (before.len() - end)];
    prop_assert_eq!(folded(inside), folded(new.as_bytes()));
    Ok(())
}

fn check_insert(before: &[u8], after: &[u8], line: usize, text: &str) -> Result<(), TestCaseError> {
    let mark = if before.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let at = mark + before[mark..].split_inclusive(|byte| *byte == b'\n').take(line).map(<[u8]>::len).sum::<usize>();
    prop_assert!(same_outside(before, after, at, at), "bytes outside changed: {:?}", after);
    let inside = folded(&after[at..after.len() - (before.len() - at)]);
    let text = folded(text.as_bytes());
    let choices = [text.clone(), [&text[..], b"\n"].concat(), [b"\n", &text[..]].concat()];
    prop_assert!(choices.contains(&inside), "inserted {:?}", inside);
    // Whole lines: the insertion joins neither the line above nor the line below.
    let above_ends = at == mark || before[at - 1] == b'\n' || inside.first() == Some(&b'\n');
    let below_starts = at == before.len() || inside.last() == Some(&b'\n');
    prop_assert!(above_ends && below_starts, "lines were joined");
    Ok(())
}

fn check(files: &mut Files, root: &Path, name: &str, wish: &Wish) -> Result<bool, TestCaseError> {
    let path = root.join(name);
    fs::write(&path, &wish.bytes).expect("write");
    fs::set_permissions(&path, fs::Permissions::from_mode(wish.mode)).expect("mode");
    let mode = || Mode::Apply(Apply::default());
    let lines = folded(&wish.bytes).iter().filter(|byte| **byte == b'\n').count();
    let line = wish.insert.map(|thousandths| thousandths * (lines + 1) / 1000);
    let whole = folded(&wish.bytes);
    let (a, b) = (wish.cut.0 * whole.len() / 1000, wish.cut.1 * whole.len() / 1000 + 1);
    let old = String::from_utf8_lossy(&whole[a.min(b)..b.max(a).min(whole.len())]).into_owned();
    let op = match line {
        Some(line) => {
            let line = i64::try_from(line).expect("small");
            FileOp::Insert(Insert { path: name.to_owned(), line, text: wish.new.clone(), mode: mode() })
        }
        None => FileOp::StrReplace(StrReplace {
            path: name.to_owned(),
            old: old.clone(),
            new: wish.new.clone(),
            mode: mode(),
        }),
    };
    let reply = files.handle(&op, root);
    let after = fs::read(&path).expect("read");
    let bits = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o7777;
    prop_assert_eq!(bits(&path), wish.mode);
    let applied = match reply {
        FileReply::Edited(_) => true,
        FileReply::Error(error) => {
            prop_assert_eq!(&after, &wish.bytes, "a refusal changed something");
            let known = !matches!(error.fault, Fault::System { .. } | Fault::Denied { .. } | Fault::Stale { .. });
            prop_assert!(known, "{:?}", error);
            false
        }
        other => return Err(TestCaseError::fail(format!("{other:?}"))),
    };
    if applied {
        match line {
            Some(line) => check_insert(&wish.bytes, &after, line, &wish.new)?,
            None => check_replace(&wish.bytes, &after, &old, &wish.new)?,
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mode");
        let undo = files.handle(&FileOp::Undo(Undo { steps: 1, newest: None, mode: mode() }), root);
        prop_assert!(matches!(undo, FileReply::Undone(_)), "{:?}", undo);
        prop_assert_eq!(fs::read(&path).expect("read"), wish.bytes.clone());
        prop_assert_eq!(bits(&path), wish.mode);
    }
    fs::remove_file(&path).expect("remove");
    Ok(applied)
}

#[test]
fn bytes_outside_of_an_edit_stay_and_undo_brings_everything_back() {
    // In memory where the system has such a place: each case waits for the disk some four times.
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("base");
    let root = base.path().join("root");
    fs::create_dir(&root).expect("root");
    let files = std::cell::RefCell::new(Files::open(&root, &[], &base.path().join("store")).expect("open"));
    let (applied, number) = (std::cell::Cell::new(0_u32), std::cell::Cell::new(0_u32));
    let cases = std::env::var("EDIT_CASES").map_or(CASES, |text| text.parse().expect("EDIT_CASES is a number"));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed()));
    let result = runner.run(&wish(), |wish| {
        number.set(number.get() + 1);
        let name = format!("f{}", number.get());
        if check(&mut files.borrow_mut(), &root, &name, &wish)? {
            applied.set(applied.get() + 1);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{} of {cases} edits applied", applied.get());
    assert!(applied.get() > cases / 4, "too few edits applied to mean anything: {}", applied.get());
    let left: Vec<_> = fs::read_dir(&root).expect("read").collect();
    assert!(left.is_empty(), "files were left behind: {left:?}");
}

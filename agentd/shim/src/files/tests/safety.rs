//! What a write keeps, whom it asks, and what it leaves behind.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use proto::shim::files::Note;

use super::*;

fn mode(bench: &Bench, name: &str) -> u32 {
    fs::metadata(bench.path(name)).expect("metadata").permissions().mode() & 0o7777
}

fn set_mode(bench: &Bench, name: &str, mode: u32) {
    fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode)).expect("mode");
}

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let (path, name) = (path.to_str().expect("UTF-8"), std::ffi::CString::new(name).expect("no NUL"));
    let path = std::ffi::CString::new(path).expect("no NUL");
    let mut value = vec![0_u8; 256];
    // SAFETY: both names end in NUL and `value` has room for the length given.
    let got = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    value.truncate(usize::try_from(got).ok()?);
    Some(value)
}

fn set_attribute(path: &Path, name: &str, value: &[u8]) {
    let name = std::ffi::CString::new(name).expect("no NUL");
    let path = std::ffi::CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
    // SAFETY: both names end in NUL and `value` is readable for its length.
    let set = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    assert_eq!(set, 0, "setxattr");
}

#[test]
fn modes_and_extended_attributes_are_kept() {
    let mut bench = Bench::new();
    for (number, bits) in [0o600, 0o755, 0o640, 0o2755].into_iter().enumerate() {
        let name = format!("f{number}");
        bench.put(&name, "x\n");
        set_mode(&bench, &name, bits);
        set_attribute(&bench.path(&name), "user.origin", b"here");
        let notes = bench.edit(&replace(&name, "x", "y")).notes;
        assert_eq!(mode(&bench, &name), bits);
        assert_eq!(attribute(&bench.path(&name), "user.origin").as_deref(), Some(&b"here"[..]));
        assert_eq!(notes.contains(&Note::SpecialBits { mode: bits }), bits > 0o777);
    }
}

#[test]
fn a_default_list_of_the_directory_adds_nothing_to_an_edited_file() {
    /// user::rw- user:65534:rwx group::r-- mask::rwx other::r--, as the kernel stores it.
    const DEFAULT: [u8; 44] = [
        2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 7, 0, 254, 255, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, 16, 0,
        7, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255,
    ];
    let mut bench = Bench::new();
    bench.put("f", "x\n");
    set_mode(&bench, "f", 0o640);
    set_attribute(&bench.root(), "system.posix_acl_default", &DEFAULT);
    bench.edit(&replace("f", "x", "y"));
    assert_eq!((attribute(&bench.path("f"), "system.posix_acl_access"), mode(&bench, "f")), (None, 0o640));
    bench.edit(&create("new", "x"));
    assert!(attribute(&bench.path("new"), "system.posix_acl_access").is_some(), "a new file follows its directory");
    bench.edit(&replace("new", "x", "y"));
    assert!(attribute(&bench.path("new"), "system.posix_acl_access").is_some(), "and keeps its list");
}

#[test]
fn other_names_of_a_file_keep_the_old_content() {
    let mut bench = Bench::new();
    bench.put("f", "x\n");
    fs::hard_link(bench.path("f"), bench.base.path().join("other")).expect("link");
    let notes = bench.edit(&replace("f", "x", "y")).notes;
    assert_eq!(notes, [Note::HardLinks { others: 1 }]);
    assert_eq!(fs::read_to_string(bench.base.path().join("other")).expect("read"), "x\n");
}

#[test]
fn the_owner_is_kept() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut bench = Bench::new();
    bench.put("f", "x\n");
    std::os::unix::fs::chown(bench.path("f"), Some(1234), Some(4321)).expect("chown");
    bench.edit(&replace("f", "x", "y"));
    let meta = fs::metadata(bench.path("f")).expect("metadata");
    assert_eq!((meta.uid(), meta.gid()), (1234, 4321));
}

#[test]
fn a_read_only_file_is_refused() {
    if nix::unistd::geteuid().is_root() {
        return;
    }
    let mut bench = Bench::new();
    bench.put("f", "x\n");
    set_mode(&bench, "f", 0o444);
    assert!(matches!(bench.fault(&replace("f", "x", "y")), Fault::Denied { .. }));
}

#[test]
fn a_preview_writes_nothing_and_binds_the_edit_to_what_it_saw() {
    let mut bench = Bench::new();
    bench.put("f", "one\ntwo\n");
    let preview = bench.edit(&replace_in("f", "one", "1", Mode::Preview {}));
    assert!(!preview.applied && bench.text("f") == "one\ntwo\n" && bench.names() == ["f"]);
    let bound = || Mode::Apply(Apply { call: None, expect: Some(preview.basis.clone()) });
    bench.put("f", "one\ntwo\nthree\n");
    assert_eq!(bench.fault(&replace_in("f", "one", "1", bound())), Fault::ChangedSincePreview {});
    bench.put("f", "one\ntwo\n");
    assert_eq!(bench.edit(&replace_in("f", "one", "1", bound())).change, preview.change);
    assert_eq!(bench.text("f"), "1\ntwo\n");
}

#[test]
fn a_preview_binds_the_edit_to_the_file_that_the_path_meant() {
    let mut bench = Bench::new();
    bench.put("a", "x\n");
    bench.put("b", "x\n");
    std::os::unix::fs::symlink("a", bench.path("l")).expect("link");
    let basis = bench.edit(&replace_in("l", "x", "y", Mode::Preview {})).basis;
    fs::remove_file(bench.path("l")).expect("remove");
    std::os::unix::fs::symlink("b", bench.path("l")).expect("link");
    let mode = Mode::Apply(Apply { call: None, expect: Some(basis) });
    assert_eq!(bench.fault(&replace_in("l", "x", "y", mode)), Fault::ChangedSincePreview {});
}

#[test]
fn a_preview_of_a_new_file_makes_no_directory() {
    let mut bench = Bench::new();
    let op = FileOp::Create(Create { path: "a/b/c".into(), text: "x".into(), mode: Mode::Preview {} });
    assert!(bench.edit(&op).change.created);
    assert!(bench.names().is_empty());
}

#[test]
fn a_call_is_applied_once_and_answered_alike_ever_after() {
    let mut bench = Bench::new();
    bench.put("f", "x\n");
    let op = replace_in("f", "x", "xx", apply_as(CallId::new()));
    let first = bench.op(&op);
    assert_eq!(bench.op(&op), first);
    let mut bench = bench.reopened();
    assert_eq!(bench.op(&op), first);
    assert_eq!(bench.text("f"), "xx\n");
}

#[test]
fn a_failed_create_leaves_no_directory_behind() {
    let mut bench = Bench::new();
    let name = "n".repeat(256);
    assert_eq!(bench.fault(&create(&format!("a/b/{name}"), "x")), Fault::NameTooLong {});
    bench.put("f", "x");
    assert!(matches!(bench.fault(&create("f/x", "x")), Fault::NotADirectory { .. }));
    assert_eq!(bench.names(), ["f"]);
}

#[test]
fn create_replaces_only_what_this_session_has_viewed_as_it_is() {
    let mut bench = Bench::new();
    bench.put("f", "old\r\n");
    assert_eq!(bench.fault(&create("f", "new\n")), Fault::Exists {});
    bench.view("f");
    bench.put("f", "changed\r\n");
    assert!(matches!(bench.fault(&create("f", "new\n")), Fault::Stale { change: Some(_) }));
    bench.view("f");
    assert_eq!(bench.edit(&create("f", "new\n")).notes, [Note::LineEndsNow {}]);
    assert_eq!(bench.text("f"), "new\n");
    // Its own edits do not make the session forget what it viewed.
    bench.edit(&replace("f", "new", "newer"));
    bench.edit(&create("f", "newest\n"));
}

#[test]
fn writing_a_new_file_is_not_viewing_it() {
    let mut bench = Bench::new();
    bench.edit(&create("f", "A"));
    assert_eq!(bench.fault(&create("f", "B")), Fault::Exists {});
}

#[test]
fn a_change_elsewhere_is_told_and_does_not_stop_an_exact_match() {
    let mut bench = Bench::new();
    bench.put("f", "a\nb\nc\n");
    bench.view("f");
    bench.put("f", "zero\na\nb\nc\n");
    let notes = bench.edit(&replace("f", "b", "B")).notes;
    assert!(matches!(notes.as_slice(), [Note::ChangedSinceViewed { change: Some(_) }]), "{notes:?}");
    assert_eq!(bench.text("f"), "zero\na\nB\nc\n");
}

#[test]
fn a_change_of_the_very_line_stops_the_edit_and_is_shown() {
    let mut bench = Bench::new();
    bench.put("f", "a\nlimit = 5\nc\n");
    bench.view("f");
    bench.put("f", "a\nlimit = 50\nc\n");
    let fault = bench.fault(&replace("f", "limit = 5", "limit = 7"));
    let Fault::Stale { change: Some(change) } = fault else { panic!("{fault:?}") };
    assert!(change.before.contains("limit = 5\n") && change.after.contains("limit = 50\n"));
    bench.view("f");
    bench.edit(&replace("f", "limit = 5", "limit = 7"));
}

#[test]
fn a_line_number_of_an_older_content_is_refused() {
    let mut bench = Bench::new();
    bench.put("f", "a\nb\n");
    bench.view("f");
    bench.put("f", "zero\na\nb\n");
    assert!(matches!(bench.fault(&insert("f", 1, "x")), Fault::Stale { change: Some(_) }));
    bench.view("f");
    bench.edit(&insert("f", 1, "x"));
    bench.edit(&insert("f", 2, "y"));
    assert_eq!(bench.text("f"), "zero\nx\ny\na\nb\n");
}

#[test]
fn a_miss_after_a_change_shows_the_change() {
    let mut bench = Bench::new();
    bench.put("f", "alpha\nbeta\n");
    bench.view("f");
    bench.put("f", "new\n");
    assert!(matches!(bench.fault(&replace("f", "beta", "B")), Fault::NoMatch { change: Some(_), .. }));
}

#[test]
fn a_file_that_was_never_viewed_may_be_edited_by_a_match() {
    let mut bench = Bench::new();
    bench.put("f", "a\n");
    bench.edit(&replace("f", "a", "b"));
    bench.edit(&insert("f", 1, "c"));
    assert_eq!(bench.text("f"), "b\nc\n");
}

//! Where paths may lead.

use std::os::unix::fs::symlink;

use super::*;

fn link(bench: &Bench, name: &str, target: impl AsRef<Path>) {
    symlink(target, bench.path(name)).expect("link");
}

fn is_outside(fault: &Fault) -> bool {
    matches!(fault, Fault::Outside { .. })
}

#[test]
fn an_absolute_link_that_leads_inside_is_followed() {
    let mut bench = Bench::new();
    bench.put("d/real", "x\n");
    link(&bench, "to-file", bench.path("d/real"));
    link(&bench, "to-dir", bench.path("d"));
    bench.edit(&replace("to-file", "x", "y"));
    bench.edit(&replace("to-dir/real", "y", "z"));
    assert_eq!(bench.text("d/real"), "z\n");
    assert!(bench.path("to-file").is_symlink());
}

#[test]
fn links_that_leave_are_refused_whatever_their_form() {
    let mut bench = Bench::new();
    fs::write(bench.base.path().join("secret"), "secret\n").expect("write");
    link(&bench, "relative", "../secret");
    link(&bench, "absolute", bench.base.path().join("secret"));
    link(&bench, "up", "..");
    link(&bench, "twice", "relative");
    link(&bench, "proc", "/proc/self/root/etc/passwd");
    for path in ["relative", "absolute", "up/secret", "twice", "proc", "up"] {
        let fault = bench.fault(&view(path, None));
        assert!(is_outside(&fault), "{path}: {fault:?}");
        let fault = bench.fault(&create(path, "x"));
        assert!(is_outside(&fault), "{path}: {fault:?}");
    }
}

#[test]
fn a_path_may_go_up_and_come_back() {
    let mut bench = Bench::new();
    bench.put("d/f", "x\n");
    link(&bench, "l", "../root/d");
    for path in ["d/../d/f", "../root/d/f", "l/f", "./d//f"] {
        assert_eq!(bench.view(path).lines, ["x"], "{path}");
    }
    assert!(is_outside(&bench.fault(&view("d/../../f", None))));
    assert!(is_outside(&bench.fault(&view("../../../../../../../etc/passwd", None))));
}

#[test]
fn a_link_inside_a_directory_goes_up_from_where_it_leads() {
    let mut bench = Bench::new();
    bench.put("a/b/f", "inner\n");
    bench.put("a/f", "outer\n");
    link(&bench, "l", "a/b");
    assert_eq!(bench.view("l/../f").lines, ["outer"]);
}

#[test]
fn a_loop_of_links_ends() {
    let mut bench = Bench::new();
    link(&bench, "a", "b");
    link(&bench, "b", "a");
    assert_eq!(bench.fault(&view("a", None)), Fault::LinkLoop {});
}

#[test]
fn a_dangling_link_is_never_created_through() {
    let mut bench = Bench::new();
    link(&bench, "l", "gone");
    link(&bench, "deep", bench.path("no/such"));
    for path in ["l", "l/x", "deep", "deep/", "deep/x"] {
        assert!(matches!(bench.fault(&create(path, "x")), Fault::DanglingLink { .. }), "{path}");
    }
    assert_eq!(bench.names(), ["deep", "l"]);
}

#[test]
fn further_roots_are_reached_by_absolute_paths_and_links() {
    let mut bench = Bench::with_roots(&["more"]);
    let more = bench.base.path().join("more");
    fs::write(more.join("f"), "x\n").expect("write");
    link(&bench, "l", "../more/f");
    bench.edit(&replace("l", "x", "y"));
    let path = more.join("f");
    bench.edit(&replace(path.to_str().expect("UTF-8"), "y", "z"));
    assert_eq!(fs::read_to_string(path).expect("read"), "z\n");
}

#[test]
fn a_root_given_through_a_link_is_known_by_both_names() {
    let base = tempfile::tempdir().expect("base");
    fs::create_dir(base.path().join("real")).expect("dir");
    symlink("real", base.path().join("alias")).expect("link");
    fs::write(base.path().join("real/f"), "x\n").expect("write");
    let mut files = Files::open(&base.path().join("alias"), &[], &base.path().join("store")).expect("open");
    for name in ["alias/f", "real/f"] {
        let path = base.path().join(name);
        let reply = files.handle(&view(path.to_str().expect("UTF-8"), None), base.path());
        assert!(matches!(reply, FileReply::Text(_)), "{name}: {reply:?}");
    }
}

#[test]
fn a_relative_path_starts_at_the_shell_directory_when_that_is_inside() {
    let mut bench = Bench::new();
    bench.put("d/f", "inner\n");
    bench.put("f", "outer\n");
    let (inside, outside) = (bench.path("d"), PathBuf::from("/"));
    let mut first = |cwd: &Path| match bench.files.handle(&view("f", None), cwd) {
        FileReply::Text(view) => view.lines[0].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((first(&inside), first(&outside)), ("inner".to_owned(), "outer".to_owned()));
}

#[test]
fn a_path_as_our_answers_name_it_is_found_from_any_directory() {
    let mut bench = Bench::new();
    bench.put("d/f", "x\n");
    let inside = bench.path("d");
    let FileReply::Edited(edited) = bench.files.handle(&replace("f", "x", "y"), &inside) else { panic!("no edit") };
    let FileReply::Edited(_) = bench.files.handle(&replace(&edited.change.path, "y", "z"), &inside) else {
        panic!("no edit")
    };
    assert_eq!(bench.text("d/f"), "z\n");
    bench.files.handle(&create("d/f", "new\n"), &inside);
    assert_eq!(bench.text("d/d/f"), "new\n", "a new file is made where the shell is");
}

#[test]
fn neither_git_directories_nor_links_into_them_are_written() {
    let mut bench = Bench::new();
    bench.put(".git/config", "[core]\n");
    bench.put("sub/.GIT/config", "[core]\n");
    link(&bench, "l", ".git/config");
    link(&bench, "hooks", ".git");
    for op in [
        replace(".git/config", "core", "x"),
        replace("sub/.GIT/config", "core", "x"),
        replace("l", "core", "x"),
        create("hooks/pre-commit", "x"),
        create(".git/hooks/pre-commit", "x"),
        create("new/.git/config", "x"),
    ] {
        assert!(matches!(bench.fault(&op), Fault::Protected { .. }), "{op:?}");
    }
    assert_eq!(bench.view(".git/config").lines, ["[core]"]);
    assert_eq!(bench.edit(&create(".gitignore", "x")).change.path, ".gitignore");
}

#[test]
fn pipes_and_sockets_are_listed_and_never_opened() {
    let mut bench = Bench::new();
    nix::unistd::mkfifo(&bench.path("pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("fifo");
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("socket")).expect("socket");
    for name in ["pipe", "socket"] {
        for op in [view(name, None), create(name, "x"), replace(name, "a", "b"), insert(name, 0, "x")] {
            assert!(matches!(bench.fault(&op), Fault::NotRegular { .. }), "{op:?}");
        }
    }
}

#[test]
fn nothing_is_expanded_and_no_such_directory_is_made() {
    let mut bench = Bench::new();
    for path in ["~/x", "~", "~root/x", "$HOME/x", "${HOME}/x", "file:///x", "https://example.org/x"] {
        assert_eq!(bench.fault(&create(path, "x")), Fault::NotExpanded {}, "{path}");
    }
    for path in ["$lang/page.tsx", "~backup", "a~", "C:", "x/~/y", "a:/b"] {
        bench.edit(&create(path, "x"));
    }
}

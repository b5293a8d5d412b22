//! File operations as they cross the wire between daemon and shim. A shim outlives upgrades of the daemon, so what one
//! version wrote the next must read: these texts only ever grow.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

use proto::ids::CallId;
use proto::shim::files::{
    Apply, Basis, Create, Digest, Fault, FileError, FileOp, FileReply, Insert, LineRange, Mode, StrReplace, Undo, View,
};

const CALL: &str = "019ad6a5-0000-7000-8000-000000000001";

fn check<T>(value: &T, text: &str)
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    assert_eq!(serde_json::to_string(value).expect("serializes"), text);
    assert_eq!(serde_json::from_str::<T>(text).expect("reads back"), *value);
}

fn replace(mode: Mode) -> FileOp {
    FileOp::StrReplace(StrReplace { path: "a".into(), old: "x".into(), new: "y".into(), mode })
}

#[test]
fn operations_keep_their_form() {
    let range = Some(LineRange { first: 1, last: -1 });
    check(
        &FileOp::View(View { path: "a".into(), range, max_characters: 9 }),
        r#"{"op":"view","path":"a","range":{"first":1,"last":-1},"max_characters":9}"#,
    );
    check(
        &FileOp::Create(Create { path: "a".into(), text: "x".into(), mode: Mode::Preview {} }),
        r#"{"op":"create","path":"a","text":"x","mode":{"mode":"preview"}}"#,
    );
    check(
        &replace(Mode::Apply(Apply::default())),
        r#"{"op":"str_replace","path":"a","old":"x","new":"y","mode":{"mode":"apply","call":null,"expect":null}}"#,
    );
    check(
        &FileOp::Insert(Insert { path: "a".into(), line: 0, text: "x".into(), mode: Mode::Preview {} }),
        r#"{"op":"insert","path":"a","line":0,"text":"x","mode":{"mode":"preview"}}"#,
    );
    check(
        &FileOp::Undo(Undo { steps: 2, newest: None, mode: Mode::Preview {} }),
        r#"{"op":"undo","steps":2,"newest":null,"mode":{"mode":"preview"}}"#,
    );
    check(&FileOp::Changes {}, r#"{"op":"changes"}"#);
}

#[test]
fn conditions_of_a_write_keep_their_form() {
    let call: CallId = CALL.parse().expect("an id");
    let expect = Some(Basis { path: "/w/a".into(), content: Some(Digest("00".into())) });
    check(
        &Mode::Apply(Apply { call: Some(call), expect }),
        &format!(r#"{{"mode":"apply","call":"{CALL}","expect":{{"path":"/w/a","content":"00"}}}}"#),
    );
}

#[test]
fn refusals_keep_their_form() {
    check(
        &FileReply::Error(FileError { path: "a".into(), fault: Fault::ManyMatches { count: 2, lines: vec![1, 7] } }),
        r#"{"reply":"error","path":"a","fault":{"fault":"many_matches","count":2,"lines":[1,7]}}"#,
    );
}

#[test]
fn fields_of_a_later_version_are_skipped_and_those_of_an_earlier_one_may_lack() {
    let later = r#"{"op":"view","path":"a","max_characters":9,"colour":"blue"}"#;
    let read: FileOp = serde_json::from_str(later).expect("reads");
    assert_eq!(read, FileOp::View(View { path: "a".into(), range: None, max_characters: 9 }));
    let earlier = r#"{"op":"str_replace","path":"a","old":"x","new":"y","mode":{"mode":"apply"}}"#;
    let read: FileOp = serde_json::from_str(earlier).expect("reads");
    assert_eq!(read, replace(Mode::Apply(Apply::default())));
}

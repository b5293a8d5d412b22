//! File operations as they cross the wire between daemon and shim. A shim outlives upgrades of the daemon, so what one
//! version wrote the next must read: these texts only ever grow.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

use proto::ids::CallId;
use proto::shim::files::{
    Apply, Basis, Bounds, Create, Digest, Fault, FileError, FileMatches, FileOp, FileReply, Glob, Grep, GrepOutput,
    Insert, LineRange, Looked, MatchLine, Matches, Mode, Paths, SearchLimit, StrReplace, Undo, View,
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

#[test]
fn searches_keep_their_form() {
    let bounds = Bounds { results: 1, bytes: 2, line_bytes: 3, time_ms: 4 };
    let grep = |output| Grep {
        pattern: "x".into(),
        path: Some("a".into()),
        glob: None,
        ignore_case: true,
        multiline: false,
        all: false,
        output,
        bounds,
    };
    check(
        &FileOp::Grep(grep(GrepOutput::Lines { before: 1, after: 2 })),
        r#"{"op":"grep","pattern":"x","path":"a","glob":null,"ignore_case":true,"multiline":false,"all":false,"output":{"output":"lines","before":1,"after":2},"bounds":{"results":1,"bytes":2,"line_bytes":3,"time_ms":4}}"#,
    );
    check(&GrepOutput::Files {}, r#"{"output":"files"}"#);
    check(&GrepOutput::Counts {}, r#"{"output":"counts"}"#);
    check(
        &FileOp::Glob(Glob { pattern: "*.rs".into(), path: None, all: true, bounds }),
        r#"{"op":"glob","pattern":"*.rs","path":null,"all":true,"bounds":{"results":1,"bytes":2,"line_bytes":3,"time_ms":4}}"#,
    );
    let earlier = r#"{"op":"grep","pattern":"x","output":{"output":"files"},"bounds":{"results":1,"bytes":2,"line_bytes":3,"time_ms":4}}"#;
    let read: FileOp = serde_json::from_str(earlier).expect("reads");
    assert_eq!(read, FileOp::Grep(Grep { path: None, ignore_case: false, ..grep(GrepOutput::Files {}) }));
}

#[test]
fn what_a_search_found_keeps_its_form() {
    let line = MatchLine { number: 7, text: "x".into(), is_match: true, cut_before: 0, cut_after: 5 };
    let looked = Looked { files: 1, ignored: 2, hidden: 3, binary: 4, unreadable: 5, too_long: 6 };
    check(
        &FileReply::Matches(Matches {
            path: ".".into(),
            files: vec![FileMatches { path: "a".into(), count: 1, lines: vec![line] }],
            files_total: 8,
            lines_total: 9,
            looked,
            limits: vec![SearchLimit::Results { most: 1 }, SearchLimit::Time { most_ms: 2 }],
        }),
        r#"{"reply":"matches","path":".","files":[{"path":"a","count":1,"lines":[{"number":7,"text":"x","is_match":true,"cut_before":0,"cut_after":5}]}],"files_total":8,"lines_total":9,"looked":{"files":1,"ignored":2,"hidden":3,"binary":4,"unreadable":5,"too_long":6},"limits":[{"limit":"results","most":1},{"limit":"time","most_ms":2}]}"#,
    );
    check(
        &FileReply::Paths(Paths { path: "d".into(), paths: vec!["d/a".into()], total: 1, looked, limits: vec![] }),
        r#"{"reply":"paths","path":"d","paths":["d/a"],"total":1,"looked":{"files":1,"ignored":2,"hidden":3,"binary":4,"unreadable":5,"too_long":6},"limits":[]}"#,
    );
    assert_eq!(
        serde_json::from_str::<SearchLimit>(r#"{"limit":"moonlight","colour":1}"#).expect("reads"),
        SearchLimit::Other
    );
}

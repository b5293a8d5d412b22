//! Claims about inputs and texts of the tools for background commands.

use proto::ids::Timestamp;
use proto::json::JsonText;
use proto::request::ApproveMode;
use proto::shim::outcome::{End, RunEnd};
use serde_json::json;
use uuid::Uuid;

use super::*;

fn input(value: &serde_json::Value) -> JsonText {
    JsonText::from_value(value)
}

fn start_of(command: &str) -> JobStart {
    JobStart {
        job: JobId(Uuid::from_u128(0xab12_cd34)),
        call: CallId(Uuid::nil()),
        command: command.into(),
        description: String::new(),
        cwd: "/w".into(),
        started_at: Timestamp(0),
        deadline_ms: 60_000,
        silence_ms: 90_000,
        shim: None,
        approve: ApproveMode::Ask,
        moved: false,
    }
}

fn end(end: End) -> RunEnd {
    serde_json::from_value(json!({
        "end": "exited", "status": 0, "duration_ms": 12_000, "output_bytes": 5, "output_lines": 1, "head_bytes": 5
    }))
    .map(|read: RunEnd| RunEnd { end, ..read })
    .unwrap()
}

#[test]
fn times_are_bounded_and_defaults_are_kind() {
    let parsed = parse_background(&input(&json!({"command": "make"}))).unwrap();
    assert_eq!((parsed.deadline, parsed.silence), (DEADLINE, None));
    let parsed =
        parse_background(&input(&json!({"command": "make", "deadline_seconds": 1_000_000, "silence_seconds": 9})));
    let parsed = parsed.unwrap();
    assert_eq!((parsed.deadline, parsed.silence), (DEADLINE_MAX, Some(Duration::from_secs(9))));
    for wrong in [json!({}), json!({"command": " "}), json!({"command": "x", "deadline_seconds": 0}), json!([])] {
        assert!(parse_background(&input(&wrong)).is_err(), "{wrong}");
    }
    assert_eq!(parse_output(&input(&json!({}))).unwrap(), JobInput::List);
}

#[test]
fn a_notice_says_whose_it_is_how_the_job_ended_and_what_it_printed_last() {
    let start = start_of("cargo test\nmore");
    let text = report(&start, &end(End::Exited { status: 0 }), b"done\n").text;
    assert_eq!(
        text,
        "[agentd, not the user: background job ab12cd34 (`cargo test…`) ended with exit status 0 after 12 s. Its output:]\n\
         done\n"
    );
    let mut long = end(End::TimedOut { limit_ms: 60_000 });
    (long.output_bytes, long.killed, long.spool) = (9_000, 2, Some("/s/x.out".into()));
    assert_eq!(
        report(&start_of("x"), &long, b"\xA9last\n").text,
        "[agentd, not the user: background job ab12cd34 (`x`) reached its deadline of 1 min and was ended; 2 processes had \
         to be killed after 12 s. The end of its 9000 bytes of output, all of which is in /s/x.out:]\nlast\n"
    );
    let nothing = RunEnd { output_bytes: 0, background: 1, ..end(End::Interrupted {}) };
    assert!(report(&start, &nothing, b"").text.ends_with("1 process that it started goes on; it printed nothing]"));
    assert!(lost(&start, None, b"").text.contains("how far it came is not known; it printed nothing]"));
}

#[test]
fn a_job_is_found_by_digits_however_they_are_written() {
    let info = |id: u128| JobInfo {
        job: JobId(Uuid::from_u128(id)),
        running_ms: 0,
        quiet_ms: 0,
        deadline_ms: 0,
        silent: false,
        output_bytes: 0,
        spool: None,
        processes: 0,
        end: None,
    };
    let jobs = [info(0xab12_cd34), info(0xff12_cd34)];
    for digits in ["ab12cd34", "job ab12cd34", " AB12CD34 ", "00000000-0000-0000-0000-0000ab12cd34"] {
        assert_eq!(find(digits, &jobs).unwrap().job, jobs[0].job, "{digits}");
    }
    assert!(find("cd34", &jobs).unwrap_err().contains("Several"));
    assert!(find("", &jobs).is_err());
}

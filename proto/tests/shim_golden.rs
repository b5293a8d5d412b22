//! Bytes of the shim protocol that must decode for ever: shims outlive upgrades of the daemon.
//!
//! A file under `golden/shim` is what version 1 sent. It must still decode to the same message; it is never rewritten.

#![allow(clippy::expect_used, clippy::cast_possible_truncation, reason = "a test: a failure is to stop it")]

use std::path::PathBuf;

use proto::ids::CallId;
use proto::shim::frame::{BODY_MAX, Decoder, HEADER_MAX, encode};
use proto::shim::outcome::{End, ExitStatus, Renewed, RunEnd, Why};
use proto::shim::reply::{FromShim, Reply};
use proto::shim::request::{Request, ToShim};
use uuid::Uuid;

fn golden(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/shim").join(name);
    if std::env::var_os("WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, bytes).expect("a file");
    }
    std::fs::read(&path).expect("the golden file")
}

fn end() -> RunEnd {
    RunEnd {
        end: End::ShellEnded { status: ExitStatus::Signal(9) },
        duration_ms: 12,
        output_bytes: 3,
        output_lines: 1,
        head_bytes: 3,
        omitted_lines: 0,
        spool: None,
        spool_gap_bytes: 0,
        killed: 2,
        renewed: Some(Renewed {
            why: Why::Ended { status: ExitStatus::Signal(9) },
            cwd: "/w".to_owned(),
            restored: true,
            errexit_dropped: false,
        }),
        limits_hit: Vec::new(),
        builtin_freed: false,
        background: 0,
    }
}

#[test]
fn what_version_1_asked_still_reads() {
    let run = Request::Run { call: CallId(Uuid::nil()), deadline_ms: 5, head_bytes: 6, tail_bytes: 7, offset: 8 };
    let mut bytes = Vec::new();
    encode(&mut bytes, &ToShim { id: 3, request: run }, b"echo hi").expect("a frame");
    let mut decoder = Decoder::default();
    decoder.push(&golden("run.bin", &bytes));
    let frame = decoder.next_frame().expect("a frame").expect("a whole frame");
    assert_eq!(frame.body, b"echo hi");
    let ToShim { id: 3, request: Request::Run { call, deadline_ms: 5, head_bytes: 6, tail_bytes: 7, offset: 8 } } =
        frame.header().expect("a header")
    else {
        panic!("another message");
    };
    assert_eq!(call, CallId(Uuid::nil()));
}

#[test]
fn what_version_1_told_still_reads() {
    let told = FromShim { re: None, reply: Reply::Finished { call: CallId(Uuid::nil()), end: end() } };
    let mut bytes = Vec::new();
    encode(&mut bytes, &told, b"hi\n").expect("a frame");
    let mut decoder = Decoder::default();
    decoder.push(&golden("finished.bin", &bytes));
    let frame = decoder.next_frame().expect("a frame").expect("a whole frame");
    assert_eq!((frame.header::<FromShim>().expect("a header"), frame.body), (told, b"hi\n".to_vec()));
}

#[test]
fn what_a_later_version_says_is_not_an_error() {
    let told: FromShim = serde_json::from_str(r#"{"reply":"applause","loud":true}"#).expect("a header");
    assert_eq!(told.reply, Reply::Unknown);
    let asked: ToShim = serde_json::from_str(r#"{"id":1,"request":"state","colour":"red"}"#).expect("a header");
    assert!(matches!(asked.request, Request::State {}));
}

#[test]
fn hostile_lengths_reserve_nothing_and_are_refused() {
    for (total, header) in
        [(u32::MAX, 0), (u32::MAX, u32::MAX), (3, 0), (4, 1), (100, 200), ((HEADER_MAX + BODY_MAX) as u32 + 5, 0)]
    {
        let mut decoder = Decoder::default();
        decoder.push(&total.to_be_bytes());
        decoder.push(&header.to_be_bytes());
        assert!(decoder.next_frame().is_err(), "{total} {header}");
    }
}

#[test]
fn frames_come_whole_from_any_pieces() {
    let mut bytes = Vec::new();
    for id in 0..20 {
        encode(&mut bytes, &ToShim { id, request: Request::State {} }, &vec![7; id as usize * 100]).expect("a frame");
    }
    for size in [1, 2, 7, 1000] {
        let (mut decoder, mut count) = (Decoder::default(), 0);
        for piece in bytes.chunks(size) {
            decoder.push(piece);
            while let Some(frame) = decoder.next_frame().expect("a frame") {
                assert_eq!(
                    (frame.header::<ToShim>().expect("a header").id, frame.body.len()),
                    (count, count as usize * 100)
                );
                count += 1;
            }
        }
        assert_eq!(count, 20);
    }
}

//! The bytes of the client protocol. They may change only together with `handshake::PROTOCOL`: a new version gets a new
//! folder, and the old one stays as a record. Regenerate with `UPDATE_EXPECT=1`.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fmt::Debug;
use std::fmt::Write as _;

use expect_test::expect_file;
use proto::approval::*;
use proto::command::*;
use proto::diff::*;
use proto::event::*;
use proto::frame;
use proto::handshake::{PROTOCOL, Role};
use proto::ids::*;
use proto::job::*;
use proto::json::JsonText;
use proto::live::*;
use proto::mode::Mode;
use proto::request::*;
use proto::response::*;
use proto::secret::{EnvVars, Secret};
use proto::usage::{DayUsage, TurnUsage, UsageReport};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

fn uuid(n: u128) -> Uuid {
    Uuid::from_u128(0x0193_a5b2_7c3d_7e4f_8a9b_0000_0000_0000 + n)
}

fn attendee() -> Attendee {
    Attendee { program: "agentctl".into(), terminal: "pts/3".into(), role: Role::Driver }
}

fn session() -> SessionId {
    SessionId(uuid(1))
}

fn turn() -> TurnId {
    TurnId(uuid(2))
}

fn request_id() -> RequestId {
    RequestId(uuid(3))
}

fn call() -> CallId {
    CallId(uuid(4))
}

fn endpoint() -> Endpoint {
    Endpoint {
        base_url: Some("http://127.0.0.1:8080".into()),
        api_key: Some(Secret::new("k".into())),
        auth_token: None,
    }
}

fn requests() -> Vec<Request> {
    let session = || "a5b27c3d".to_owned();
    vec![
        Request::Hello(Hello { client: ClientInfo { program: "agentctl".into(), terminal: "pts/3".into() } }),
        Request::Status(Status {}),
        Request::CreateSession(CreateSession {
            cwd: "/w".into(),
            env: EnvVars(vec![("LANG".into(), "C.UTF-8".into())]),
            name: Some("demo".into()),
            model: None,
            scenario: Some("demo".into()),
            endpoint: endpoint(),
            mode: Mode::Plan,
        }),
        Request::ListSessions(ListSessions { archived: true, cwd: Some("/w".into()) }),
        Request::ShowSession(ShowSession { session: session() }),
        Request::ReadLog(ReadLog { session: session(), since: Seq(7), limit: 100 }),
        Request::Attach(Attach { session: session(), since: Seq(0), endpoint: Endpoint::default() }),
        Request::Detach(Detach { session: session() }),
        Request::SendPrompt(SendPrompt {
            session: session(),
            prompt: PromptId(uuid(5)),
            text: "größer\n".into(),
            approve: ApproveMode::All,
            endpoint: Endpoint::default(),
        }),
        Request::WithdrawPrompt(WithdrawPrompt { session: session(), prompt: PromptId(uuid(5)) }),
        Request::Interrupt(Interrupt { session: session() }),
        Request::ListApprovals(ListApprovals { session: None }),
        Request::AnswerApproval(AnswerApproval {
            approval: "0000".into(),
            digest: Some("d".into()),
            verdict: Verdict::Deny { reason: Some("not now".into()) },
        }),
        Request::ChangeSession(ChangeSession {
            session: session(),
            change: SessionChange::Rename { name: "x".into() },
        }),
        Request::ChangeSession(ChangeSession { session: session(), change: SessionChange::Archive {} }),
        Request::ChangeSession(ChangeSession { session: session(), change: SessionChange::Remove {} }),
        Request::Shutdown(Shutdown { stop_shells: true }),
        Request::Undo(Undo { session: session(), undo: UndoId(uuid(8)), steps: 2, preview: false, newest: Some(7) }),
        Request::SessionDiff(SessionDiff { session: session() }),
        Request::Retry(Retry { session: session(), endpoint: Endpoint::default() }),
        Request::Usage(UsageQuery { session: Some(session()), days: 7 }),
        Request::Configure(Configure {
            session: session(),
            model: Some("m2".into()),
            effort: Some("low".into()),
            max_tokens: Some(64_000),
        }),
        Request::Compact(Compact { session: session(), endpoint: Endpoint::default() }),
        Request::Steer(Steer { session: session(), text: "use tabs".into() }),
        Request::Rerun(Rerun {
            session: session(),
            prompt: PromptId(uuid(5)),
            text: None,
            approve: ApproveMode::Ask,
            endpoint: Endpoint::default(),
        }),
        Request::ListJobs(ListJobs { session: Some(session()) }),
        Request::ReadJob(ReadJob { job: "0009".into(), since: 3, max: 9, wait_ms: 1_000 }),
        Request::StopJob(StopJob { job: "0009".into() }),
        Request::Background(Background { session: session() }),
        Request::ShowEnv(ShowEnv { session: session() }),
        Request::Search(Search { text: "needle".into(), limit: 20 }),
        Request::ForkSession(ForkSession {
            session: "demo".into(),
            at: Some(Seq(7)),
            name: Some("other".into()),
            env: EnvVars::default(),
            endpoint: Endpoint::default(),
        }),
        Request::Prune(Prune { older_than_ms: 1000, archived: true, dry_run: true }),
        Request::Restart(Restart {}),
        Request::SetMode(SetMode { session: session(), mode: Mode::Bypass, confirmed: true }),
        Request::AnswerApproval(AnswerApproval {
            approval: "0000".into(),
            digest: None,
            verdict: Verdict::Edit { command: "ls -l".into() },
        }),
        Request::RunCommand(RunCommand { session: session(), call: call(), command: "make".into() }),
    ]
}

fn diff() -> FileDiff {
    let line = |kind, text: &str, changed| DiffLine {
        kind,
        spans: vec![DiffSpan { text: text.into(), changed }],
        no_newline: false,
    };
    FileDiff {
        path: "src/a.rs".into(),
        created: false,
        deleted: false,
        added: 1,
        removed: 1,
        hunks: vec![Hunk {
            old_start: 3,
            new_start: 3,
            lines: vec![
                line(DiffKind::Context, "fn a() {", false),
                line(DiffKind::Removed, "1", true),
                line(DiffKind::Added, "2", true),
            ],
        }],
        lines_left_out: 0,
    }
}

fn approval(subject: Subject) -> Approval {
    Approval {
        id: ApprovalId(uuid(6)),
        session: session(),
        turn: turn(),
        call: call(),
        tool: "bash".into(),
        subject,
        reason: "it runs a command".into(),
        asked_at: Timestamp(1_000),
        expires_at: Timestamp(2_000),
        choices: vec![Choice::Once, Choice::Session, Choice::Always, Choice::Deny, Choice::Edit],
        digest: "d".into(),
        proposal: Some(Proposal {
            file: "/home/me/.config/agentd/policy.toml".into(),
            toml: "\n[[rule]]\ndecision = \"allow\"\ncommand = [\"ls\"]\nexact = true\n".into(),
            rules: vec!["allow exactly ls (user)".into()],
        }),
    }
}

fn usage() -> Usage {
    Usage { input_tokens: 1, cache_write_tokens: 2, cache_read_tokens: 3, output_tokens: 4, cost_nanousd: Some(5) }
}

fn problem() -> Problem {
    Problem { code: "overloaded".into(), message: "busy".into(), hint: "wait".into(), request_id: Some("req_1".into()) }
}

fn bodies() -> Vec<EventBody> {
    let deciders = [
        Decider::Client { name: "agentctl on pts/3".into() },
        Decider::Policy { rule: "views do not ask".into() },
        Decider::Flag { value: "all".into() },
        Decider::Grant { name: "agentctl".into() },
        Decider::Expiry {},
        Decider::Interrupt {},
        Decider::Changed {},
        Decider::Mode { mode: Mode::AcceptEdits },
    ];
    let outcomes = [
        Outcome::Exited { status: 3 },
        Outcome::Done {},
        Outcome::Failed {},
        Outcome::TimedOut { limit_ms: 2_000 },
        Outcome::Interrupted {},
        Outcome::Denied {},
        Outcome::NotRun {},
        Outcome::Unknown {},
        Outcome::Background { job: job() },
    ];
    let subjects = [
        Subject::Command(CommandSubject { command: "ls".into(), cwd: "/w".into(), parts: vec!["ls".into()] }),
        Subject::Edit(EditSubject { diff: diff() }),
        Subject::Other(OtherSubject { title: "t".into(), input: JsonText::parse("{\"a\":1}").unwrap() }),
    ];
    let ends = [
        TurnOutcome::Done {},
        TurnOutcome::Refused { category: Some("cyber".into()), explanation: None },
        TurnOutcome::Interrupted {},
        TurnOutcome::Failed { problem: problem() },
    ];
    let mut all = vec![
        EventBody::SessionCreated(SessionCreated {
            cwd: "/w".into(),
            name: None,
            model: "m".into(),
            provider: "anthropic".into(),
            mode: Mode::Ask,
        }),
        EventBody::ModeChanged(ModeChanged { mode: Mode::AcceptEdits, by: "agentctl".into() }),
        EventBody::PromptAccepted(PromptAccepted {
            prompt: PromptId(uuid(5)),
            text: "hi".into(),
            approve: ApproveMode::Ask,
            by: "agentctl".into(),
        }),
        EventBody::PromptWithdrawn(PromptWithdrawn { prompt: PromptId(uuid(5)), by: "agentctl".into() }),
        EventBody::TurnStarted(TurnStarted { turn: turn(), prompt: PromptId(uuid(5)) }),
        EventBody::RequestSent(RequestSent { turn: turn(), request: request_id(), attempt: 1 }),
        EventBody::RequestFailed(RequestFailed {
            turn: turn(),
            request: request_id(),
            attempt: 1,
            problem: problem(),
            next_try: Some(Timestamp(3_000)),
            parked: true,
        }),
        EventBody::ReplyReceived(ReplyReceived {
            turn: turn(),
            request: request_id(),
            blocks: vec![
                Block::Text { text: "t".into() },
                Block::Thinking { text: String::new() },
                Block::Call(CallBlock {
                    call: call(),
                    tool_use_id: "toolu_1".into(),
                    tool: "bash".into(),
                    title: "$ ls".into(),
                    input: JsonText::parse("{\"command\": \"ls\"}").unwrap(),
                }),
                Block::Other { kind: "hologram".into() },
            ],
            stop_reason: "tool_use".into(),
            usage: usage(),
            model: "m".into(),
            cache_miss: Some("expired".into()),
        }),
        EventBody::SettingsChanged(SettingsChanged {
            model: "m2".into(),
            effort: Some("low".into()),
            max_tokens: 64_000,
            by: "agentctl".into(),
        }),
        EventBody::CompactionStarted(CompactionStarted { turn: turn(), why: "full".into() }),
        EventBody::Compacted(Compacted { turn: turn(), summary: Some("s".into()), usage: usage() }),
        EventBody::Steered(Steered { turn: turn(), text: "use tabs".into(), by: "agentctl".into() }),
        EventBody::Rewound(Rewound { prompt: PromptId(uuid(5)), by: "agentctl".into() }),
        EventBody::Notice(Notice { text: "n".into() }),
        EventBody::SessionRenamed(SessionRenamed { name: "x".into(), by: "agentctl".into() }),
        EventBody::SessionArchived(SessionArchived { by: "agentctl".into() }),
        EventBody::UndoStarted(UndoStarted { undo: UndoId(uuid(8)), steps: 2, by: "agentctl".into() }),
        EventBody::UndoEnded(UndoEnded {
            undo: UndoId(uuid(8)),
            by: "agentctl".into(),
            diffs: vec![diff()],
            problem: Some(problem()),
        }),
        EventBody::JobStarted(JobStarted {
            job: job(),
            call: call(),
            command: "make".into(),
            description: "the build".into(),
            cwd: "/w".into(),
            deadline_ms: 60_000,
            moved: false,
        }),
        EventBody::JobEnded(JobEnded {
            job: job(),
            outcome: Outcome::Exited { status: 2 },
            duration_ms: 12,
            output_bytes: 34,
            text: "ended".into(),
        }),
        EventBody::JobSilent(JobSilent { job: job(), silence_ms: 5 }),
        EventBody::JobStopAsked(JobStopAsked { job: job(), by: "agentctl".into() }),
        EventBody::BackgroundAsked(BackgroundAsked { call: call(), job: job(), by: "agentctl".into() }),
        EventBody::TurnWoken(TurnWoken { turn: turn() }),
        EventBody::JobsTold(JobsTold { turn: turn() }),
        EventBody::SessionForked(SessionForked { from: session(), at: Seq(7), by: "agentctl".into() }),
        EventBody::CommandEntered(CommandEntered {
            turn: turn(),
            call: call(),
            command: "make".into(),
            by: "agentctl".into(),
        }),
    ];
    all.extend(subjects.map(|subject| EventBody::ApprovalAsked(ApprovalAsked { approval: approval(subject) })));
    all.extend(deciders.clone().map(|by| {
        let verdict = if by == (Decider::Expiry {}) { Verdict::Deny { reason: None } } else { Verdict::Session {} };
        EventBody::ApprovalClosed(ApprovalClosed { approval: ApprovalId(uuid(6)), call: call(), verdict, by })
    }));
    all.extend(
        deciders.map(|allowed_by| EventBody::CallStarted(CallStarted { turn: turn(), call: call(), allowed_by })),
    );
    all.extend(outcomes.map(|outcome| {
        EventBody::CallFinished(CallFinished {
            turn: turn(),
            call: call(),
            outcome,
            text: "out\n".into(),
            is_error: false,
            duration_ms: 12,
            diff: None,
        })
    }));
    all.extend(
        ends.map(|outcome| EventBody::TurnEnded(TurnEnded { turn: turn(), outcome, requests: 3, usage: usage() })),
    );
    all
}

fn info() -> SessionInfo {
    SessionInfo {
        id: session(),
        name: Some("demo".into()),
        cwd: "/w".into(),
        model: "m".into(),
        provider: "scripted".into(),
        state: SessionState::Asking,
        created_at: Timestamp(1),
        active_at: Timestamp(2),
        head: Seq(9),
        queued: vec![PromptId(uuid(7))],
        approvals: vec![],
        title: "fix".into(),
        clients: vec![attendee()],
        archived: false,
        shim_pid: Some(42),
        next_try: Some(Timestamp(3)),
        max_tokens: 32_000,
        effort: None,
        usage: usage(),
        context_tokens: 10,
        context_window: 100,
        jobs: 1,
        mode: Mode::Plan,
    }
}

fn responses() -> Vec<Response> {
    vec![
        Response::Done(Done {}),
        Response::Status(DaemonStatus {
            release: "0.1.0".into(),
            pid: 7,
            started_at: Timestamp(1),
            sessions: 1,
            working: 1,
            approvals: 0,
            clients: 2,
            socket: "/run/a.sock".into(),
            database: "/state/agentd.db".into(),
            config_files: vec!["/etc/agentd/agentd.toml".into()],
            warnings: vec![],
            model: "m".into(),
            base_url: "https://api.anthropic.com".into(),
            key_source: "none".into(),
            accounting: "cgroup".into(),
            bypass: 1,
        }),
        Response::Session(info()),
        Response::Sessions(Sessions { sessions: vec![info()] }),
        Response::Log(LogPage { session: session(), events: vec![], more: false }),
        Response::Attached(Attached { session: info() }),
        Response::Accepted(Accepted { session: session(), prompt: PromptId(uuid(5)), seq: Seq(2) }),
        Response::Approvals(Approvals { approvals: vec![approval(Subject::Edit(EditSubject { diff: diff() }))] }),
        Response::Answered(Answered {
            approval: ApprovalId(uuid(6)),
            verdict: Verdict::Once {},
            by: Decider::Client { name: "agentctl on pts/3".into() },
            yours: true,
        }),
        Response::Undone(Undone {
            undo: UndoId(uuid(8)),
            applied: true,
            diffs: vec![FileDiff { deleted: true, ..diff() }],
            left: 3,
            newest: 7,
        }),
        Response::Usage(UsageReport {
            days: vec![DayUsage {
                day: "2026-12-01".into(),
                session: session(),
                model: "m".into(),
                requests: 2,
                usage: usage(),
            }],
            turns: vec![TurnUsage { turn: turn(), at: Timestamp(1), requests: 2, usage: usage() }],
        }),
        Response::Changes(SessionChanges { diffs: vec![diff()], left_out: 1, problems: vec!["p".into()] }),
        Response::Jobs(Jobs { jobs: vec![shown_job()] }),
        Response::JobOutput(JobOutput {
            job: shown_job(),
            offset: 3,
            bytes: 2,
            text: "a\u{1b}".into(),
            total: 5,
            over: true,
        }),
        Response::Job(Job { outcome: None, spool: None, ..shown_job() }),
        Response::Moving(Moving { session: session(), call: call(), job: job() }),
        Response::Environment(Environment {
            session: session(),
            variables: vec![Variable { name: "A".into(), value: "b".into() }],
            removed: vec!["ANTHROPIC_API_KEY".into()],
        }),
        Response::Hits(Hits {
            hits: vec![Hit {
                session: session(),
                name: None,
                title: "fix".into(),
                seq: Seq(4),
                at: Timestamp(2),
                speaker: Speaker::Tool,
                excerpt: "…the needle…".into(),
            }],
        }),
        Response::Pruned(Pruned { sessions: vec![info()], removed: true, bytes_before: 9, bytes_after: 5 }),
    ]
}

fn job() -> JobId {
    JobId(uuid(9))
}

fn shown_job() -> Job {
    Job {
        session: session(),
        job: job(),
        call: call(),
        command: "make".into(),
        description: String::new(),
        cwd: "/w".into(),
        started_at: Timestamp(1),
        running_ms: 2,
        deadline_ms: 3,
        quiet_ms: 4,
        output_bytes: 5,
        processes: 6,
        spool: Some("/s/x.out".into()),
        outcome: Some(Outcome::Exited { status: 0 }),
    }
}

fn frames() -> Vec<ServerFrame> {
    let mut all: Vec<ServerFrame> = responses()
        .into_iter()
        .map(|response| ServerFrame::Response(ResponseFrame { id: 1, result: ResponseResult::Ok(response) }))
        .collect();
    let error = WireError { code: ErrorCode::NotFound, message: "no session".into(), hint: "ls".into() };
    all.push(ServerFrame::Response(ResponseFrame { id: 2, result: ResponseResult::Error(error) }));
    all.extend([
        ServerFrame::Live(Live::Text(LiveText {
            session: session(),
            request: request_id(),
            index: 0,
            kind: LiveKind::Thinking,
            offset: 5,
            text: "more".into(),
        })),
        ServerFrame::Live(Live::Output(LiveOutput {
            session: session(),
            call: call(),
            offset: 0,
            bytes: 3,
            text: "a\u{1b}b".into(),
        })),
        ServerFrame::Live(Live::Restarted(LiveRestarted { session: session(), request: request_id() })),
        ServerFrame::CaughtUp(CaughtUp { session: session(), seq: Seq(9) }),
        ServerFrame::Lagged(Lagged { session: session(), after: Seq(3) }),
        ServerFrame::Goodbye(Goodbye { reason: "agentd is stopping".into() }),
        ServerFrame::Presence(Presence { session: session(), clients: vec![attendee()] }),
    ]);
    for (index, body) in bodies().into_iter().enumerate() {
        let event = Event { seq: Seq(index as u64 + 1), at: Timestamp(1_000), body };
        all.push(ServerFrame::Event(EventFrame { session: session(), event }));
    }
    all
}

/// Each message in both codecs; both must read back as they were.
fn lines<T: Serialize + DeserializeOwned + PartialEq + Debug>(messages: &[T]) -> (String, String) {
    let (mut hex, mut json) = (String::new(), String::new());
    for message in messages {
        let bytes = frame::encode(message).unwrap();
        assert_eq!(&frame::decode::<T>(&bytes).unwrap(), message);
        for byte in &bytes {
            write!(hex, "{byte:02x}").unwrap();
        }
        hex.push('\n');
        let line = frame::encode_line(message).unwrap();
        assert_eq!(&frame::decode_line::<T>(&line).unwrap(), message);
        json.push_str(std::str::from_utf8(&line).unwrap());
    }
    (hex, json)
}

#[test]
fn the_client_protocols_bytes_change_only_with_its_version() {
    assert_eq!(PROTOCOL, 1, "a new version: write its bytes to a folder of its own and keep the old one");
    let requests: Vec<ClientFrame> =
        requests().into_iter().enumerate().map(|(id, request)| ClientFrame { id: id as u64, request }).collect();
    let (hex, json) = lines(&requests);
    expect_file!["golden/client-1/requests.bincode.hex"].assert_eq(&hex);
    expect_file!["golden/client-1/requests.jsonl"].assert_eq(&json);
    let (hex, json) = lines(&frames());
    expect_file!["golden/client-1/frames.bincode.hex"].assert_eq(&hex);
    expect_file!["golden/client-1/frames.jsonl"].assert_eq(&json);
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let mut generator = schemars::SchemaGenerator::default();
    let client = generator.subschema_for::<ClientFrame>();
    let server = generator.subschema_for::<ServerFrame>();
    let schema = serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agentd client protocol, JSON lines",
        "description": "A line from the client is a ClientFrame, a line from the daemon a ServerFrame.",
        "oneOf": [client, server],
        "$defs": generator.take_definitions(true),
    });
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    expect_file!["../schema/client.schema.json"].assert_eq(&text);
}

#[test]
fn secrets_and_environment_values_are_not_in_debug_output() {
    let frame = ClientFrame { id: 1, request: requests().remove(2) };
    let shown = format!("{frame:?}");
    assert!(!shown.contains("\"k\"") && !shown.contains("C.UTF-8"), "{shown}");
}

#[test]
fn the_document_names_every_request_row_and_frame() {
    let text = include_str!("../PROTOCOL.md");
    let word = |json: serde_json::Value| match json {
        serde_json::Value::Object(map) => map.keys().next().unwrap().clone(),
        other => panic!("{other} is no tagged value"),
    };
    let mut words: Vec<String> = Vec::new();
    words.extend(requests().iter().map(|request| word(serde_json::to_value(request).unwrap())));
    words.extend(bodies().iter().map(|body| word(serde_json::to_value(body).unwrap())));
    words.extend(frames().iter().map(|frame| word(serde_json::to_value(frame).unwrap())));
    let missing: Vec<&String> = words.iter().filter(|word| !text.contains(word.as_str())).collect();
    assert!(missing.is_empty(), "PROTOCOL.md does not name {missing:?}");
}

//! Rows, live pieces and answers, short to write in a script.

use proto::approval::{Approval, Choice, CommandSubject, Decider, Subject, Verdict};
use proto::diff::{DiffKind, DiffLine, DiffSpan, FileDiff, Hunk};
use proto::event::{
    ApprovalAsked, ApprovalClosed, Block, CallBlock, CallFinished, CallStarted, EventBody, Outcome, Problem,
    ReplyReceived, RequestSent, TurnEnded, TurnOutcome, Usage,
};
use proto::ids::{ApprovalId, CallId, RequestId, Seq, SessionId, Timestamp, TurnId};
use proto::json::JsonText;
use proto::live::{Live, LiveKind, LiveOutput, LiveText};
use proto::mode::Mode;
use proto::response::{DaemonStatus, ErrorCode, SessionChanges, SessionInfo, SessionState, WireError};

use super::Peer;

pub fn session(cwd: &str) -> SessionInfo {
    SessionInfo {
        id: "0190163d-8694-739b-aea5-966cab12cd34".parse().unwrap(),
        name: None,
        cwd: cwd.to_owned(),
        model: "model-1".into(),
        provider: "anthropic".into(),
        state: SessionState::Idle,
        created_at: Timestamp(1_700_000_000_000),
        active_at: Timestamp(1_700_000_000_000),
        head: Seq(0),
        queued: Vec::new(),
        approvals: Vec::new(),
        title: String::new(),
        clients: Vec::new(),
        archived: false,
        shim_pid: None,
        next_try: None,
        max_tokens: 32_000,
        effort: None,
        usage: Usage::default(),
        context_tokens: 0,
        context_window: 0,
        jobs: 0,
        mode: Mode::Ask,
    }
}

pub fn status() -> DaemonStatus {
    DaemonStatus {
        release: env!("CARGO_PKG_VERSION").into(),
        pid: 4711,
        started_at: Timestamp(1_700_000_000_000),
        sessions: 1,
        working: 0,
        approvals: 0,
        clients: 1,
        socket: "/run/user/7/agentd/agentd.sock".into(),
        database: "/home/me/.local/state/agentd/agentd.db".into(),
        config_files: Vec::new(),
        warnings: Vec::new(),
        model: "model-1".into(),
        base_url: "https://api.anthropic.com".into(),
        key_source: "file".into(),
        accounting: "cgroup".into(),
        bypass: 0,
    }
}

pub fn diff(path: &str) -> FileDiff {
    let line = |kind, text: &str| {
        let spans = vec![DiffSpan { text: text.into(), changed: false }];
        DiffLine { kind, spans, no_newline: false }
    };
    FileDiff {
        path: path.into(),
        created: false,
        deleted: false,
        added: 1,
        removed: 1,
        hunks: vec![Hunk {
            old_start: 3,
            new_start: 3,
            lines: vec![
                line(DiffKind::Context, "fn a() {"),
                line(DiffKind::Removed, "    2"),
                line(DiffKind::Added, "    1"),
            ],
        }],
        lines_left_out: 0,
    }
}

pub fn changes() -> SessionChanges {
    let gone = FileDiff { deleted: true, added: 0, hunks: Vec::new(), ..diff("old.txt") };
    SessionChanges { diffs: vec![diff("src/a.rs"), gone], left_out: 1, problems: vec!["b is a directory".into()] }
}

pub fn not_found(message: &str) -> WireError {
    WireError { code: ErrorCode::NotFound, message: message.into(), hint: "`agentctl approvals` lists them".into() }
}

pub fn no_session(selector: &str) -> WireError {
    let message = format!("there is no session {selector:?}");
    WireError { code: ErrorCode::NotFound, message, hint: "`agentctl ls` lists them".into() }
}

pub fn problem(code: &str, message: &str, hint: &str) -> Problem {
    Problem { code: code.into(), message: message.into(), hint: hint.into(), request_id: None }
}

pub fn approval(command: &str) -> Approval {
    Approval {
        id: ApprovalId::new(),
        session: session("/").id,
        turn: TurnId::new(),
        call: CallId::new(),
        tool: "bash".into(),
        subject: Subject::Command(CommandSubject {
            command: command.into(),
            cwd: "/home/me/project".into(),
            parts: Vec::new(),
        }),
        reason: "it is not known to only read".into(),
        asked_at: Timestamp::now(),
        expires_at: Timestamp::now().plus_ms(600_000),
        choices: vec![Choice::Once, Choice::Session, Choice::Deny],
        digest: "d1".into(),
        proposal: None,
    }
}

impl Peer {
    pub fn request_sent(&mut self) -> RequestId {
        let request = RequestId::new();
        self.row(EventBody::RequestSent(RequestSent { turn: self.turn, request, attempt: 1 }));
        request
    }

    pub fn text(&mut self, request: RequestId, offset: u64, text: &str) {
        let session = self.session().id;
        let (index, kind, text) = (0, LiveKind::Text, text.to_owned());
        self.live(Live::Text(LiveText { session, request, index, kind, offset, text }));
    }

    pub fn reply(&mut self, request: RequestId, blocks: Vec<Block>) {
        let stop_reason = "end_turn".into();
        let usage = Usage::default();
        self.row(EventBody::ReplyReceived(ReplyReceived {
            turn: self.turn,
            request,
            blocks,
            stop_reason,
            usage,
            model: String::new(),
            cache_miss: None,
        }));
    }

    /// A whole reply of one text.
    pub fn says(&mut self, text: &str) {
        let request = self.request_sent();
        self.reply(request, vec![Block::Text { text: text.into() }]);
    }

    /// A reply with one call.
    pub fn calls(&mut self, title: &str) -> CallId {
        let request = self.request_sent();
        let call = CallId::new();
        let block = CallBlock {
            call,
            tool_use_id: "toolu_1".into(),
            tool: "bash".into(),
            title: title.into(),
            input: JsonText::parse("{}").unwrap(),
        };
        self.reply(request, vec![Block::Call(block)]);
        call
    }

    pub fn starts(&mut self, call: CallId) {
        let allowed_by = Decider::Flag { value: "all".into() };
        self.row(EventBody::CallStarted(CallStarted { turn: self.turn, call, allowed_by }));
    }

    pub fn output(&mut self, call: CallId, offset: u64, text: &str) {
        let session: SessionId = self.session().id;
        let bytes = u64::try_from(text.len()).unwrap();
        self.live(Live::Output(LiveOutput { session, call, offset, bytes, text: text.into() }));
    }

    pub fn finishes(&mut self, call: CallId, outcome: Outcome, text: &str) {
        let is_error = !matches!(outcome, Outcome::Exited { status: 0 } | Outcome::Done {});
        let (turn, text) = (self.turn, text.to_owned());
        let finished = CallFinished { turn, call, outcome, text, is_error, duration_ms: 1_240, diff: None };
        self.row(EventBody::CallFinished(finished));
    }

    pub fn asks(&mut self, call: CallId, command: &str) -> Approval {
        let approval = Approval { turn: self.turn, call, ..approval(command) };
        self.row(EventBody::ApprovalAsked(ApprovalAsked { approval: approval.clone() }));
        approval
    }

    /// Asks, and waits for the first answer of any connection.
    pub fn asks_everybody(&mut self, call: CallId, command: &str) -> Verdict {
        let (sender, answers) = std::sync::mpsc::channel();
        let approval = Approval { turn: self.turn, call, ..approval(command) };
        self.record.lock().unwrap().question = Some((approval.clone(), sender));
        self.row(EventBody::ApprovalAsked(ApprovalAsked { approval }));
        answers.recv_timeout(super::PATIENCE).unwrap()
    }

    pub fn closes(&mut self, approval: &Approval, verdict: Verdict, by: &str) {
        let (approval, call) = (approval.id, approval.call);
        let by = Decider::Client { name: by.into() };
        self.row(EventBody::ApprovalClosed(ApprovalClosed { approval, call, verdict, by }));
    }

    pub fn ends(&mut self, outcome: TurnOutcome) {
        self.row(EventBody::TurnEnded(TurnEnded { turn: self.turn, outcome, requests: 1, usage: Usage::default() }));
    }

    pub fn done(&mut self) {
        self.ends(TurnOutcome::Done {});
    }
}

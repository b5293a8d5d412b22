//! Claims about exported transcripts.

use expect_test::expect;
use jiff::tz::TimeZone;
use proto::event::{CallBlock, Outcome, PromptAccepted, ReplyReceived};
use proto::ids::{CallId, PromptId, RequestId, Seq, SessionId, TurnId};
use proto::json::JsonText;
use proto::request::ApproveMode;
use proto::response::{SessionInfo, SessionState};

use super::*;

const HOSTILE: &str = "</pre><script>alert(1)</script>\u{1b}[2J\u{202e}&'\"";

fn info() -> SessionInfo {
    SessionInfo {
        id: "0190163d-8694-739b-aea5-966cab12cd34".parse::<SessionId>().unwrap(),
        name: Some("build".into()),
        cwd: "/home/me".into(),
        model: "model-1".into(),
        provider: "anthropic".into(),
        state: SessionState::Idle,
        created_at: Timestamp(1_700_000_000_000),
        active_at: Timestamp(1_700_000_000_000),
        head: Seq(0),
        queued: Vec::new(),
        approvals: Vec::new(),
        title: "why".into(),
        clients: Vec::new(),
        archived: false,
        shim_pid: None,
        next_try: None,
        max_tokens: 0,
        effort: None,
        usage: Usage::default(),
        context_tokens: 0,
        context_window: 0,
        jobs: 0,
        mode: proto::mode::Mode::Ask,
    }
}

fn log(text: &str) -> Vec<Event> {
    let (turn, call) = (TurnId::new(), CallId::new());
    let input = serde_json::json!({ "command": format!("cat {text}") }).to_string();
    let bodies = [
        EventBody::PromptAccepted(PromptAccepted {
            prompt: PromptId::new(),
            text: text.into(),
            approve: ApproveMode::Ask,
            by: "agentctl on pts/1".into(),
        }),
        EventBody::ReplyReceived(ReplyReceived {
            turn,
            request: RequestId::new(),
            blocks: vec![
                Block::Thinking { text: text.into() },
                Block::Text {
                    text: format!("# Title\n\n{text} [a](javascript:alert(1)) ![b](http://x/y.png)\n\n- `x`\n"),
                },
                Block::Call(CallBlock {
                    call,
                    tool_use_id: "t".into(),
                    tool: "bash".into(),
                    title: "$ cat".into(),
                    input: JsonText::parse(&input).unwrap(),
                }),
            ],
            stop_reason: "tool_use".into(),
            usage: Usage::default(),
            model: String::new(),
            cache_miss: None,
        }),
        EventBody::CallFinished(CallFinished {
            turn,
            call,
            outcome: Outcome::Exited { status: 1 },
            text: format!("``` {text}"),
            is_error: true,
            duration_ms: 1_240,
            diff: Some(crate::render::diff::tests::sample()),
        }),
    ];
    let row = |(at, body)| Event { seq: Seq(at), at: Timestamp(1_700_000_000_000), body };
    (1..).zip(bodies).map(row).collect()
}

#[test]
fn a_page_holds_the_transcript_and_nothing_foreign_as_markup() {
    let page = html::page(&info(), &log(HOSTILE), &TimeZone::UTC);
    for good in
        ["<title>build: why</title>", "<h3>Title</h3>", "exit 1 · 1.2 s", "<li><code>x</code></li>", "src/lib.rs"]
    {
        assert!(page.contains(good), "{good}: {page}");
    }
    for bad in ["<script", "\u{1b}", "\u{202e}", "href=\"javascript", "<img", "src="] {
        assert!(!page.contains(bad), "{bad}: {page}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_document_keeps_outputs_inside_their_blocks() {
    let document = markdown::document(&info(), &log("x"), &TimeZone::UTC);
    expect![[r#"
        # build: why

        /home/me · model-1 · 2023-11-14 22:13 · session 0190163d-8694-739b-aea5-966cab12cd34

        ## agentctl on pts/1, 2023-11-14 22:13

        > x

        > *x*

        # Title

        x [a](javascript:alert(1)) ![b](http://x/y.png)

        - `x`

        **$ cat** · exit 1 · 1.2 s

        ```sh
        cat x
        ```

        ````
        ``` x
        ````

        ```diff
        --- src/lib.rs
        +++ src/lib.rs
        @@ -9 +9 @@
         fn main() {
        -	let x = 1;
        +	let x = 2␛[2J;
        +}
        ```
    "#]]
    .assert_eq(&document);
}

//! What is sent, to the byte.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use std::sync::Arc;

use super::history::MARKER_REACH;
use super::*;
use crate::model::{Message, Role};

fn block(value: &Value) -> JsonText {
    JsonText::from_value(value)
}

fn text(text: &str) -> JsonText {
    block(&json!({"type": "text", "text": text}))
}

fn message(role: Role, content: Vec<JsonText>) -> Message {
    Message { role, content }
}

fn conversation(model: &str, messages: Vec<Message>) -> Conversation {
    Conversation {
        model: model.to_owned(),
        max_tokens: 32000,
        effort: None,
        takes: None,
        previous: None,
        compact: false,
        system: "You work in a \"sandbox\".".to_owned(),
        tools: tool_definitions(Profile::Anthropic, 30000),
        written: None,
        messages: messages.into_iter().map(Arc::new).collect(),
    }
}

fn whole(parts: &[Bytes]) -> String {
    String::from_utf8(parts.concat()).unwrap()
}

fn sent(model: &str, messages: Vec<Message>, style: impl Into<Style>) -> String {
    whole(&body(&conversation(model, messages), style))
}

fn parsed(model: &str, messages: Vec<Message>, style: impl Into<Style>) -> Value {
    serde_json::from_str(&sent(model, messages, style)).unwrap()
}

fn hello() -> Vec<Message> {
    vec![message(Role::User, vec![text("hi")])]
}

#[test]
fn a_request_to_anthropic() {
    expect![[r#"{"model":"claude-opus-5-5","max_tokens":32000,"stream":true,"thinking":{"type":"adaptive","display":"summarized"},"cache_control":{"type":"ephemeral"},"system":[{"type":"text","text":"You work in a \"sandbox\".","cache_control":{"type":"ephemeral"}}],"tools":[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"str_replace_based_edit_tool","max_characters":30000},{"name":"grep","description":"Searches the contents of files. Hidden files and what .gitignore names are left out unless all is true.","input_schema":{"type":"object","properties":{"pattern":{"type":"string","description":"A regular expression, in Rust's syntax."},"path":{"type":"string","description":"File or directory; if left out the current directory."},"glob":{"type":"string","description":"Only such files, for example *.rs or src/**/*.{ts,tsx}."},"output_mode":{"type":"string","enum":["files_with_matches","content","count"],"description":"files_with_matches if left out; content shows the lines."},"context":{"type":"integer","description":"content: lines around each match."},"ignore_case":{"type":"boolean"},"multiline":{"type":"boolean","description":"A match may span lines."},"all":{"type":"boolean"},"head_limit":{"type":"integer","description":"At most so many files or lines."}},"required":["pattern"]}},{"name":"glob","description":"Finds files by name, the last changed first. Hidden files and what .gitignore names are left out unless all is true.","input_schema":{"type":"object","properties":{"pattern":{"type":"string","description":"For example *.rs, src/**/*.ts or {a,b}/*; without / it matches at any depth."},"path":{"type":"string","description":"The directory; if left out the current one."},"all":{"type":"boolean"}},"required":["pattern"]}},{"name":"bash_background","description":"Starts a command that outlives the call: a server, a watcher, a build or test run of more than a minute. Returns its job at once. It runs in a copy of the bash session (directory, exported variables, functions), without input, and cannot change the session. You are told when it ends, so do not poll; go on with other work or end your turn. Do not put & behind it.","input_schema":{"type":"object","properties":{"command":{"type":"string"},"description":{"type":"string","description":"What it is for, in a few words."},"deadline_seconds":{"type":"integer","description":"Ended after so long; 3600 if left out."},"silence_seconds":{"type":"integer","description":"You are told once when it prints nothing for so long."}},"required":["command"]}},{"name":"job_output","description":"Shows what a background job printed (the last part, or from byte since on) and its state. Without job it lists all jobs.","input_schema":{"type":"object","properties":{"job":{"type":"string"},"since":{"type":"integer"},"wait_seconds":{"type":"integer","description":"Wait so long for its end, at most 300."}},"required":[]}},{"name":"job_stop","description":"Ends a background job and all its processes, also what it left behind.","input_schema":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#]]
    .assert_eq(&sent("claude-opus-5-5", hello(), Profile::Anthropic));
}

#[test]
fn a_request_to_a_compatible_server_has_the_common_core_only() {
    let mut conversation = conversation("local", hello());
    conversation.tools = Vec::new();
    expect![[r#"{"model":"local","max_tokens":32000,"stream":true,"system":"You work in a \"sandbox\".","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#]]
    .assert_eq(&whole(&body(&conversation, Profile::Compat)));
}

#[test]
fn thinking_and_effort_follow_the_model() {
    let style = |effort| Style { profile: Profile::Anthropic, effort: Some(effort) };
    let haiku = parsed("claude-haiku-4-5-20251001", hello(), style(Effort::High));
    assert_eq!(haiku["thinking"], json!({"type": "enabled", "budget_tokens": 8192}));
    assert_eq!(haiku.get("output_config"), None);
    let opus = parsed("claude-opus-4-5", hello(), style(Effort::Max));
    assert_eq!(opus["output_config"], json!({"effort": "high"}));
    let newest = parsed("claude-fable-5-2", hello(), style(Effort::XHigh));
    assert_eq!(newest["output_config"], json!({"effort": "xhigh"}));
    let mut small = conversation("claude-haiku-4-5", hello());
    small.max_tokens = 2000;
    let small: Value = serde_json::from_str(&whole(&body(&small, Profile::Anthropic))).unwrap();
    assert_eq!(small.get("thinking"), None, "no room for a budget beside the output");
    let compat = parsed("claude-fable-5-2", hello(), Style { profile: Profile::Compat, effort: Some(Effort::Max) });
    assert_eq!((compat.get("thinking"), compat.get("output_config"), compat.get("cache_control")), (None, None, None));
}

#[test]
fn compatible_servers_get_schemas_under_the_same_names() {
    let names = |profile| -> Vec<Value> {
        tool_definitions(profile, 1).iter().map(|tool| tool.to_value()["name"].clone()).collect()
    };
    assert_eq!(names(Profile::Anthropic), names(Profile::Compat));
    for tool in tool_definitions(Profile::Compat, 1) {
        let tool = tool.to_value();
        assert_eq!(tool["input_schema"]["type"], "object");
        assert!(tool.get("type").is_none() && tool["description"].as_str().unwrap().len() > 50);
    }
}

#[test]
fn what_the_api_refuses_is_left_out_and_the_rest_is_copied_as_it_is() {
    let odd = JsonText::parse(r#"{"z":1e5,"type":"hologram","a":12345678901234567890}"#).unwrap();
    let messages = vec![
        message(Role::User, vec![text("a")]),
        message(
            Role::Assistant,
            vec![
                block(&json!({"type": "thinking", "thinking": "no signature"})),
                block(&json!({"type": "thinking", "thinking": "an empty one", "signature": ""})),
                block(&json!({"type": "thinking", "thinking": "", "signature": "c2ln"})),
                text(""),
                odd.clone(),
            ],
        ),
        message(Role::User, vec![text("b")]),
    ];
    for profile in [Profile::Anthropic, Profile::Compat] {
        let sent = sent("claude-opus-5-5", messages.clone(), profile);
        let assistant = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln"},"#;
        assert!(sent.contains(&format!("{assistant}{odd}]}}")), "{sent}");
    }
}

#[test]
fn a_message_of_which_nothing_is_left_joins_its_neighbours() {
    let messages = vec![
        message(Role::User, vec![text("a")]),
        message(Role::Assistant, vec![block(&json!({"type": "thinking", "thinking": "x"}))]),
        message(Role::User, vec![text("b")]),
    ];
    let sent = parsed("claude-opus-5-5", messages, Profile::Anthropic);
    assert_eq!(
        sent["messages"],
        json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])
    );
}

fn roles(model: &str, roles: &[Role], profile: Profile) -> Vec<String> {
    let messages = roles.iter().map(|role| message(*role, vec![text("x")])).collect();
    let sent = parsed(model, messages, profile);
    sent["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_system_message_goes_where_it_may_and_is_the_users_elsewhere() {
    use Role::{Assistant, System, User};
    let new = "claude-opus-5-5";
    assert_eq!(roles(new, &[User, System], Profile::Anthropic), ["user", "system"]);
    assert_eq!(roles(new, &[User, System, System, Assistant], Profile::Anthropic), ["user", "system", "assistant"]);
    assert_eq!(roles(new, &[User, System, User], Profile::Anthropic), ["user"]);
    assert_eq!(roles(new, &[System, User], Profile::Anthropic), ["user"]);
    assert_eq!(roles(new, &[User, Assistant, System], Profile::Anthropic), ["user", "assistant", "user"]);
    assert_eq!(roles("claude-sonnet-5", &[User, System], Profile::Anthropic), ["user"]);
    assert_eq!(roles(new, &[User, System, Assistant], Profile::Compat), ["user", "assistant"]);
}

/// A step of a conversation: so many parallel calls, and their results.
fn step(number: usize, calls: usize) -> Vec<Message> {
    let calls: Vec<String> = (0..calls).map(|call| format!("toolu_{number}_{call}")).collect();
    let uses = calls.iter().map(|id| block(&json!({"type": "tool_use", "id": id, "name": "bash", "input": {}})));
    let results = calls.iter().map(|id| block(&json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})));
    vec![message(Role::Assistant, uses.collect()), message(Role::User, results.collect())]
}

/// Numbers of the blocks of `messages` that carry a marker, and how many blocks there are.
fn marked(messages: Vec<Message>) -> (Vec<usize>, usize) {
    let sent = parsed("claude-opus-5-5", messages, Profile::Anthropic);
    let blocks: Vec<Value> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap().clone())
        .collect();
    let marked = blocks.iter().enumerate().filter(|(_, block)| block.get("cache_control").is_some());
    (marked.map(|(at, _)| at).collect(), blocks.len())
}

#[test]
fn a_long_step_gets_markers_inside_and_a_short_one_none() {
    let mut messages = hello();
    messages.extend(step(0, 3));
    assert_eq!(marked(messages.clone()), (vec![], 7));
    let before = 7;
    messages.extend(step(1, 18));
    let (markers, total) = marked(messages);
    assert_eq!(markers[0], before - 1, "where the last request's entry ends");
    assert!(markers.len() <= 2);
    let stops: Vec<usize> = markers.iter().copied().chain([total - 1]).collect();
    assert!(stops.windows(2).all(|pair| pair[1] - pair[0] <= MARKER_REACH), "{stops:?} of {total}");
}

proptest! {
    /// What was sent stays sent: only markers may move.
    #[test]
    fn a_longer_history_only_adds_bytes(calls in proptest::collection::vec(1usize..9, 1..12)) {
        let mut messages = hello();
        let mut last = sent("claude-opus-5-5", messages.clone(), Profile::Anthropic);
        for (number, calls) in calls.into_iter().enumerate() {
            messages.extend(step(number, calls));
            let next = sent("claude-opus-5-5", messages.clone(), Profile::Anthropic);
            let prefix = last.strip_suffix("]}").unwrap();
            prop_assert!(next.starts_with(prefix));
            last = next;
        }
    }

    #[test]
    fn there_are_never_more_than_four_markers(calls in proptest::collection::vec(1usize..60, 1..6)) {
        let mut messages = hello();
        for (number, calls) in calls.into_iter().enumerate() {
            messages.extend(step(number, calls));
            let sent = sent("claude-opus-5-5", messages.clone(), Profile::Anthropic);
            prop_assert!(sent.matches("\"cache_control\"").count() <= 4);
        }
    }

    /// Whatever becomes of a history, what was kept of it is what is sent.
    #[test]
    fn a_history_written_step_by_step_has_the_bytes_of_one_written_at_once(
        changes in proptest::collection::vec(change(), 1..60),
        compat in any::<bool>(),
        system_messages in any::<bool>(),
    ) {
        let model = if system_messages { "claude-opus-5-5" } else { "claude-sonnet-5" };
        let profile = if compat { Profile::Compat } else { Profile::Anthropic };
        let mut conversation = conversation(model, Vec::new());
        let mut history = Vec::new();
        let mut writer = Writer::default();
        for change in changes {
            apply(&mut history, change);
            conversation.written = None;
            conversation.messages.clone_from(&history);
            let at_once = whole(&body(&conversation, profile));
            let (written, rest) = writer.split(&history, system_messages && !compat);
            prop_assert!(written.parts().len() <= 12, "few parts");
            conversation.written = Some(written);
            conversation.messages = rest.to_vec();
            prop_assert_eq!(whole(&body(&conversation, profile)), at_once);
        }
    }
}

/// What can become of a history.
#[derive(Clone, Debug)]
enum Change {
    Said(Message),
    /// Added to the last message, when it is the user's.
    Grown(JsonText),
    /// Taken back to so many messages.
    Rewound(usize),
    /// Thinking removed from all.
    Stripped,
    /// A summary in its place.
    Compacted,
}

fn change() -> impl Strategy<Value = Change> {
    let block = prop_oneof![
        4 => "[a-z]{1,8}".prop_map(|words| text(&words)),
        2 => (0usize..100).prop_map(|id| block(&json!({"type": "tool_use", "id": id.to_string(), "name": "bash", "input": {}}))),
        1 => Just(text("")),
        1 => Just(block(&json!({"type": "thinking", "thinking": "x"}))),
        1 => Just(block(&json!({"type": "thinking", "thinking": "x", "signature": "s"}))),
    ];
    let role = prop_oneof![4 => Just(Role::Assistant), 4 => Just(Role::User), 1 => Just(Role::System)];
    let said =
        (role, proptest::collection::vec(block.clone(), 0..30)).prop_map(|(role, content)| message(role, content));
    prop_oneof![
        20 => said.prop_map(Change::Said),
        3 => block.prop_map(Change::Grown),
        1 => (0usize..20).prop_map(Change::Rewound),
        1 => Just(Change::Stripped),
        1 => Just(Change::Compacted),
    ]
}

fn apply(history: &mut Vec<Arc<Message>>, change: Change) {
    match change {
        Change::Said(message) => history.push(Arc::new(message)),
        Change::Grown(block) => {
            if let Some(last) = history.last_mut().filter(|last| last.role == Role::User) {
                Arc::make_mut(last).content.push(block);
            }
        }
        Change::Rewound(length) => history.truncate(length),
        Change::Stripped => {
            for message in history.iter_mut().filter(|message| message.content.iter().any(is_thinking)) {
                Arc::make_mut(message).content.retain(|block| !is_thinking(block));
            }
        }
        Change::Compacted => *history = vec![Arc::new(message(Role::User, vec![text("a summary")]))],
    }
}

/// A long history is kept in few parts, each written once and seldom copied.
#[test]
fn a_long_history_is_kept_in_few_parts() {
    let mut history: Vec<Arc<Message>> = hello().into_iter().map(Arc::new).collect();
    let mut writer = Writer::default();
    for number in 0..3_000 {
        history.extend(step(number, 1).into_iter().map(Arc::new));
        let (written, rest) = writer.split(&history, true);
        assert!(rest.len() <= 4, "{}", rest.len());
        let sizes: Vec<usize> = written.parts().iter().map(Bytes::len).collect();
        assert!(sizes.windows(2).all(|pair| pair[0] >= 2 * pair[1]), "{sizes:?}");
    }
}

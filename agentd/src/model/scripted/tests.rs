//! Scenarios are played as written, again and again.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::model::{BlockKind, Message, StopReason, ToolInput};

fn message(role: Role, block: serde_json::Value) -> Message {
    Message { role, content: vec![proto::json::JsonText::from_value(&block)] }
}

fn conversation(messages: Vec<Message>) -> Conversation {
    Conversation {
        model: "demo".to_owned(),
        max_tokens: 1,
        effort: None,
        takes: None,
        previous: None,
        compact: false,
        system: String::new(),
        tools: vec![],
        written: None,
        messages: messages.into_iter().map(Arc::new).collect(),
    }
}

fn prompt() -> Message {
    message(Role::User, json!({"type": "text", "text": "Fix it"}))
}

/// Plays one request; the progress comes with it, joined by block.
async fn send(player: &Player, messages: Vec<Message>) -> (Result<Reply, ModelError>, String) {
    let (sender, mut receiver) = mpsc::channel(1000);
    let result = player.send(&conversation(messages), sender).await;
    let mut shown = String::new();
    while let Some(step) = receiver.recv().await {
        if let Progress::Delta { text, .. } = step {
            shown.push_str(&text);
        }
    }
    (result, shown)
}

/// The reply as the next assistant message, and results for its calls.
fn answered(reply: &Reply, result: &str) -> Vec<Message> {
    let assistant = Message { role: Role::Assistant, content: reply.blocks.iter().map(|b| b.raw.clone()).collect() };
    let results = reply.blocks.iter().filter_map(|block| match &block.kind {
        BlockKind::ToolUse(call) => Some(proto::json::JsonText::from_value(
            &json!({"type": "tool_result", "tool_use_id": call.id, "content": result}),
        )),
        _ => None,
    });
    vec![assistant, Message { role: Role::User, content: results.collect() }]
}

fn text_of(reply: &Reply) -> String {
    reply
        .blocks
        .iter()
        .filter_map(|block| match &block.kind {
            BlockKind::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_demo_lists_views_edits_runs_and_answers_within_six_seconds() {
    let player = Player::parse(builtin("demo").unwrap()).unwrap();
    let start = tokio::time::Instant::now();
    let mut messages = vec![prompt()];
    let mut calls = Vec::new();
    let last = loop {
        let reply = send(&player, messages.clone()).await.0.unwrap();
        if reply.stop == StopReason::EndTurn {
            break reply;
        }
        assert_eq!(reply.stop, StopReason::ToolUse);
        for block in &reply.blocks {
            if let BlockKind::ToolUse(call) = &block.kind {
                let ToolInput::Valid(input) = &call.input else { panic!("{call:?}") };
                calls.push((call.name.clone(), input.to_value()["command"].as_str().unwrap().to_owned()));
            }
        }
        messages.extend(answered(&reply, "ok"));
    };
    let calls: Vec<(&str, &str)> = calls.iter().map(|(name, command)| (name.as_str(), command.as_str())).collect();
    let editor = "str_replace_based_edit_tool";
    assert_eq!(calls[1..3], [(editor, "view"), (editor, "str_replace")]);
    assert_eq!((calls[0].0, calls[3].0, calls.len()), ("bash", "bash", 4));
    assert!(calls[0].1.starts_with("ls") && calls[3].1.starts_with("python3 hello.py"));
    assert!(text_of(&last).contains("Ada and Grace"));
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}

#[test]
fn the_demos_edit_fits_its_file_exactly_once() {
    let Scenario { replies, .. } = toml::from_str(builtin("demo").unwrap()).unwrap();
    let edit = replies.iter().flat_map(|reply| &reply.calls).find(|call| call.input.contains_key("old_str")).unwrap();
    let (path, old) = (edit.input["path"].as_str().unwrap(), edit.input["old_str"].as_str().unwrap());
    let (_, content) = demo_files().iter().find(|(name, _)| *name == path).unwrap();
    assert_eq!(content.matches(old).count(), 1);
    assert!(builtin("nothing").is_none());
}

#[tokio::test]
async fn the_same_request_gets_the_same_reply_from_any_player() {
    let scenario = "[[reply]]\ntext = \"one\"\n[[reply]]\ntext = \"two\"\n[[reply.call]]\nname = \"bash\"\ninput = {command = \"ls\"}";
    let mut messages = vec![prompt()];
    let first = send(&Player::parse(scenario).unwrap(), messages.clone()).await.0.unwrap();
    messages.extend(answered(&first, ""));
    messages.push(prompt());
    for _ in 0..2 {
        let reply = send(&Player::parse(scenario).unwrap(), messages.clone()).await.0.unwrap();
        assert_eq!(text_of(&reply), "two");
        let BlockKind::ToolUse(call) = &reply.blocks[1].kind else { panic!("{reply:?}") };
        assert_eq!(call.id, "toolu_scripted_1_0");
        assert_eq!(call.input, ToolInput::Valid(proto::json::JsonText::parse(r#"{"command":"ls"}"#).unwrap()));
    }
}

#[tokio::test]
async fn the_newest_prompt_and_result_stand_in_texts_and_inputs() {
    let scenario = "[[reply]]\ntext = \"{prompt}? {x}\"\n[[reply.call]]\nname = \"bash\"\ninput = {command = \"echo {prompt}\"}\n[[reply]]\ntext = \"It is {result}!\"";
    let player = Player::parse(scenario).unwrap();
    let reply = send(&player, vec![prompt()]).await.0.unwrap();
    assert_eq!(text_of(&reply), "Fix it? {x}");
    assert!(reply.blocks[1].raw.as_str().contains("echo Fix it"));
    let mut messages = vec![prompt()];
    messages.extend(answered(&reply, "7 lines\n"));
    assert_eq!(text_of(&send(&player, messages).await.0.unwrap()), "It is 7 lines!");
}

#[tokio::test]
async fn faults_come_first_and_as_often_as_they_say() {
    let scenario = r#"
        [[reply]]
        text = "abcdefghijkl"
        piece = 4
        [[reply.fault]]
        kind = "overloaded"
        tries = 2
        retry_after_ms = 1500
        [[reply.fault]]
        kind = "cut"
        after_pieces = 2
        [[reply.fault]]
        kind = "refusal"
    "#;
    let player = Player::parse(scenario).unwrap();
    for _ in 0..2 {
        let error = send(&player, vec![prompt()]).await.0.unwrap_err();
        assert_eq!((error.kind, error.status), (ErrorKind::Overloaded, Some(529)));
        assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
    }
    let (cut, shown) = send(&player, vec![prompt()]).await;
    assert_eq!((cut.unwrap_err().kind, shown.as_str()), (ErrorKind::Cut, "abcdefgh"));
    let refused = send(&player, vec![prompt()]).await.0.unwrap();
    assert!(matches!(refused.stop, StopReason::Refusal { category: Some(_), explanation: Some(_) }));
    let (reply, shown) = send(&player, vec![prompt()]).await;
    assert_eq!((text_of(&reply.unwrap()).as_str(), shown.as_str()), ("abcdefghijkl", "abcdefghijkl"));
}

#[tokio::test]
async fn a_broken_input_and_an_odd_stop_reason_are_played_as_written() {
    let scenario = "[[reply]]\nstop = \"max_tokens\"\n[[reply.call]]\nname = \"bash\"\nraw_input = '{\"command\": \"l'";
    let reply = send(&Player::parse(scenario).unwrap(), vec![prompt()]).await.0.unwrap();
    assert_eq!(reply.stop, StopReason::MaxTokens);
    let BlockKind::ToolUse(call) = &reply.blocks[0].kind else { panic!("{reply:?}") };
    assert_eq!(call.input, ToolInput::Broken("{\"command\": \"l".to_owned()));
}

#[tokio::test]
async fn behind_the_last_reply_there_is_an_error_or_the_first_again() {
    let past = vec![prompt(), message(Role::Assistant, json!({"type": "text", "text": "x"})), prompt()];
    let ended = send(&Player::parse("[[reply]]\ntext = \"a\"").unwrap(), past.clone()).await.0.unwrap_err();
    assert!(matches!(ended.kind, ErrorKind::Protocol(_)));
    let again = send(&Player::parse("repeat = true\n[[reply]]\ntext = \"a\"").unwrap(), past).await.0.unwrap();
    assert_eq!(text_of(&again), "a");
}

#[test]
fn a_misspelt_scenario_is_refused_with_its_line() {
    let error = Player::parse("[[reply]]\ntxt = \"a\"").unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
    assert!(matches!(Player::parse("").unwrap_err(), ScenarioError::Empty));
}

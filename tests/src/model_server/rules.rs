//! What a real server refuses in one request, seen alone: headers, fields, order of messages, calls and results, blocks.
//!
//! Pure. What ties the requests of one session together is [`super::history`]'s.

use std::collections::BTreeSet;

use serde_json::Value;

use super::received::Received;

/// Top-level fields of a request; the real server refuses any other.
const FIELDS: [&str; 20] = [
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "stop_sequences",
    "stream",
    "metadata",
    "service_tier",
    "cache_control",
    "container",
    "inference_geo",
    "speed",
    "diagnostics",
    "temperature",
    "top_p",
    "top_k",
];

/// Fields of the list above that version 2026-10-21 took away.
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];

/// API versions that exist.
const VERSIONS: [&str; 2] = ["2026-10-21", "2023-06-01"];

/// Cache markers allowed in one request.
const CACHE_MARKS_MAX: usize = 4;

/// Everything that is wrong with a request, each one sentence.
pub(super) fn check(request: &Received) -> Vec<String> {
    let mut wrong = Vec::new();
    headers(request, &mut wrong);
    let compaction = request.header("anthropic-beta").is_some_and(|betas| betas.contains("compact-2026-09-04"));
    let betas = if compaction { &["compaction"][..] } else { &[] };
    if fields(&request.json, betas, &mut wrong) {
        system(&request.json["system"], &mut wrong);
        messages(request.messages(), &mut wrong);
        let marks = cache_marks(&request.json);
        if marks > CACHE_MARKS_MAX {
            wrong.push(format!("{marks} cache_control markers, at most {CACHE_MARKS_MAX} are allowed"));
        }
    }
    wrong
}

fn headers(request: &Received, wrong: &mut Vec<String>) {
    match request.header("anthropic-version") {
        None => wrong.push("the anthropic-version header is missing".into()),
        Some(version) if !VERSIONS.contains(&version) => wrong.push(format!("anthropic-version {version} is unknown")),
        Some(version) => {
            let gone = SAMPLING.iter().filter(|field| request.json.get(field).is_some());
            let gone = gone.filter(|_| version == "2026-10-21");
            wrong.extend(gone.map(|field| format!("version {version} has no field {field}")));
        }
    }
    if key(request).is_none() {
        wrong.push("neither x-api-key nor Authorization: Bearer holds a key".into());
    }
    match request.header("content-type") {
        Some(kind) if kind.starts_with("application/json") => {}
        other => wrong.push(format!("content-type is {other:?}, not application/json")),
    }
}

/// The key of a request, from either header.
pub(super) fn key(request: &Received) -> Option<&str> {
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    request.header("x-api-key").or(bearer).filter(|key| !key.trim().is_empty())
}

fn fields(json: &Value, betas: &[&str], wrong: &mut Vec<String>) -> bool {
    let Some(object) = json.as_object() else {
        wrong.push("the body is no JSON object".into());
        return false;
    };
    let unknown = object.keys().filter(|key| !FIELDS.contains(&key.as_str()) && !betas.contains(&key.as_str()));
    wrong.extend(unknown.map(|key| format!("{key}: Extra inputs are not permitted")));
    if json["model"].as_str().is_none_or(str::is_empty) {
        wrong.push("model is missing".into());
    }
    if json["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        wrong.push("max_tokens is missing or not positive".into());
    }
    if json["messages"].as_array().is_none_or(Vec::is_empty) {
        wrong.push("messages is missing or empty".into());
        return false;
    }
    tools(&json["tools"], wrong);
    true
}

fn tools(tools: &Value, wrong: &mut Vec<String>) {
    let mut names = BTreeSet::new();
    for tool in tools.as_array().into_iter().flatten() {
        let name = tool["name"].as_str().unwrap_or_default();
        if !names.insert(name) {
            wrong.push(format!("the tool name {name} stands twice"));
        }
        match tool["type"].as_str() {
            None | Some("custom") if tool["input_schema"]["type"] != "object" => {
                wrong.push(format!("tool {name}: input_schema must be an object schema"));
            }
            None | Some("custom") => {}
            Some(kind) => {
                let named = typed_name(kind);
                if named.is_none_or(|expected| expected != name) {
                    wrong.push(format!("tool {name}: type {kind} goes with the name {named:?}"));
                }
                let banned = ["description", "input_schema", "eager_input_streaming"];
                let banned = banned.iter().filter(|field| tool.get(field).is_some());
                wrong.extend(banned.map(|field| format!("tool {name}: {field} is not allowed with type {kind}")));
            }
        }
    }
}

fn typed_name(kind: &str) -> Option<&'static str> {
    match kind {
        "bash_20250124" => Some("bash"),
        "text_editor_20250728" | "text_editor_20250429" => Some("str_replace_based_edit_tool"),
        _ => None,
    }
}

fn system(system: &Value, wrong: &mut Vec<String>) {
    for block in system.as_array().into_iter().flatten() {
        if block["type"] != "text" || block["text"].as_str().is_none_or(str::is_empty) {
            wrong.push("system may hold text blocks with text only".into());
        }
    }
}

fn messages(messages: &[Value], wrong: &mut Vec<String>) {
    let mut ids = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let at = format!("messages.{index}");
        match (index, role) {
            (0, "user") | (1.., "user" | "assistant" | "system") => {}
            // The summary of a compaction on the server.
            (0, "assistant") if message["content"][0]["type"] == "compaction" => {}
            (0, _) => wrong.push(format!("{at}: the first message must be from user, not {role:?}")),
            _ => wrong.push(format!("{at}: role {role:?} is unknown")),
        }
        if role == before {
            wrong.push(format!("{at}: two messages from {role} in a row; roles must alternate"));
        }
        before = role;
        results(&at, role, &message["content"], &mut open, wrong);
        content(&at, &message["content"], wrong);
        for id in blocks(&message["content"]).filter(|block| block["type"] == "tool_use").map(id_of) {
            if role != "assistant" {
                wrong.push(format!("{at}: tool_use {id} in a message from {role}"));
            }
            if !ids.insert(id.clone()) {
                wrong.push(format!("{at}: tool_use id {id} stands twice"));
            }
            open.push(id);
        }
    }
    if !open.is_empty() {
        wrong
            .push(format!("tool_use ids were found without tool_result blocks immediately after: {}", open.join(", ")));
    }
}

/// Every call of the message before is answered here exactly once, and before anything else.
fn results(at: &str, role: &str, content: &Value, open: &mut Vec<String>, wrong: &mut Vec<String>) {
    let mut other_seen = false;
    for block in blocks(content) {
        if block["type"] != "tool_result" {
            other_seen = true;
            continue;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if role != "user" {
            wrong.push(format!("{at}: tool_result {id} in a message from {role}"));
        }
        if other_seen {
            wrong.push(format!("{at}: tool_result {id} must come before all other content"));
        }
        match open.iter().position(|waiting| waiting == id) {
            Some(position) => drop(open.remove(position)),
            None => {
                wrong.push(format!("{at}: tool_result {id} answers no call of the message before, or answers twice"))
            }
        }
        for inner in blocks(&block["content"]) {
            text("tool_result", at, inner, wrong);
        }
    }
    if !open.is_empty() {
        let open = std::mem::take(open).join(", ");
        wrong.push(format!("{at}: tool_use ids were found without tool_result blocks immediately after: {open}"));
    }
}

fn content(at: &str, content: &Value, wrong: &mut Vec<String>) {
    match content {
        Value::String(text) if text.is_empty() => wrong.push(format!("{at}: messages must have non-empty content")),
        Value::Array(blocks) if blocks.is_empty() => wrong.push(format!("{at}: messages must have non-empty content")),
        Value::String(_) => {}
        Value::Array(blocks) => blocks.iter().for_each(|block| text("content", at, block, wrong)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            wrong.push(format!("{at}: content must be a string or an array"));
        }
    }
}

fn text(place: &str, at: &str, block: &Value, wrong: &mut Vec<String>) {
    match block["type"].as_str() {
        None => wrong.push(format!("{at}: a block of {place} has no type")),
        Some("text") if block["text"].as_str().is_none_or(str::is_empty) => {
            wrong.push(format!("{at}: text content blocks must be non-empty"));
        }
        Some("tool_use") if !block["input"].is_object() => {
            wrong.push(format!("{at}: tool_use.input must be an object"));
        }
        Some(_) => {}
    }
}

fn id_of(block: &Value) -> String {
    block["id"].as_str().unwrap_or_default().to_owned()
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

fn cache_marks(json: &Value) -> usize {
    match json {
        Value::Object(object) => {
            let own = usize::from(object.contains_key("cache_control"));
            // A tool's input is the model's own text: a key of that name there is no marker.
            let rest = object.iter().filter(|(key, _)| *key != "input" && *key != "cache_control");
            own + rest.map(|(_, value)| cache_marks(value)).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(cache_marks).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    fn request(json: Value) -> Received {
        let header = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        Received {
            number: 1,
            target: "/v1/messages".into(),
            headers: vec![
                header("anthropic-version", "2026-10-21"),
                header("x-api-key", "k"),
                header("content-type", "application/json"),
            ],
            body: json.to_string().into_bytes(),
            json,
            at: Instant::now(),
        }
    }

    fn wrong(messages: Value) -> String {
        check(&request(json!({ "model": "m", "max_tokens": 9, "messages": messages }))).join("\n")
    }

    fn call(id: &str) -> Value {
        json!({ "type": "tool_use", "id": id, "name": "bash", "input": { "command": "ls" } })
    }

    fn result(id: &str) -> Value {
        json!({ "type": "tool_result", "tool_use_id": id, "content": "ok" })
    }

    #[test]
    fn a_correct_tool_loop_passes() {
        let messages = json!([
            { "role": "user", "content": "go" },
            { "role": "assistant", "content": [call("a"), call("b")] },
            { "role": "user", "content": [result("b"), result("a"), { "type": "text", "text": "and?" }] },
        ]);
        assert_eq!(wrong(messages), "");
    }

    #[test]
    fn calls_and_results_must_pair() {
        let go = json!({ "role": "user", "content": "go" });
        let both = json!({ "role": "assistant", "content": [call("a"), call("b")] });
        let missing = json!([go, both, { "role": "user", "content": [result("a")] }]);
        assert!(wrong(missing).contains("without tool_result blocks immediately after: b"));
        let twice = json!([go, both, { "role": "user", "content": [result("a"), result("b"), result("a")] }]);
        assert!(wrong(twice).contains("answers twice"));
        let late = json!([go, both, { "role": "user", "content": [{ "type": "text", "text": "x" }, result("a"), result("b")] }]);
        assert!(wrong(late).contains("must come before"));
        assert!(wrong(json!([go, both])).contains("without tool_result"));
    }

    #[test]
    fn roles_alternate_from_user_and_nothing_is_empty() {
        assert!(wrong(json!([{ "role": "assistant", "content": "x" }])).contains("first message"));
        let user = json!({ "role": "user", "content": "x" });
        assert!(wrong(json!([user, user])).contains("alternate"));
        assert!(wrong(json!([{ "role": "user", "content": [] }])).contains("non-empty"));
        let empty = json!([{ "role": "user", "content": [{ "type": "text", "text": "" }] }]);
        assert!(wrong(empty).contains("text content blocks must be non-empty"));
    }

    #[test]
    fn headers_fields_and_markers_are_checked() {
        let mut bad = request(json!({
            "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "x" }], "surprise": 1, "top_k": 2,
        }));
        bad.headers.retain(|(name, _)| name != "x-api-key");
        let text = check(&bad).join("\n");
        assert!(text.contains("surprise: Extra inputs are not permitted"), "{text}");
        assert!(text.contains("no field top_k"), "{text}");
        assert!(text.contains("neither x-api-key"), "{text}");
        let marked = json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } });
        let five = json!([{ "role": "user", "content": [marked, marked, marked, marked, marked] }]);
        assert!(wrong(five).contains("5 cache_control markers"));
    }
}

//! What ties the requests of one session together: system and tools stay, messages only grow, replies come back as they
//! were sent, refused ones not at all.
//!
//! A session is known by the text of its first message, so sessions of one test must begin with different prompts.
//! Compared are the exact bytes of each block, without its `cache_control`, which may move. Neighbours of one role count
//! as one message, as the API merges them.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::received::Received;

/// What was seen of all sessions so far.
#[derive(Debug, Default)]
pub(super) struct Histories {
    /// The client is killed again and again: a request goes out while its row is being written, so what the last message
    /// of an earlier request said may be said anew, and otherwise.
    pub(super) killed: bool,
    sessions: HashMap<String, History>,
}

/// What was seen of one session.
#[derive(Debug)]
struct History {
    system: String,
    tools: String,
    /// Role and block of the longest request so far that had a whole reply: what was not answered is not yet said.
    blocks: Vec<(String, String)>,
    /// What the reply to a request with so many blocks must look like when it comes back.
    replies: HashMap<usize, Vec<Value>>,
}

impl Histories {
    /// Everything by which a request breaks with its session's earlier ones.
    pub(super) fn check(&mut self, request: &Received) -> Vec<String> {
        let mut wrong = Vec::new();
        let Some(seen) = Seen::read(&request.body) else {
            return vec!["the body does not read as a request".into()];
        };
        let first = request.first_prompt();
        let Some(history) = self.sessions.get_mut(&first) else {
            let replies = HashMap::new();
            let Seen { system, tools, .. } = seen;
            self.sessions.insert(first, History { system, tools, blocks: Vec::new(), replies });
            return wrong;
        };
        if history.system != seen.system {
            wrong.push(differ("system changed within a session", &history.system, &seen.system));
        }
        if history.tools != seen.tools {
            wrong.push(differ("tools changed within a session", &history.tools, &seen.tools));
        }
        if self.killed {
            history.forget_unsaid(&seen.blocks);
        }
        for (index, old) in history.blocks.iter().enumerate() {
            match seen.blocks.get(index) {
                Some(new) if new == old => {}
                Some(new) => {
                    wrong.push(differ(&format!("block {index} of the history changed"), &old.1, &new.1));
                    break;
                }
                None => {
                    wrong.push(format!("the history shrank from {} to {index} blocks", history.blocks.len()));
                    break;
                }
            }
        }
        wrong.extend(history.replies_kept(&seen.blocks));
        wrong
    }

    /// Notes what was replied in a whole message, so that its way back can be checked; `kept` is `None` when it must not
    /// come back whole.
    pub(super) fn replied(&mut self, request: &Received, kept: Option<Vec<Value>>) {
        let Some(seen) = Seen::read(&request.body) else { return };
        let Some(history) = self.sessions.get_mut(&request.first_prompt()) else { return };
        match kept {
            Some(blocks) => history.replies.insert(seen.blocks.len(), blocks),
            None => history.replies.remove(&seen.blocks.len()),
        };
        if seen.blocks.len() > history.blocks.len() {
            history.blocks = seen.blocks;
        }
    }
}

impl History {
    /// Drops what the last message so far said from where the new request says something else.
    fn forget_unsaid(&mut self, new: &[(String, String)]) {
        let said = self.blocks.iter().rposition(|(role, _)| role != "user").map_or(0, |at| at + 1);
        let same = self.blocks.iter().zip(new).take_while(|(old, new)| old == new).count();
        if same >= said {
            self.blocks.truncate(same);
            self.replies.retain(|at, _| *at <= same);
        }
    }

    fn replies_kept(&self, blocks: &[(String, String)]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (at, reply) in &self.replies {
            let back = blocks.get(*at..).unwrap_or_default();
            let back = back.iter().take_while(|(role, _)| role == "assistant").map(|(_, block)| block);
            let back: Vec<Value> =
                back.map(|block| super::received::lenient(block.as_bytes()).unwrap_or_default()).collect();
            // Nothing of it: the client gave the reply up (an interrupt, a restart) and says so by leaving it out.
            if back.is_empty()
                || (back.len() == reply.len() && back.iter().zip(reply).all(|(back, sent)| same(sent, back)))
            {
                continue;
            }
            let (sent, back) = (Value::from(reply.clone()).to_string(), Value::from(back).to_string());
            wrong.push(differ("a reply came back changed", &sent, &back));
        }
        wrong
    }
}

/// Whether a block came back as it was sent. What a client makes of input that is no JSON is its own choice, as long as it
/// is an object.
fn same(sent: &Value, back: &Value) -> bool {
    if sent["type"] != "tool_use" || !sent["input"].is_null() {
        return sent == back;
    }
    let without_input = |block: &Value| {
        let mut block = block.clone();
        block["input"] = Value::Null;
        block
    };
    without_input(back) == *sent && back["input"].is_object()
}

fn differ(what: &str, old: &str, new: &str) -> String {
    let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| {
        let from = same.saturating_sub(60);
        String::from_utf8_lossy(text.as_bytes().get(from..(same + 60).min(text.len())).unwrap_or_default()).into_owned()
    };
    format!("{what} at byte {same}: …{} … became …{} …", around(old), around(new))
}

/// The parts of a request that a session may not change, as the bytes received.
struct Seen {
    system: String,
    tools: String,
    blocks: Vec<(String, String)>,
}

#[derive(serde::Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
}

#[derive(serde::Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

impl Seen {
    fn read(body: &[u8]) -> Option<Self> {
        let body: Body<'_> = serde_json::from_slice(body).ok()?;
        let mut blocks = Vec::new();
        for message in &body.messages {
            let content = content(message.content)?;
            blocks.extend(content.into_iter().map(|block| (message.role.clone(), block)));
        }
        let plain = |raw: Option<&RawValue>| raw.map_or(Some(String::new()), |raw| Some(content(raw)?.join(",")));
        Some(Self { system: plain(body.system)?, tools: plain(body.tools)?, blocks })
    }
}

/// The blocks of a content, each as its bytes without `cache_control`. A string is one text block.
fn content(raw: &RawValue) -> Option<Vec<String>> {
    if raw.get().starts_with('"') {
        return Some(vec![format!(r#"{{"type":"text","text":{}}}"#, raw.get())]);
    }
    let blocks: Vec<Fields<'_>> = serde_json::from_str(raw.get()).ok()?;
    let plain = |fields: &Fields<'_>| {
        let fields = fields.0.iter().filter(|(key, _)| key != "cache_control");
        let fields: Vec<String> = fields.map(|(key, value)| format!("{key:?}:{}", value.get())).collect();
        format!("{{{}}}", fields.join(","))
    };
    Some(blocks.iter().map(plain).collect())
}

/// An object's fields in order, values as their bytes.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    fn request(body: &str) -> Received {
        let json = serde_json::from_str(body).expect("JSON");
        Received { number: 1, target: String::new(), headers: vec![], body: body.into(), json, at: Instant::now() }
    }

    fn body(system: &str, messages: &Value) -> String {
        json!({ "system": system, "tools": [{ "name": "t" }], "messages": messages }).to_string()
    }

    #[test]
    fn a_history_that_grows_passes_and_cache_marks_may_move() {
        let mut histories = Histories::default();
        let first = request(&body("s", &json!([{ "role": "user", "content": "go" }])));
        assert!(histories.check(&first).is_empty());
        histories.replied(&first, Some(vec![json!({ "type": "text", "text": "yes" })]));
        let marked = json!([
            { "role": "user", "content": [{ "type": "text", "text": "go", "cache_control": { "type": "ephemeral" } }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "yes" }] },
            { "role": "user", "content": "on" },
        ]);
        assert_eq!(histories.check(&request(&body("s", &marked))), Vec::<String>::new());
    }

    #[test]
    fn a_changed_system_block_or_reply_is_told() {
        let mut histories = Histories::default();
        let first = request(&body("s", &json!([{ "role": "user", "content": "go" }])));
        histories.check(&first);
        histories.replied(&first, Some(vec![json!({ "type": "text", "text": "yes" })]));
        let changed = json!([
            { "role": "user", "content": "go" },
            { "role": "assistant", "content": [{ "type": "text", "text": "no" }] },
            { "role": "user", "content": "on" },
        ]);
        let wrong = histories.check(&request(&body("other", &changed))).join("\n");
        assert!(wrong.contains("system changed"), "{wrong}");
        assert!(wrong.contains("a reply came back changed"), "{wrong}");
        histories.replied(&request(&body("s", &changed)), None);
        let shorter = request(&body("s", &json!([{ "role": "user", "content": "go" }])));
        assert!(histories.check(&shorter).join("\n").contains("the history shrank"));
    }

    #[test]
    fn a_killed_client_may_say_its_last_message_anew_and_nothing_before_it() {
        let mut histories = Histories { killed: true, ..Histories::default() };
        let told = |answer: &str, result: &str| {
            request(&body(
                "s",
                &json!([
                    { "role": "user", "content": "go" },
                    { "role": "assistant", "content": [{ "type": "text", "text": answer }] },
                    { "role": "user", "content": result },
                ]),
            ))
        };
        let first = told("a", "one");
        histories.check(&first);
        histories.replied(&first, None);
        let again = told("a", "two");
        assert_eq!(histories.check(&again), Vec::<String>::new());
        histories.replied(&again, None);
        assert!(!histories.check(&told("b", "two")).is_empty());
    }

    #[test]
    fn key_order_and_number_form_inside_a_block_count() {
        let one = |input: &str| {
            request(&format!(
                r#"{{"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{{"type":"tool_use","input":{input}}}]}}]}}"#
            ))
        };
        let mut histories = Histories::default();
        let first = one(r#"{"a":1.0,"b":2}"#);
        histories.check(&first);
        histories.replied(&first, None);
        assert!(histories.check(&one(r#"{"a":1.0,"b":2}"#)).is_empty());
        assert!(!histories.check(&one(r#"{"b":2,"a":1.0}"#)).is_empty());
        assert!(!histories.check(&one(r#"{"a":1.00,"b":2}"#)).is_empty());
    }
}

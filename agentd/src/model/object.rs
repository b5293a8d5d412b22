//! One JSON object kept as it was written: the order of its keys, unknown keys, and each value's own text.
//!
//! The API binds a thinking block to every byte before it and promises nothing about how it compares them, so a reply
//! must go back as it came. A `serde_json::Value` would keep the order but rewrite numbers (`1e5`, 20-digit integers);
//! this keeps the text. It knows nothing of messages or blocks.

use std::fmt;

use proto::json::JsonText;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON object whose values are still text. Of a key that comes twice the last one counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Object(Vec<(String, Box<RawValue>)>);

impl Object {
    /// The value of a key, unless it is absent or `null`.
    pub(super) fn get(&self, key: &str) -> Option<&RawValue> {
        let (_, value) = self.0.iter().rev().find(|(name, _)| name == key)?;
        (value.get() != "null").then_some(value)
    }

    /// The value of a key read as some type; absent, `null` and other types are `None`.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Option<T> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// A string, or the empty string.
    pub(super) fn text(&self, key: &str) -> String {
        self.read(key).unwrap_or_default()
    }

    /// Replaces a value in its place, or adds it at the end.
    pub(super) fn set(&mut self, key: &str, value: Box<RawValue>) {
        match self.0.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Replaces or adds a string.
    pub(super) fn set_text(&mut self, key: &str, text: &str) {
        self.set(key, raw_string(text));
    }

    /// The object as one line of JSON.
    pub(super) fn to_json(&self) -> JsonText {
        let mut out = String::with_capacity(self.0.iter().map(|(key, value)| key.len() + value.get().len() + 4).sum());
        out.push('{');
        for (at, (key, value)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(raw_string(key).get());
            out.push(':');
            out.push_str(value.get());
        }
        out.push('}');
        one_line(&out).unwrap_or_else(|| JsonText::from_value(&serde_json::json!({})))
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// JSON on one line with every token as it was: a line break can only stand between tokens, where a space means the
/// same.
pub(super) fn one_line(json: &str) -> Option<JsonText> {
    let json = json.trim();
    if json.contains(['\n', '\r']) {
        return JsonText::parse(&json.replace(['\n', '\r'], " ")).ok();
    }
    JsonText::parse(json).ok()
}

/// A string as JSON text.
pub(super) fn raw_string(text: &str) -> Box<RawValue> {
    // A string always serialises; the fallback is unreachable and still valid JSON.
    serde_json::value::to_raw_value(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_own_text_and_order() {
        let text = r#"{"z":1e5,"a":12345678901234567890123,"u":"\u00e9","n":{"b":1,"a":2}}"#;
        let object: Object = serde_json::from_str(text).unwrap();
        assert_eq!(object.to_json().as_str(), text);
    }

    #[test]
    fn a_replaced_value_stays_in_its_place() {
        let mut object: Object = serde_json::from_str(r#"{"type":"text","text":"","flag":true}"#).unwrap();
        object.set_text("text", "a\"b");
        assert_eq!(object.to_json().as_str(), r#"{"type":"text","text":"a\"b","flag":true}"#);
    }

    #[test]
    fn line_breaks_between_tokens_become_spaces_and_numbers_stay() {
        assert_eq!(
            one_line("{\"a\":\r\n 1e5,\n\"b\": \"x\\ny\"}").unwrap().as_str(),
            "{\"a\":   1e5, \"b\": \"x\\ny\"}"
        );
    }
}

//! JSON carried as text: the one way free-form JSON (tool inputs) crosses the positional codec.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

/// One valid JSON document on one line. In bincode it is a string; in JSON it stands there as the document itself.
///
/// Invariant: the text parses as JSON and holds no line break outside a string, so it fits a JSON-lines frame.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonText(Box<str>);

impl JsonText {
    /// Takes text that must be one JSON document; every token stays as it is written.
    ///
    /// # Errors
    /// The parser's own error when the text is not exactly one JSON document.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        // `RawValue` checks the syntax and keeps numbers and key order as they were written.
        let raw: &RawValue = serde_json::from_str(text)?;
        let text = raw.get();
        // A raw line break cannot stand inside a JSON string: it is white space, and a space is the same.
        Ok(Self(text.replace(['\n', '\r'], " ").into_boxed_str()))
    }

    /// The document of any value.
    #[must_use]
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(value.to_string().into_boxed_str())
    }

    /// The document's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The document as a value.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        // Invariant of the type: it parses. Null is unreachable and harmless.
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
            raw.serialize(serializer)
        } else {
            serializer.serialize_str(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let raw = Box::<RawValue>::deserialize(deserializer)?;
            Self::parse(raw.get()).map_err(D::Error::custom)
        } else {
            let text = String::deserialize(deserializer)?;
            Self::parse(&text).map_err(D::Error::custom)
        }
    }
}

impl JsonSchema for JsonText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JsonText".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "Any JSON document." })
    }
}

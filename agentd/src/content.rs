//! The parts of a tool's result: a leaf that tools, store and session share.

use serde::{Deserialize, Serialize};

/// One part of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// Base64.
        data: String,
    },
}

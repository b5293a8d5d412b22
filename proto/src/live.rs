//! Live deltas: what is being written right now. They have no sequence number and are not stored: each names the block
//! it extends and its offset, and the finished row replaces them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{CallId, RequestId, SessionId};

/// A piece of something unfinished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Live {
    /// A piece of a reply.
    Text(LiveText),
    /// A piece of a command's output.
    Output(LiveOutput),
    /// What was shown of this request's reply is void: it is being sent again.
    Restarted(LiveRestarted),
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveText {
    /// The session.
    pub session: SessionId,
    /// The request whose reply this is.
    pub request: RequestId,
    /// The block's index in the reply.
    pub index: u32,
    /// What kind of block it is.
    pub kind: LiveKind,
    /// Bytes of this block that came before this piece.
    pub offset: u64,
    /// The piece.
    pub text: String,
}

/// What kind of block is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveKind {
    /// Text for the user.
    Text,
    /// Thinking.
    Thinking,
    /// A tool call: `text` is the tool's name first (offset 0), its input follows in the finished row.
    Call,
}

/// A piece of a command's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveOutput {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// Bytes of output before this piece, as the command wrote them.
    pub offset: u64,
    /// Bytes this piece stands for; the text differs where bytes were not UTF-8.
    pub bytes: u64,
    /// The piece as text. It may hold control sequences: a client never sends it to a terminal as it is.
    pub text: String,
}

/// What was shown of a reply is void.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveRestarted {
    /// The session.
    pub session: SessionId,
    /// The request.
    pub request: RequestId,
}

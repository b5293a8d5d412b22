//! File operations asked of the shim, and their structured answers.

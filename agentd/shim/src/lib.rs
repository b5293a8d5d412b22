//! The hands of agentd: one process per session that owns bash, its children, the output spool and the files.

pub mod files;

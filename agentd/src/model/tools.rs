//! The definitions of the tools that every session has, as the model is told of them. Pure; what they do is
//! [`crate::tools`]' business.

use proto::json::JsonText;
use serde_json::json;

use super::wire::Profile;

/// The tools' definitions, in the order in which they are sent. `max_characters` is the longest view of a file.
///
/// Anthropic's models were trained on the first two by type; other servers need schemas. The names are the same.
#[must_use]
pub fn tool_definitions(profile: Profile, max_characters: u32) -> Vec<JsonText> {
    let tools = match profile {
        Profile::Anthropic => [
            json!({"type": "bash_20250124", "name": "bash"}),
            json!({
                "type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": max_characters,
            }),
        ],
        Profile::Compat => [bash_with_schema(), editor_with_schema()],
    };
    tools.iter().chain(&[grep(), glob()]).chain(&jobs()).map(JsonText::from_value).collect()
}

/// Background commands: tools of their own, because `bash` takes no parameters beside the command.
fn jobs() -> [serde_json::Value; 3] {
    [
        json!({
            "name": "bash_background",
            "description": "Starts a command that outlives the call: a server, a watcher, a build or test run of more than a \
                minute. Returns its job at once. It runs in a copy of the bash session (directory, exported variables, \
                functions), without input, and cannot change the session. You are told when it ends, so do not poll; go on \
                with other work or end your turn. Do not put & behind it.",
            "input_schema": {
                "type": "object",
                "properties": {
                    "command": {"type": "string"},
                    "description": {"type": "string", "description": "What it is for, in a few words."},
                    "deadline_seconds": {"type": "integer", "description": "Ended after so long; 3600 if left out."},
                    "silence_seconds": {
                        "type": "integer", "description": "You are told once when it prints nothing for so long.",
                    },
                },
                "required": ["command"],
            },
        }),
        json!({
            "name": "job_output",
            "description": "Shows what a background job printed (the last part, or from byte since on) and its state. Without \
                job it lists all jobs.",
            "input_schema": {
                "type": "object",
                "properties": {
                    "job": {"type": "string"},
                    "since": {"type": "integer"},
                    "wait_seconds": {"type": "integer", "description": "Wait so long for its end, at most 300."},
                },
                "required": [],
            },
        }),
        json!({
            "name": "job_stop",
            "description": "Ends a background job and all its processes, also what it left behind.",
            "input_schema": {
                "type": "object", "properties": {"job": {"type": "string"}}, "required": ["job"],
            },
        }),
    ]
}

fn bash_with_schema() -> serde_json::Value {
    json!({
        "name": "bash",
        "description": "Runs a command in one bash that lives as long as the session: the directory, variables and \
            background jobs carry over to the next call. The result is what the command wrote, errors included, and its \
            exit status. Nothing can be typed into a running command. With restart a fresh bash takes its place.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "What to run. Not needed with restart."},
                "restart": {"type": "boolean", "description": "true ends this bash and starts a new one."},
            },
            "required": [],
        },
    })
}

fn editor_with_schema() -> serde_json::Value {
    // No minItems or minimum: grammar-based servers stumble over them.
    json!({
        "name": "str_replace_based_edit_tool",
        "description": "Reads and changes text files. view: a file with line numbers, or what a directory holds. create: \
            a new file. str_replace: puts new_str in the place of old_str, which must occur exactly once. insert: adds \
            insert_text after line insert_line, where 0 is the file's start.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert"]},
                "path": {"type": "string", "description": "The file or directory."},
                "view_range": {
                    "type": "array", "items": {"type": "integer"},
                    "description": "view: the first and the last line, from 1; -1 as the last is the end.",
                },
                "file_text": {"type": "string", "description": "create: all of the file."},
                "old_str": {"type": "string", "description": "str_replace: the exact text to replace."},
                "new_str": {"type": "string", "description": "str_replace: what takes its place; empty deletes."},
                "insert_line": {"type": "integer", "description": "insert: the line after which the text goes."},
                "insert_text": {"type": "string", "description": "insert: the text."},
            },
            "required": ["command", "path"],
        },
    })
}

fn grep() -> serde_json::Value {
    json!({
        "name": "grep",
        "description": "Searches the contents of files. Hidden files and what .gitignore names are left out unless all is \
            true.",
        "input_schema": {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "A regular expression, in Rust's syntax."},
                "path": {"type": "string", "description": "File or directory; if left out the current directory."},
                "glob": {"type": "string", "description": "Only such files, for example *.rs or src/**/*.{ts,tsx}."},
                "output_mode": {
                    "type": "string", "enum": ["files_with_matches", "content", "count"],
                    "description": "files_with_matches if left out; content shows the lines.",
                },
                "context": {"type": "integer", "description": "content: lines around each match."},
                "ignore_case": {"type": "boolean"},
                "multiline": {"type": "boolean", "description": "A match may span lines."},
                "all": {"type": "boolean"},
                "head_limit": {"type": "integer", "description": "At most so many files or lines."},
            },
            "required": ["pattern"],
        },
    })
}

fn glob() -> serde_json::Value {
    json!({
        "name": "glob",
        "description": "Finds files by name, the last changed first. Hidden files and what .gitignore names are left out \
            unless all is true.",
        "input_schema": {
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "For example *.rs, src/**/*.ts or {a,b}/*; without / it matches at any depth.",
                },
                "path": {"type": "string", "description": "The directory; if left out the current one."},
                "all": {"type": "boolean"},
            },
            "required": ["pattern"],
        },
    })
}

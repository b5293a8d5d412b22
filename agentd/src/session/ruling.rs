//! What the policy says of a call.

use std::path::Path;

use super::machine::Ruling;
use crate::tools::call::Parsed;
use crate::tools::editor;

/// Plain views and searches run; everything else is the user's to decide.
pub(super) fn rule(parsed: &Parsed, _workspace: &Path) -> Ruling {
    match parsed {
        Parsed::Editor(input) if editor::is_view(input) => Ruling::Allow { rule: "views do not ask".into() },
        Parsed::Search(_) => Ruling::Allow { rule: "searches do not ask".into() },
        Parsed::Editor(_) => Ruling::Ask { reason: "it changes a file".into() },
        Parsed::Command(_) => Ruling::Ask { reason: "it runs a command".into() },
        Parsed::Restart => Ruling::Ask { reason: "it ends everything the shell runs".into() },
    }
}

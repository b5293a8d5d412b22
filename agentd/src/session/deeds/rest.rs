//! The shell of an idle session, put to rest.

use std::sync::Arc;

use super::super::shell_rest;
use super::{Deeds, Slot};
use crate::model::wire::Writer;

impl Deeds {
    /// Whether it is known that there is a shell.
    pub(in crate::session) fn has_shell(&self) -> bool {
        matches!(self.shell, Slot::Up(_))
    }

    /// Finds out whether nothing runs in the shell, and keeps what it is to come back with.
    pub(in crate::session) fn keep_for_rest(&mut self) {
        if let Slot::Up(shell) = &self.shell {
            let (context, news) = (Arc::clone(&self.context), self.news.clone());
            self.tasks.spawn(shell_rest::keep(self.session, self.cwd.clone(), shell.clone(), context, news));
        }
    }

    /// Ends an idle shell; the next one takes what was kept.
    pub(in crate::session) async fn rest(&mut self) {
        self.end_shell().await;
        // What the client brought once is older than what the shell had at last.
        self.env = None;
        self.had_shell = false;
        // Memory for a session that nobody uses: the next request writes its history anew.
        self.writer = Writer::default();
    }
}

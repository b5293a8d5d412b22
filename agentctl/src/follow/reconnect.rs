//! When the daemon goes away under a client: find the next one and go on after the last row.
//!
//! A daemon that died is started again: its sessions' commands still run and somebody must finish their turns. A daemon
//! that said goodbye was stopped on purpose: it is waited for (an upgrade takes seconds), never started against
//! somebody's will.

use std::time::Duration;

use proto::handshake::Role;
use proto::request::{Attach, Request};
use tokio::time::{Instant, sleep};

use super::{Follow, Output};
use crate::connect::Connection;
use crate::error::CtlError;
use crate::render::notes;
use crate::start;

/// How long a daemon that said goodbye is waited for: a restart by systemd or an upgrade takes a few seconds.
const RETURN_WAIT: Duration = Duration::from_secs(10);

/// Pause between two looks for it.
const RETURN_PAUSE: Duration = Duration::from_millis(200);

/// How often one client starts a new daemon in place of a dead one. A daemon that dies this often would do so again.
const RESTARTS_MAX: u32 = 5;

impl Follow<'_> {
    pub(super) async fn reconnect(&mut self, goodbye: Option<String>) -> Result<(), CtlError> {
        self.lost += 1;
        if self.lost > RESTARTS_MAX {
            return Err(CtlError::Gone);
        }
        if self.output != Output::Json {
            let why = goodbye.as_deref().map_or("agentd went away".to_owned(), |why| format!("agentd says: {why}"));
            self.say(&notes::remark(&format!("{why}; connecting again")))?;
        }
        self.connection = match goodbye {
            Some(_) => self.wait_for_return().await?,
            None => start::connect(self.context, self.role).await?,
        };
        self.subscribe().await?;
        if let Some((goal, prompt)) = &self.goal
            && !goal.accepted()
        {
            // The same id: if it did arrive before, this changes nothing.
            let prompt = prompt.clone();
            self.connection.call(Request::SendPrompt(prompt)).await?;
        }
        Ok(())
    }

    async fn wait_for_return(&self) -> Result<Connection, CtlError> {
        let until = Instant::now() + RETURN_WAIT;
        loop {
            match start::try_connect(self.context, self.role).await {
                Err(CtlError::Unreachable { .. } | CtlError::Lost | CtlError::Connection(_))
                    if Instant::now() < until => {}
                Err(CtlError::Unreachable { .. }) => return Err(CtlError::Gone),
                other => return other,
            }
            sleep(RETURN_PAUSE).await;
        }
    }

    /// Subscribes after the last row that was shown.
    pub(super) async fn subscribe(&mut self) -> Result<(), CtlError> {
        let attach =
            Attach { session: self.session.to_string(), since: self.view.last, endpoint: self.context.endpoint() };
        let attached = crate::answer!(self.connection, Request::Attach(attach), Attached)?;
        // Questions that were answered meanwhile are closed by their rows; this covers those of a shortened log.
        self.view.open.retain(|open| attached.session.approvals.iter().any(|other| other.id == open.id));
        Ok(())
    }
}

/// Which role a follower connects with.
pub(crate) fn role(read_only: bool) -> Role {
    if read_only { Role::Observer } else { Role::Driver }
}

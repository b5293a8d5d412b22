//! Who else is attached: said when somebody comes or goes.

use proto::response::{Attendee, Presence};

use super::{Follow, Output};
use crate::error::CtlError;
use crate::render::{notes, session};

impl Follow<'_> {
    /// Says who came and who went since the last time; at first, who else is here.
    pub(crate) fn presence(&mut self, presence: &Presence) -> Result<(), CtlError> {
        let before = std::mem::replace(&mut self.attached, presence.clients.clone());
        // The status line counts them.
        if let Some(info) = &mut self.info {
            info.clients.clone_from(&presence.clients);
            self.dirty = true;
        }
        if self.output != Output::Full {
            return Ok(());
        }
        let mut came = without(&presence.clients, &before);
        if before.is_empty() {
            // The list begins with those who were here before; this client is the last of its kind in it.
            let me = self.context.client();
            if let Some(at) = came.iter().rposition(|c| c.program == me.program && c.terminal == me.terminal) {
                came.remove(at);
            }
            return came.iter().try_for_each(|client| {
                self.say(&notes::remark(&format!("{} is attached too", session::attendee(client))))
            });
        }
        came.iter()
            .try_for_each(|client| self.say(&notes::remark(&format!("{} attached", session::attendee(client)))))?;
        let went = without(&before, &presence.clients);
        went.iter().try_for_each(|client| self.say(&notes::remark(&format!("{} left", session::attendee(client)))))
    }
}

/// Those of `all` that are not in `others`, each counted.
fn without(all: &[Attendee], others: &[Attendee]) -> Vec<Attendee> {
    let mut others = others.to_vec();
    let mut rest = Vec::new();
    for client in all {
        match others.iter().position(|other| other == client) {
            Some(at) => drop(others.swap_remove(at)),
            None => rest.push(client.clone()),
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use proto::handshake::Role;

    use super::*;

    fn client(program: &str, role: Role) -> Attendee {
        Attendee { program: program.into(), terminal: "pts/1".into(), role }
    }

    #[test]
    fn of_two_alike_one_may_leave() {
        let one = client("agentctl", Role::Driver);
        let two = [one.clone(), one.clone()];
        assert_eq!(without(&two, &two[..1]), [one]);
        assert!(without(&two, &two).is_empty());
    }

    #[test]
    fn a_name_says_what_the_client_may_do() {
        assert_eq!(session::attendee(&client("vim", Role::Observer)), "vim on pts/1 (watching)");
    }
}

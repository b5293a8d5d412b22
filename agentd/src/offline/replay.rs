//! `policy replay`: the audit's commands decided again by another rule file, in the order in which they ran.
//!
//! What earlier commands did to a session's shell is followed through its audited commands, as a session does it. The mode
//! is `ask` for all of them: a mode is not the rules'.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use proto::audit::{AuditEvent, AuditRow, Audited};
use proto::ids::SessionId;
use proto::policy::{Decided, Difference, ReplaySum, Replayed};

use super::check::{Desk, careful};
use super::{OfflineError, RangeArgs, audit, decided, line, output, settings};
use crate::cli::Cli;
use crate::config::ReadOnly;
use crate::policy::{Call, Context, Mode, ShellFacts, decide};
use crate::session::rules;
use crate::store::Store;
use crate::store::audit::each;
use crate::tools::call::BASH;

pub(super) fn run(cli: &Cli, file: &Path, range: &RangeArgs) -> Result<u8, OfflineError> {
    super::rules::sound(file)?;
    let (paths, config) = settings(cli)?;
    let desk = Desk {
        read_only: config.policy.read_only,
        rules_file: Some(file.to_owned()),
        here: std::env::current_dir()?,
        mode: Mode::Ask,
        paths,
    };
    let mut out = output();
    let mut replay = Replay { desk, shells: HashMap::new(), sum: ReplaySum::default() };
    if let Some(connection) = Store::look(&replay.desk.paths.database())? {
        let chosen = audit::chosen(&connection, range)?;
        let mut written = Ok(());
        // Sessions' shells are followed from their beginning, whatever part is shown.
        let since = range.since.unwrap_or(0);
        let all = crate::store::audit::AuditRange { since: None, until: range.until };
        each(&connection, &all, |row| {
            if chosen(row.audited.session)
                && let Some(difference) = replay.step(&row, row.audited.at.0 >= since)
            {
                written = line(&mut out, &Replayed::Differs(difference));
            }
            written.is_ok()
        })?;
        written?;
    }
    line(&mut out, &Replayed::Sum(replay.sum))?;
    out.flush()?;
    Ok(0)
}

struct Replay {
    desk: Desk,
    shells: HashMap<SessionId, ShellFacts>,
    sum: ReplaySum,
}

impl Replay {
    fn step(&mut self, row: &AuditRow, counts: bool) -> Option<Difference> {
        let audited = &row.audited;
        let ran = match audited.event {
            AuditEvent::Started => true,
            AuditEvent::Refused => false,
            AuditEvent::Ended => return None,
        };
        if audited.tool != BASH {
            return None;
        }
        let shell = self.shells.remove(&audited.session).unwrap_or_default();
        let difference = counts.then(|| self.compare(row, &shell)).flatten();
        let shell = if ran { shell.after(&audited.command) } else { shell };
        self.shells.insert(audited.session, shell);
        difference
    }

    fn compare(&mut self, row: &AuditRow, shell: &ShellFacts) -> Option<Difference> {
        let audited = &row.audited;
        let (workspace, cwd) = (Path::new(&audited.workspace), Path::new(&audited.cwd));
        let book = self.desk.book(workspace);
        // The directory is on record: where a `cd` before it led needs no guess.
        let shell = shell.clone().with_known_directory();
        let context = Context {
            mode: Mode::Ask,
            rules: &book.rules,
            workspace,
            cwd,
            shell: &shell,
            repository: &rules::repository(cwd),
            trust_reads: self.desk.read_only == ReadOnly::Run,
        };
        let decision = careful(decide(&Call::Bash { command: &audited.command }, &context), &book);
        let (was, now) = (was(audited), decided(decision.verdict));
        self.sum.commands += 1;
        match now {
            Decided::Allow => self.sum.allow += 1,
            Decided::Ask => self.sum.ask += 1,
            Decided::Deny => self.sum.deny += 1,
        }
        if was == now {
            return None;
        }
        self.sum.differ += 1;
        Some(Difference {
            id: row.id,
            at: audited.at.0,
            session: audited.session.to_string(),
            command: audited.command.clone(),
            was,
            now,
            reason: decision.reason,
            rule: decision.rule,
        })
    }
}

/// What the policy itself decided then.
fn was(audited: &Audited) -> Decided {
    match (audited.asked, audited.event) {
        (true, _) => Decided::Ask,
        (false, AuditEvent::Started | AuditEvent::Ended) => Decided::Allow,
        (false, AuditEvent::Refused) => Decided::Deny,
    }
}

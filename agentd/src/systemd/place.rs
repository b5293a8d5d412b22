//! Where a process is in the version 2 control groups, and which unit of systemd's that is. Reading text only.

use std::path::Path;

/// The control group of a process, as `/user.slice/user-1000.slice/user@1000.service/app.slice/agentd.service`; none
/// without a version 2 hierarchy or a process.
#[must_use]
pub fn of(process: &str) -> Option<String> {
    parse(&std::fs::read_to_string(Path::new("/proc").join(process).join("cgroup")).ok()?)
}

/// Our own.
#[must_use]
pub fn own() -> Option<String> {
    of("self")
}

fn parse(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// Whether a group belongs to the user manager of `uid`. What is started there lives as long as the manager does.
#[must_use]
pub fn in_user_manager(group: &str, uid: u32) -> bool {
    let manager = format!("user@{uid}.service");
    group.split('/').any(|part| part == manager)
}

/// The unit that a group is of: its last part that is a unit's name. Groups below it are made by the unit itself.
#[must_use]
pub fn unit(group: &str) -> Option<&str> {
    group.rsplit('/').find(|part| part.ends_with(".service") || part.ends_with(".scope"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_group_is_found_above_what_the_unit_made_itself() {
        let group = parse("12:pids:/a\n0::/user.slice/user-7.slice/user@7.service/app.slice/agentd.service\n").unwrap();
        assert_eq!(unit(&group), Some("agentd.service"));
        assert_eq!(unit(&format!("{group}/agentd-x/c1")), Some("agentd.service"));
        assert_eq!(unit("/user.slice/user-7.slice/session-3.scope"), Some("session-3.scope"));
        assert_eq!(unit("/"), None);
        assert_eq!(parse("3:cpu:/x\n"), None, "no version 2 hierarchy");
    }

    #[test]
    fn only_the_users_own_manager_counts() {
        let group = "/user.slice/user-7.slice/user@7.service/app.slice/agentd.service";
        assert!(in_user_manager(group, 7));
        assert!(!in_user_manager(group, 77));
        assert!(!in_user_manager("/user.slice/user-7.slice/session-3.scope", 7));
    }
}

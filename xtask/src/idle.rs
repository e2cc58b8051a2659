//! Steps that run on idle CPU time only (`SCHED_IDLE`, sched(7)), so that they do not slow tests beside them.
//!
//! On a machine that something else keeps busy there is no idle time, so what is left when the tests have ended gets
//! time like everything else.

use std::process::Command;

use anyhow::Result;
use nix::unistd::Pid;

use crate::{process, progress::idle_family, root};

/// The command on idle CPU time only.
pub(crate) fn at_idle_priority(command: &Command) -> Command {
    let mut idle = Command::new("chrt");
    idle.args(["--idle", "0"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => idle.env(name, value),
            None => idle.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        idle.current_dir(directory);
    }
    idle
}

/// Gives a process and its descendants that run on idle CPU time the usual priority, which needs root. Processes that they
/// start inherit it.
pub(crate) fn give_usual_priority(leader: Pid) -> Result<()> {
    for pid in idle_family(leader) {
        let mut command = root::short_command("chrt")?;
        command.args(["--other", "--all-tasks", "--pid", "0", &pid.to_string()]);
        // One that has ended meanwhile is no error.
        let _output = process::output(&mut command)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::Stdio,
    };

    use nix::{
        sys::signal::{Signal, kill},
        unistd::Uid,
    };

    use super::*;

    #[test]
    fn a_command_at_idle_priority_is_the_same_otherwise() {
        let mut command = Command::new("sh");
        let script = "chrt --pid $$; echo $KEPT-$CARGO_PKG_NAME; pwd";
        command.args(["-c", script]).env("KEPT", "kept").env_remove("CARGO_PKG_NAME");
        command.current_dir("/tmp");
        let said = process::read(&mut at_idle_priority(&command)).unwrap();
        assert!(said.contains("policy: SCHED_IDLE"), "{said}");
        assert!(said.ends_with("kept-\n/tmp\n"), "{said}");
    }

    #[test]
    fn what_is_left_gets_the_usual_priority_with_what_it_started() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & echo $!; wait"]);
        let mut child = at_idle_priority(&shell).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let leader = Pid::from_raw(child.id() as i32);
        let both = [leader.as_raw(), line.trim().parse().unwrap()];
        let are_idle = || both.map(|pid| idle_family(leader).contains(&pid));
        let before = are_idle();
        // Only root may undo it.
        let after = Uid::effective().is_root().then(|| {
            let given = give_usual_priority(leader);
            (given.is_ok(), are_idle())
        });
        for pid in both {
            let _ended = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        child.wait().unwrap();
        assert_eq!(before, [true; 2]);
        assert!(after.is_none_or(|after| after == (true, [false; 2])), "{after:?}");
    }
}

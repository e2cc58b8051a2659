//! Commands, ready to paste, that start or restart a daemon, with a setting changed if needed.

use std::path::Path;

use lb_base::shell_word;
use lb_maps::Component;

use super::facts::{Facts, PinOwner, Unit};

/// Starts or restarts the daemon of a component, with `--FLAG VALUE` if `change` is given. Uses the systemd unit if
/// there is one.
pub(crate) fn start_command(
    facts: &Facts,
    component: Component,
    change: Option<(&str, &str)>,
) -> String {
    let owner = facts.component(component).and_then(|installed| installed.owner.as_ref());
    match (owner, facts.unit(component)) {
        (Some(owner @ PinOwner { unit: Some(unit), .. }), _) => {
            service_command(facts, unit, "restart", owner.settings().as_deref(), change)
        }
        (Some(owner), unit) => {
            let next = match unit {
                Some(unit) => {
                    service_command(facts, &unit.name, "restart", unit.settings.as_deref(), change)
                }
                None => background(&with_option(owner.command.clone(), change)),
            };
            // The pins are locked until the process is gone.
            format!("kill {0}; tail --pid={0} -f /dev/null; {next}", owner.pid)
        }
        (None, Some(unit)) => {
            let start =
                service_command(facts, &unit.name, "start", unit.settings.as_deref(), change);
            match (&unit.failed, &unit.settings) {
                (Some(_), Some(file)) => {
                    format!("{start}  # after fixing that; its settings: {}", file.display())
                }
                _ => start,
            }
        }
        (None, None) => start_dead(facts, component, change),
    }
}

/// Starts a daemon that no unit starts, as the last one was started.
fn start_dead(facts: &Facts, component: Component, change: Option<(&str, &str)>) -> String {
    let started = facts.component(component).and_then(|installed| installed.started.as_ref());
    match started {
        Some(started) => {
            started.in_directory(&background(&with_option(started.command.clone(), change)))
        }
        None => background(&with_option(guess_command_line(facts, component), change)),
    }
}

/// Starts the daemon of a component for the first time, now and at each boot.
pub(crate) fn enable_command(facts: &Facts, component: Component) -> String {
    match facts.unit(component) {
        Some(Unit { name, settings: Some(file), .. }) => {
            format!("systemctl enable --now {name}  # after filling in {}", file.display())
        }
        Some(Unit { name, .. }) => format!("systemctl enable --now {name}"),
        None => start_command(facts, component, None),
    }
}

/// A command in the background that outlives the shell.
fn background(words: &[String]) -> String {
    format!("setsid -f {}", words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
}

/// Acts on a service, with a changed setting in its settings file or else in its unit.
fn service_command(
    facts: &Facts,
    unit: &str,
    verb: &str,
    file: Option<&Path>,
    change: Option<(&str, &str)>,
) -> String {
    let then = format!("systemctl {verb} {unit}");
    match (change, file) {
        (None, _) => then,
        (Some(change), Some(file)) => change_setting(file, facts.settings.get(file), change, &then),
        (Some((flag, value)), None) => {
            format!("systemctl edit {unit}  # add --{flag} {value} to ExecStart, then {then}")
        }
    }
}

/// A command line with an option set or changed.
fn with_option(mut words: Vec<String>, change: Option<(&str, &str)>) -> Vec<String> {
    let Some((flag, value)) = change else { return words };
    let option = format!("--{flag}");
    let joined = format!("{option}=");
    match words.iter().position(|word| *word == option || word.starts_with(&joined)) {
        Some(at) if words[at] == option => {
            words.splice(at + 1..(at + 2).min(words.len()), [value.to_owned()]);
        }
        Some(at) => words[at] = format!("{joined}{value}"),
        None => words.extend([option, value.into()]),
    }
    words
}

/// The command line for a daemon that does not run, as far as it is known.
fn guess_command_line(facts: &Facts, component: Component) -> Vec<String> {
    let mut words = vec![facts.environment.spillwayd.clone(), component.name().to_owned()];
    let mut option = |flag: &str, value: String| words.extend([format!("--{flag}"), value]);
    let installed = facts.component(component);
    let names: Vec<_> = installed.map(|installed| installed.names()).unwrap_or_default();
    let interfaces = if names.is_empty() { "INTERFACE".into() } else { names.join(",") };
    option("interface", interfaces);
    let unless_default = |path: &Path, default: &str| {
        (path != Path::new(default)).then(|| path.display().to_string())
    };
    if let Some(bpffs) = unless_default(&facts.environment.bpffs, lb_maps::DEFAULT_BPFFS) {
        option("bpffs", bpffs);
    }
    match component {
        Component::Balancer => {
            let region = facts.balancer.as_ref().and_then(|balancer| balancer.region.clone());
            if let Some(region) = region {
                option("region", region);
            }
            let default = lb_maps::directory::DEFAULT_STATE_DIRECTORY;
            if let Some(state) = unless_default(&facts.environment.state_directory, default) {
                option("state-dir", state);
            }
            if let Some(socket) =
                unless_default(&facts.environment.socket, lb_config::DEFAULT_SOCKET)
            {
                option("socket", socket);
            }
        }
        Component::Receiver => {
            if installed.is_some_and(|installed| installed.links.iter().any(|link| link.at_tc)) {
                option("hook", "tc".into());
            }
            let receiver = facts.receiver.clone().unwrap_or_default();
            let list = |items: Vec<String>, unknown: &str| {
                if items.is_empty() { unknown.to_owned() } else { items.join(",") }
            };
            option("allow-source", list(receiver.sources, "BALANCER_ADDRESS"));
            option("vip", list(receiver.vips.iter().map(ToString::to_string).collect(), "VIP"));
        }
    }
    words
}

/// Changes a text setting in a file, then runs `then`. If the setting is not on a line of its own, the user has to
/// edit the file.
fn change_setting(
    file: &Path,
    text: Option<&String>,
    (flag, value): (&str, &str),
    then: &str,
) -> String {
    let name = shell_word(&file.display().to_string());
    let line = format!("{flag} = \"{value}\"");
    match text.is_some_and(|text| is_one_line(text, flag, &line)) {
        // Removes the old line: TOML refuses duplicate keys.
        true => format!("sed -i -e '1i {line}' -e '/^{flag} *=/d' {name} && {then}"),
        false => format!("${{EDITOR:-vi}} {name}  # set {line}, then {then}"),
    }
}

/// Whether removing the lines that begin with the setting removes exactly the setting.
fn is_one_line(text: &str, flag: &str, line: &str) -> bool {
    let begins = |line: &&str| {
        let rest = line.strip_prefix(flag);
        rest.is_some_and(|rest| rest.trim_start_matches(' ').starts_with('='))
    };
    let others: Vec<_> = text.lines().filter(|line| !begins(line)).collect();
    let parsed = |text: &str| text.parse::<toml::Table>().ok();
    let (Some(mut before), Some(mut after)) =
        (parsed(text), parsed(&format!("{line}\n{}", others.join("\n"))))
    else {
        return false;
    };
    after.remove(flag).is_some() && {
        before.remove(flag);
        // sed inserts nothing into an empty file.
        before == after && !text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use lb_maps::{Linked, StartRecord};

    use super::{
        super::facts::{BalancerFacts, Environment, InstalledComponent},
        *,
    };

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn facts(owner: Option<PinOwner>) -> Facts {
        let link = |name: &str| Linked { name: name.into(), index: None, at_tc: false, mode: None };
        let links = vec![link("eth0"), link("eth1")];
        Facts {
            environment: Environment {
                bpffs: "/b".into(),
                state_directory: "/var/lib/spillway".into(),
                socket: "/a b/s".into(),
                spillwayd: "spillwayd".into(),
                client_mtu: 1500,
            },
            components: vec![InstalledComponent {
                component: Component::Balancer,
                links,
                owner,
                started: None,
                maps_problem: None,
            }],
            balancer: Some(BalancerFacts { region: Some("eu".into()), ..BalancerFacts::default() }),
            ..Facts::default()
        }
    }

    #[test]
    fn a_dead_daemon_is_started_with_what_the_pins_hold() {
        assert_eq!(
            start_command(&facts(None), Component::Balancer, None),
            "setsid -f spillwayd balancer --interface eth0,eth1 --bpffs /b --region eu \
             --socket '/a b/s'"
        );
    }

    #[test]
    fn a_dead_daemon_is_started_as_the_last_one_was() {
        let mut facts = facts(None);
        let line = words("/d balancer --config lb.toml --http 127.0.0.1:9750");
        let started = |directory: &str| StartRecord { directory: directory.into(), command: line };
        facts.components[0].started = Some(started("/etc/a b"));
        assert_eq!(
            start_command(&facts, Component::Balancer, None),
            "cd '/etc/a b' && setsid -f /d balancer --config lb.toml --http 127.0.0.1:9750"
        );
        if let Some(started) = &mut facts.components[0].started {
            started.directory = "/".into();
        }
        assert_eq!(
            start_command(&facts, Component::Balancer, Some(("http", "127.0.0.1:1"))),
            "setsid -f /d balancer --config lb.toml --http 127.0.0.1:1"
        );
    }

    #[test]
    fn a_dead_receiver_is_started_at_its_hook() {
        let mut facts = facts(None);
        facts.components[0].component = Component::Receiver;
        let expected = |hook: &str| {
            format!(
                "setsid -f spillwayd receiver --interface eth0,eth1 --bpffs /b{hook} \
                 --allow-source BALANCER_ADDRESS --vip VIP"
            )
        };
        assert_eq!(start_command(&facts, Component::Receiver, None), expected(""));
        facts.components[0].links[1].at_tc = true;
        assert_eq!(start_command(&facts, Component::Receiver, None), expected(" --hook tc"));
    }

    #[test]
    fn a_running_daemon_is_stopped_first_and_keeps_its_options() {
        let owner = |line| PinOwner { pid: 7, command: words(line), ..PinOwner::default() };
        let native = Some(("xdp-mode", "native"));
        for (before, after) in [
            ("/d balancer", "/d balancer --xdp-mode native"),
            ("/d balancer --xdp-mode auto -x", "/d balancer --xdp-mode native -x"),
            ("/d balancer --xdp-mode=auto", "/d balancer --xdp-mode=native"),
        ] {
            assert_eq!(
                start_command(&facts(Some(owner(before))), Component::Balancer, native),
                format!("kill 7; tail --pid=7 -f /dev/null; setsid -f {after}")
            );
        }
    }

    #[test]
    fn a_service_is_restarted_by_its_manager_with_its_settings_changed() {
        let unit = Some("spillway-balancer".to_owned());
        let owner = |line| PinOwner {
            pid: 7,
            command: words(line),
            unit: unit.clone(),
            capabilities: None,
        };
        let with = owner("/d balancer --config /etc/s.toml");
        let mut facts = facts(Some(with));
        let native = Some(("xdp-mode", "native"));
        assert_eq!(
            start_command(&facts, Component::Balancer, None),
            "systemctl restart spillway-balancer"
        );
        assert_eq!(
            start_command(&facts, Component::Balancer, native),
            "${EDITOR:-vi} /etc/s.toml  # set xdp-mode = \"native\", then systemctl restart \
             spillway-balancer"
        );
        facts.settings.insert("/etc/s.toml".into(), "xdp-mode = 'auto'\n".into());
        assert_eq!(
            start_command(&facts, Component::Balancer, native),
            "sed -i -e '1i xdp-mode = \"native\"' -e '/^xdp-mode *=/d' /etc/s.toml && \
             systemctl restart spillway-balancer"
        );
        facts.components[0].owner = Some(owner("/d balancer --interface eth0"));
        assert_eq!(
            start_command(&facts, Component::Balancer, native),
            "systemctl edit spillway-balancer  # add --xdp-mode native to ExecStart, then systemctl \
             restart spillway-balancer"
        );
    }

    #[test]
    fn a_unit_starts_the_daemon_if_there_is_one() {
        let unit = |failed: Option<&str>| Unit {
            component: Component::Balancer,
            name: "spillway-balancer".into(),
            settings: Some("/etc/spillway/balancer.toml".into()),
            failed: failed.map(str::to_owned),
        };
        let mut dead = facts(None);
        dead.units.push(unit(None));
        assert_eq!(
            start_command(&dead, Component::Balancer, None),
            "systemctl start spillway-balancer"
        );
        assert_eq!(
            enable_command(&dead, Component::Balancer),
            "systemctl enable --now spillway-balancer  # after filling in \
             /etc/spillway/balancer.toml"
        );
        dead.units[0] = unit(Some("eth7: no such interface"));
        assert_eq!(
            start_command(&dead, Component::Balancer, None),
            "systemctl start spillway-balancer  # after fixing that; its settings: \
             /etc/spillway/balancer.toml"
        );
        let by_hand = PinOwner { pid: 7, command: words("/d balancer"), ..PinOwner::default() };
        let mut running = facts(Some(by_hand));
        running.units.push(unit(None));
        assert_eq!(
            start_command(&running, Component::Balancer, None),
            "kill 7; tail --pid=7 -f /dev/null; systemctl restart spillway-balancer"
        );
        assert!(!start_command(&running, Component::Balancer, Some(("a", "b"))).contains("setsid"));
    }

    /// The file after running its command; `None`: the user is asked to edit it.
    fn pasted(text: &str) -> Option<toml::Table> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("receiver.toml");
        fs::write(&file, text).unwrap();
        let given = text.to_owned();
        let command = change_setting(&file, Some(&given), ("allow-source", "10.0.0.2"), "true");
        if !command.starts_with("sed ") {
            let name = file.display();
            let expected =
                format!("${{EDITOR:-vi}} {name}  # set allow-source = \"10.0.0.2\", then true");
            assert_eq!(command, expected);
            return None;
        }
        let done = Command::new("sh").args(["-c", &command]).status().unwrap();
        assert!(done.success(), "{command}");
        Some(fs::read_to_string(&file).unwrap().parse().unwrap())
    }

    fn table(text: &str) -> Option<toml::Table> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_setting_on_one_line_is_changed_and_no_other_is() {
        let changed = table("vip = [\"a\"]\nallow-source = \"10.0.0.2\"\n");
        assert_eq!(pasted("vip = [\"a\"]\nallow-source = [\"0.0.0.0/0\"]\n"), changed);
        assert_eq!(pasted("allow-source=[\"::/0\"]  # all\nvip = [\n  \"a\",\n]\n"), changed);
        assert_eq!(pasted("# none yet\nvip = [\"a\"]\n"), changed);
        let in_table = pasted("allow-source = \"x\"\n[vlan]\neth1 = 100\n");
        assert_eq!(in_table, table("allow-source = \"10.0.0.2\"\n[vlan]\neth1 = 100\n"));
    }

    #[test]
    fn a_setting_on_several_lines_or_in_another_notation_is_left_to_the_user() {
        assert_eq!(pasted("allow-source = [\n  \"0.0.0.0/0\",\n]\nvip = [\"a\"]\n"), None);
        assert_eq!(pasted("allow-source = [ \"a\", [\n] ]\n"), None);
        assert_eq!(pasted("\"allow-source\" = [\"0.0.0.0/0\"]\n"), None);
        assert_eq!(pasted("  allow-source = [\"0.0.0.0/0\"]\n"), None);
        // The line is part of a multi-line text, or in a table.
        assert_eq!(pasted("note = '''\nallow-source = 1\n'''\n"), None);
        assert_eq!(pasted("[other]\nallow-source = 1\n"), None);
        assert_eq!(pasted("not TOML\n"), None);
        assert_eq!(pasted(""), None);
    }
}

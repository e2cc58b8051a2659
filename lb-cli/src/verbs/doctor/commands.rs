//! Commands that start a role's daemon, or start it anew, as they can be pasted.

use lb_daemon::dataplane::Role;

use super::facts::{Facts, Holder};

/// Starts the daemon of a role, or another one in place of the one that runs; with `--FLAG VALUE` where
/// it has to do something otherwise.
pub(super) fn start(facts: &Facts, role: Role, change: Option<(&str, &str)>) -> String {
    let holder = facts.role(role).and_then(|installed| installed.holder.as_ref());
    match holder {
        Some(Holder { unit: Some(unit), .. }) => service(unit, holder, change),
        Some(holder) => {
            let command = shell(&changed(holder.command.clone(), change));
            // The pins are free when the process is gone.
            format!("kill {0}; tail --pid={0} -f /dev/null; {command}", holder.pid)
        }
        None => shell(&changed(command_line(facts, role), change)),
    }
}

/// In the background, on its own, also from a shell that ends.
fn shell(words: &[String]) -> String {
    format!("setsid -f {}", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// A service is told by its settings file, if it has one, and else by its unit.
fn service(unit: &str, holder: Option<&Holder>, change: Option<(&str, &str)>) -> String {
    let restart = format!("systemctl restart {unit}");
    let Some((flag, value)) = change else { return restart };
    let words = holder.map(|holder| holder.command.as_slice()).unwrap_or_default();
    let file = words.iter().position(|word| word == "--config").and_then(|at| words.get(at + 1));
    match file {
        // A key that stands twice is refused: the former one goes.
        Some(file) => {
            let file = quoted(file);
            format!("sed -i -e '1i {flag} = \"{value}\"' -e '/^{flag} *=/d' {file} && {restart}")
        }
        None => format!("systemctl edit {unit}  # --{flag} {value} in ExecStart; then {restart}"),
    }
}

/// A command line with an option set.
fn changed(mut words: Vec<String>, change: Option<(&str, &str)>) -> Vec<String> {
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

/// What is known of a daemon that does not run, as a command line.
fn command_line(facts: &Facts, role: Role) -> Vec<String> {
    let mut words = vec![facts.places.spillwayd.clone(), role.name().to_owned()];
    let mut option = |flag: &str, value: String| words.extend([format!("--{flag}"), value]);
    let installed = facts.role(role);
    let names: Vec<_> = installed.map(|installed| installed.names()).unwrap_or_default();
    let interfaces = if names.is_empty() { "INTERFACE".into() } else { names.join(",") };
    option("interface", interfaces);
    let place = |path: &std::path::Path, default: &str| {
        (path != std::path::Path::new(default)).then(|| path.display().to_string())
    };
    if let Some(bpffs) = place(&facts.places.bpffs, lb_daemon::dataplane::DEFAULT_BPFFS) {
        option("bpffs", bpffs);
    }
    match role {
        Role::Balancer => {
            let region = facts.balancer.as_ref().and_then(|balancer| balancer.region.clone());
            if let Some(region) = region {
                option("region", region);
            }
            let default = lb_daemon::directory::DEFAULT_STATE_DIRECTORY;
            if let Some(state) = place(&facts.places.state_directory, default) {
                option("state-dir", state);
            }
            if let Some(socket) = place(&facts.places.socket, lb_daemon::api::DEFAULT_SOCKET) {
                option("socket", socket);
            }
        }
        Role::Receiver => {
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

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use lb_daemon::dataplane::Linked;

    use super::{
        super::facts::{Balancer, Installed, Places},
        *,
    };

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn facts(holder: Option<Holder>) -> Facts {
        let link = |name: &str| Linked { name: name.into(), index: None, mode: None };
        let links = vec![link("eth0"), link("eth1")];
        Facts {
            places: Places {
                bpffs: "/b".into(),
                state_directory: "/var/lib/spillway".into(),
                socket: "/a b/s".into(),
                spillwayd: "spillwayd".into(),
                client_mtu: 1500,
            },
            roles: vec![Installed { role: Role::Balancer, links, holder, broken: None }],
            balancer: Some(Balancer { region: Some("eu".into()), ..Balancer::default() }),
            ..Facts::default()
        }
    }

    #[test]
    fn a_dead_daemon_is_started_as_the_pins_say() {
        assert_eq!(
            start(&facts(None), Role::Balancer, None),
            "setsid -f spillwayd balancer --interface eth0,eth1 --bpffs /b --region eu \
             --socket '/a b/s'"
        );
    }

    #[test]
    fn one_that_runs_is_stopped_first_and_keeps_its_options() {
        let holder = |line| Holder { pid: 7, command: words(line), ..Holder::default() };
        let native = Some(("xdp-mode", "native"));
        for (before, after) in [
            ("/d balancer", "/d balancer --xdp-mode native"),
            ("/d balancer --xdp-mode auto -x", "/d balancer --xdp-mode native -x"),
            ("/d balancer --xdp-mode=auto", "/d balancer --xdp-mode=native"),
        ] {
            assert_eq!(
                start(&facts(Some(holder(before))), Role::Balancer, native),
                format!("kill 7; tail --pid=7 -f /dev/null; setsid -f {after}")
            );
        }
    }

    #[test]
    fn a_service_is_restarted_by_its_manager_with_its_settings_changed() {
        let unit = Some("spillwayd.service".to_owned());
        let holder =
            |line| Holder { pid: 7, command: words(line), unit: unit.clone(), capabilities: None };
        let with = holder("/d balancer --config /etc/s.toml");
        assert_eq!(
            start(&facts(Some(with.clone())), Role::Balancer, None),
            "systemctl restart spillwayd.service"
        );
        assert_eq!(
            start(&facts(Some(with)), Role::Balancer, Some(("xdp-mode", "native"))),
            "sed -i -e '1i xdp-mode = \"native\"' -e '/^xdp-mode *=/d' /etc/s.toml && \
             systemctl restart spillwayd.service"
        );
    }
}

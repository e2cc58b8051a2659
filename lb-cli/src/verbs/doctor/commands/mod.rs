//! Commands that start a role's daemon, or start it anew, as they can be pasted.

mod settings;

use std::path::Path;

use lb_daemon::dataplane::Role;

use super::facts::{Facts, Holder, Unit};

/// Starts the daemon of a role, or another one in place of the one that runs; with `--FLAG VALUE` where
/// it has to do something otherwise. Where there is a unit, by the unit.
pub(super) fn start(facts: &Facts, role: Role, change: Option<(&str, &str)>) -> String {
    let holder = facts.role(role).and_then(|installed| installed.holder.as_ref());
    match (holder, facts.unit(role)) {
        (Some(holder @ Holder { unit: Some(unit), .. }), _) => {
            service(facts, unit, "restart", holder.settings().as_deref(), change)
        }
        (Some(holder), unit) => {
            let next = match unit {
                Some(unit) => {
                    service(facts, &unit.name, "restart", unit.settings.as_deref(), change)
                }
                None => shell(&changed(holder.command.clone(), change)),
            };
            // The pins are free when the process is gone.
            format!("kill {0}; tail --pid={0} -f /dev/null; {next}", holder.pid)
        }
        (None, Some(unit)) => {
            let start = service(facts, &unit.name, "start", unit.settings.as_deref(), change);
            match (&unit.failed, &unit.settings) {
                (Some(_), Some(file)) => {
                    format!("{start}  # once that is mended; its settings: {}", file.display())
                }
                _ => start,
            }
        }
        (None, None) => shell(&changed(command_line(facts, role), change)),
    }
}

/// Starts the daemon of a role for the first time, now and at each boot.
pub(super) fn begin(facts: &Facts, role: Role) -> String {
    match facts.unit(role) {
        Some(Unit { name, settings: Some(file), .. }) => {
            format!("systemctl enable --now {name}  # once {} is filled in", file.display())
        }
        Some(Unit { name, .. }) => format!("systemctl enable --now {name}"),
        None => start(facts, role, None),
    }
}

/// In the background, on its own, also from a shell that ends.
fn shell(words: &[String]) -> String {
    format!("setsid -f {}", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// A service is told by its settings file, if it has one, and else by its unit.
fn service(
    facts: &Facts,
    unit: &str,
    verb: &str,
    file: Option<&Path>,
    change: Option<(&str, &str)>,
) -> String {
    let then = format!("systemctl {verb} {unit}");
    match (change, file) {
        (None, _) => then,
        (Some(change), Some(file)) => {
            settings::change(file, facts.settings.get(file), change, &then)
        }
        (Some((flag, value)), None) => {
            format!("systemctl edit {unit}  # --{flag} {value} in ExecStart; then {then}")
        }
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
    let place = |path: &Path, default: &str| {
        (path != Path::new(default)).then(|| path.display().to_string())
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
        let link = |name: &str| Linked { name: name.into(), index: None, at_tc: false, mode: None };
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
    fn a_dead_receiver_is_started_at_its_hook() {
        let mut facts = facts(None);
        facts.roles[0].role = Role::Receiver;
        let expected = |hook: &str| {
            format!(
                "setsid -f spillwayd receiver --interface eth0,eth1 --bpffs /b{hook} \
                 --allow-source BALANCER_ADDRESS --vip VIP"
            )
        };
        assert_eq!(start(&facts, Role::Receiver, None), expected(""));
        facts.roles[0].links[1].at_tc = true;
        assert_eq!(start(&facts, Role::Receiver, None), expected(" --hook tc"));
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
        let unit = Some("spillway-balancer".to_owned());
        let holder =
            |line| Holder { pid: 7, command: words(line), unit: unit.clone(), capabilities: None };
        let with = holder("/d balancer --config /etc/s.toml");
        let mut facts = facts(Some(with));
        let native = Some(("xdp-mode", "native"));
        assert_eq!(start(&facts, Role::Balancer, None), "systemctl restart spillway-balancer");
        assert_eq!(
            start(&facts, Role::Balancer, native),
            "${EDITOR:-vi} /etc/s.toml  # xdp-mode = \"native\"; then systemctl restart \
             spillway-balancer"
        );
        facts.settings.insert("/etc/s.toml".into(), "xdp-mode = 'auto'\n".into());
        assert_eq!(
            start(&facts, Role::Balancer, native),
            "sed -i -e '1i xdp-mode = \"native\"' -e '/^xdp-mode *=/d' /etc/s.toml && \
             systemctl restart spillway-balancer"
        );
        facts.roles[0].holder = Some(holder("/d balancer --interface eth0"));
        assert_eq!(
            start(&facts, Role::Balancer, native),
            "systemctl edit spillway-balancer  # --xdp-mode native in ExecStart; then systemctl \
             restart spillway-balancer"
        );
    }

    /// Whatever runs or ran, by hand or not.
    #[test]
    fn where_there_is_a_unit_the_daemon_is_started_by_it() {
        let unit = |failed: Option<&str>| Unit {
            role: Role::Balancer,
            name: "spillway-balancer".into(),
            settings: Some("/etc/spillway/balancer.toml".into()),
            failed: failed.map(str::to_owned),
        };
        let mut dead = facts(None);
        dead.units.push(unit(None));
        assert_eq!(start(&dead, Role::Balancer, None), "systemctl start spillway-balancer");
        assert_eq!(
            begin(&dead, Role::Balancer),
            "systemctl enable --now spillway-balancer  # once /etc/spillway/balancer.toml is \
             filled in"
        );
        dead.units[0] = unit(Some("eth7: no such interface"));
        assert_eq!(
            start(&dead, Role::Balancer, None),
            "systemctl start spillway-balancer  # once that is mended; its settings: \
             /etc/spillway/balancer.toml"
        );
        let by_hand = Holder { pid: 7, command: words("/d balancer"), ..Holder::default() };
        let mut running = facts(Some(by_hand));
        running.units.push(unit(None));
        assert_eq!(
            start(&running, Role::Balancer, None),
            "kill 7; tail --pid=7 -f /dev/null; systemctl restart spillway-balancer"
        );
        assert!(!start(&running, Role::Balancer, Some(("a", "b"))).contains("setsid"));
    }
}

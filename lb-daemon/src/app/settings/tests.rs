use std::fs;

use tempfile::TempDir;

use super::*;
use lb_maps::{Hook, XdpMode};

struct Dir(TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, text: &str) -> String {
        let path = self.0.path().join("settings.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn read(&self, text: &str, component: &str, flags: &[&str]) -> Result<Settings, SettingsError> {
        let file = self.file(text);
        let line = ["spillwayd", component, "--config", &file];
        let words = line.iter().chain(flags).map(|word| OsString::from(*word));
        Settings::read(&words.collect::<Vec<_>>())
    }

    /// The sentence and the hint, without the file's name before them.
    fn refusal(&self, component: &str, text: &str) -> (String, String) {
        let SettingsError::File(failure) = self.read(text, component, &[]).unwrap_err() else {
            panic!("refused as a command line: {text}")
        };
        let text = failure.to_string();
        let (sentence, hint) = text.split_once("\nhint: ").unwrap();
        let before = format!("spillwayd: {}: ", self.0.path().join("settings.toml").display());
        (sentence.strip_prefix(&before).unwrap().to_owned(), hint.to_owned())
    }
}

#[test]
fn what_must_be_set_and_is_not_is_named_with_its_file() {
    let dir = Dir::new();
    let file = dir.0.path().join("settings.toml").display().to_string();
    let (sentence, hint) = dir.refusal("balancer", "region = \"eu\"\n");
    assert_eq!(sentence, "interface is not set");
    assert_eq!(hint, format!("set it in {file}, as `interface = [\"…\"]`"));
    let (sentence, hint) = dir.refusal("receiver", "interface = [\"eth0\"]\n");
    assert_eq!(sentence, "allow-source, vip are not set");
    assert_eq!(hint, format!("set them in {file}, as `allow-source = [\"…\"]`"));
    let (sentence, hint) =
        dir.refusal("balancer", "interface = [\"eth0\"]\n[fleet]\nbalancer = \"lb-1\"\n");
    assert_eq!(sentence, "name in [fleet] is not set");
    assert_eq!(hint, format!("set it in the table [fleet] of {file}, as `name = \"…\"`"));
    // Without a file it is the command line that is wrong.
    let line = ["spillwayd", "balancer"].map(OsString::from);
    assert!(matches!(Settings::read(&line), Err(SettingsError::CommandLine(_))));
}

#[test]
fn a_file_says_what_flags_say_and_flags_go_before_it() {
    let text = "\
interface = [\"eth0\", \"eth1\"]
region = \"eu\"
flows = 5000
source = \"10.0.0.1\"
xdp-mode = \"generic\"
apply = \"/etc/spillway/web.toml\"
icmp-errors = 0
[vlan]
eth1 = 100
\"eth2\" = \"7\"
";
    let settings = Dir::new().read(text, "balancer", &["--region", "us", "--services=40"]);
    let settings = settings.unwrap();
    let Component::Balancer(arguments) = settings.arguments.component else {
        panic!("another component")
    };
    assert_eq!(arguments.path.interface, ["eth0", "eth1"]);
    assert_eq!(arguments.region.as_ref().unwrap().to_string(), "us");
    assert_eq!(arguments.apply, Some("/etc/spillway/web.toml".into()));
    assert_eq!((arguments.icmp_errors, arguments.icmp_echoes), (0, 10_000));
    let mut vlans = arguments.vlan.clone();
    vlans.sort_by_key(|vlan| format!("{vlan:?}"));
    assert_eq!(vlans, ["eth1=100", "eth2=7"].map(|vlan| vlan.parse().unwrap()));
    let options = format!("{:?}", arguments.options());
    assert!(options.contains("Generic"), "{options}");

    let text =
        "interface = \"eth0\"\nallow-source = [\"10.0.0.0/8\"]\nvip = \"192.0.2.1,192.0.2.2\"";
    let settings = Dir::new().read(text, "receiver", &[]).unwrap();
    let Component::Receiver(arguments) = settings.arguments.component else {
        panic!("another component")
    };
    let vips: Vec<_> = arguments.allowed().vips.iter().map(ToString::to_string).collect();
    assert_eq!(vips, ["192.0.2.1", "192.0.2.2"]);
}

#[test]
fn each_mistake_is_told_with_its_line_and_what_to_do() {
    let directory = Dir::new();
    for (text, sentence, hint) in [
        (
            "\nregoin = 1",
            "line 2, column 1: regoin: no such setting of the balancer",
            "did you mean `region`?",
        ),
        (
            "state_dir = \"x\"",
            "line 1, column 1: state_dir: no such setting of the balancer",
            "did you mean `state-dir`?",
        ),
        (
            "\n\nvip = \"192.0.2.1\"",
            "line 3, column 1: vip: no such setting of the balancer",
            "it is one of `spillwayd receiver`",
        ),
        (
            "zzz = 1",
            "line 1, column 1: zzz: no such setting of the balancer",
            "`spillwayd balancer --help` lists them, without their dashes",
        ),
        (
            "[fleet]\nectd = 1",
            "line 2, column 1: ectd in [fleet]: no such setting of the balancer",
            "did you mean `etcd`?",
        ),
        (
            "[fleet]\nfleet-name = 1",
            "line 2, column 1: fleet-name in [fleet]: no such setting of the balancer",
            "did you mean `name`?",
        ),
        (
            "[fleet]\nregion = \"eu\"",
            "line 2, column 1: region in [fleet]: no such setting of the balancer",
            "`region` is in no table: it stands above the line `[fleet]`",
        ),
        (
            "config = \"other.toml\"",
            "line 1, column 1: config: no such setting of the balancer",
            "`spillwayd balancer --help` lists them, without their dashes",
        ),
        (
            "interface = \"eth0\"\nregion = \"EU\"",
            "line 2, column 1: region: \"EU\": may hold only a-z, 0-9 and '-', and must begin and end with a letter or digit",
            "--help says of `region`: Region of this host, whose backends are preferred",
        ),
        (
            "flows = 5",
            "line 1, column 1: flows: \"5\": 5 is not in 4096..=67108864",
            "--help says of `flows`: ",
        ),
        (
            "services = 0",
            "line 1, column 1: services: \"0\": 0 is not in 1..=10000",
            "--help says of `services`: Most services in a configuration",
        ),
        (
            "pool-backends = 400001",
            "line 1, column 1: pool-backends: \"400001\": 400001 is not in 1..=400000",
            "--help says of `pool-backends`: ",
        ),
        (
            "[vlan]\neth1 = 4095",
            "line 1, column 2: vlan: \"eth1=4095\": the id of a VLAN is a number from 1 to 4094",
            "--help says of `vlan`: ",
        ),
        (
            "icmp-echoes = -1",
            "line 1, column 1: icmp-echoes: \"-1\": -1 is not in 0..=1000000",
            "--help says of `icmp-echoes`: ",
        ),
        (
            "xdp-mode = \"fast\"",
            "line 1, column 1: xdp-mode: \"fast\" is none of auto, native, generic",
            "--help says of `xdp-mode`: ",
        ),
        (
            "hook = \"tc\"",
            "line 1, column 1: hook: \"tc\": only the receiver has a program for tc, the balancer's is for \
             XDP; `--xdp-mode generic` works with any driver",
            "--help says of `hook`: A balancer's packet program exists for XDP only",
        ),
        (
            "region = true",
            "line 1, column 1: region: takes a value, not true or false",
            "--help says",
        ),
        (
            "region = \"eu\"\ninterface = [\"\"]",
            "line 2, column 1: interface: \"\": must be the name of an interface",
            "--help says of `interface`: ",
        ),
        (
            "interface = [\"eth0\", \" \"]",
            "line 1, column 1: interface: \" \": must be the name of an interface",
            "--help says of `interface`: ",
        ),
        (
            "interface = “eth0”",
            "line 1, column 13: “ (U+201C) is a typographic quotation mark; write straight ones: \"…\"",
            "a settings file is TOML",
        ),
        (
            "region = \"eu”\ninterface = \"eth0\"",
            "line 1, column 14: invalid basic string, expected `\"`; ” (U+201D) before it is a typographic quotation mark \
             and ends no string",
            "a settings file is TOML",
        ),
        (
            "region =\u{a0}\"eu\"",
            "line 1, column 9: here is a blank (U+00A0) that is no space; write a space",
            "a settings file is TOML",
        ),
        ("region = [\"a\", \"b\"]", "line 1, column 1: region: takes one value", "--help says"),
        (
            "source = [[1]]",
            "line 1, column 1: source: neither text, number, true, false, list nor table",
            "a settings file is TOML",
        ),
        (
            "region = \"a\"\nregion = \"b\"",
            "line 2, column 1: duplicate key",
            "a settings file is TOML",
        ),
        ("region eu", "line 1, column 8: ", "a settings file is TOML"),
        (
            "http = \"9750\"",
            "line 1, column 1: http: \"9750\": must be an address and a port, such as 127.0.0.1:9750",
            "--help says of `http`: ",
        ),
        (
            "http = 9750",
            "line 1, column 1: http: \"9750\": must be an address and a port, such as 127.0.0.1:9750",
            "--help says of `http`: ",
        ),
        (
            "http = \"localhost:9750\"",
            "line 1, column 1: http: \"localhost:9750\": must be an address and a port, such as 127.0.0.1:9750",
            "--help says of `http`: ",
        ),
        (
            "listen = \"0.0.0.0\"",
            "line 1, column 1: listen: \"0.0.0.0\": must be an address and a port, such as 192.0.2.1:9751",
            "--help says of `listen`: ",
        ),
        (
            "hash = = 1",
            "line 1, column 8: ",
            "a settings file is TOML, one `setting = value` a line; \
             /usr/share/doc/spillway/docs/settings.md lists them",
        ),
    ] {
        let (said, what_to_do) = directory.refusal("balancer", text);
        assert!(said.starts_with(sentence), "{text:?}: {said}");
        assert!(what_to_do.starts_with(hint), "{text:?}: {what_to_do}");
        // What else is wrong follows: the interface is missing.
        assert_eq!(said.lines().count(), 1, "{said} {what_to_do}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_reported_at_once() {
    let directory = Dir::new();
    let text =
        "regoin = 1\nregion = \"EU\"\nhttp = [[1]]\ninterface-wait = 10\nxdp-mode = \"fast\"\n";
    let Err(SettingsError::File(failure)) = directory.read(text, "balancer", &[]) else {
        panic!("accepted")
    };
    let file = directory.0.path().join("settings.toml").display().to_string();
    let expected = [
        "line 1, column 1: regoin: no such setting of the balancer",
        "line 2, column 1: region: \"EU\": may hold only",
        "line 3, column 1: http: neither text, number, true, false, list nor table",
        "line 4, column 1: interface-wait: \"10\": give a unit: ms, s, m, h or d, as in 30s",
        "line 5, column 1: xdp-mode: \"fast\" is none of",
        "interface is not set",
    ];
    let found = failure.messages();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(&format!("{file}: {expected}")), "{found}");
    }
    let lines = failure.to_string();
    assert_eq!(lines.matches("spillwayd: ").count(), expected.len(), "{lines}");
    assert_eq!(lines.matches("\nhint: ").count(), expected.len(), "{lines}");

    // What is there and wrong is not missing, and neither is what the command line gives.
    let text = "interface = true\nregion eu\n";
    let refused = |text: &str, flags: &[&str]| match directory.read(text, "balancer", flags) {
        Err(SettingsError::File(failure)) => failure.messages().len(),
        _ => panic!("accepted"),
    };
    assert_eq!(refused(text, &[]), 1, "the rest is not read");
    assert_eq!(refused("interface = true\nvip = 5\n", &[]), 2);
    assert_eq!(refused("vip = 5\n", &["--interface=eth0"]), 1);
    let many: String = (0..150).map(|n| format!("x{n} = 1\n")).collect();
    assert_eq!(refused(&many, &[]), 101);
}

/// Which prefixes tunnels may come from.
#[test]
fn a_source_prefix_is_of_ipv4_and_not_too_short() {
    let directory = Dir::new();
    for (prefix, cause) in [
        ("10.0.0.0/7", "must have 8 to 32 bits, as 10.64.0.0/24 has 24"),
        ("10.64.0.1/24", "10.64.0.1/24: has bits beyond its length: the network is 10.64.0.0/24"),
        ("fd00::/64", "must be a prefix of IPv4: tunnels of IPv6 have a flow label"),
        ("127.0.0.0/8", "must be of unicast addresses that can be routed to this host"),
        ("0.0.0.0/8", "must be of unicast addresses that can be routed to this host"),
        ("239.0.0.0/24", "must be of unicast addresses that can be routed to this host"),
        ("240.0.0.0/24", "must be of unicast addresses that can be routed to this host"),
        ("255.255.255.255", "must be of unicast addresses that can be routed to this host"),
        ("eth0", "eth0: not an IPv4 or IPv6 address"),
    ] {
        let text = format!("interface = \"eth0\"\ntunnel-source-prefix = \"{prefix}\"\n");
        let (said, _) = directory.refusal("balancer", &text);
        let expected = format!("line 2, column 1: tunnel-source-prefix: \"{prefix}\": {cause}");
        assert_eq!(said, expected);
    }
    for prefix in ["10.0.0.0/8", "10.64.0.0/24", "10.64.0.7/32", "10.64.0.7"] {
        let text = format!("interface = \"eth0\"\ntunnel-source-prefix = \"{prefix}\"\n");
        directory.read(&text, "balancer", &[]).unwrap();
    }
}

#[test]
fn addresses_of_settings_are_unicast_addresses_of_one_host() {
    let directory = Dir::new();
    let receiver = |other: &str| format!("allow-source = \"10.0.0.2\"\n{other}");
    let settings = [
        ("balancer", String::new(), "source"),
        ("receiver", receiver(""), "vip"),
        ("receiver", receiver("vip = \"192.0.2.1\"\n"), "tunnel-endpoint"),
    ];
    for (component, others, setting) in &settings {
        for (address, kind) in [
            ("127.0.0.1", "a loopback address"),
            ("::1", "a loopback address"),
            ("0.0.0.0", "the unspecified address"),
            ("224.0.0.1", "a multicast address"),
            ("255.255.255.255", "the broadcast address"),
            ("240.0.0.1", "in 240.0.0.0/4, which is reserved and not routed"),
            ("fe80::1", "link-local, which says nothing without its interface"),
            ("::ffff:10.0.0.1", "an IPv4 address written as IPv6"),
        ] {
            let text = format!("interface = \"eth0\"\n{others}{setting} = [\"{address}\"]\n");
            let (said, _) = directory.refusal(component, &text);
            let expected = format!(
                "{setting}: \"{address}\": {address} is {kind}; give the unicast address of one host"
            );
            assert!(said.ends_with(&expected), "{said}");
        }
    }
}

/// What stands in the file is called as the file has it, what the command line says as that has it.
#[test]
fn settings_of_a_file_have_no_dashes() {
    let directory = Dir::new();
    let read = |component, text: &str, flags: &[&str]| {
        let Err(SettingsError::File(refused)) = directory.read(text, component, flags) else {
            panic!("not refused: {text}")
        };
        refused.to_string()
    };
    let listen = "interface = \"eth0\"\nlisten = \"127.0.0.1:9751\"\n";
    assert_eq!(
        read("balancer", listen, &[]),
        "spillwayd: listen 127.0.0.1:9751: tls-cert is missing\nhint: the API over TCP always uses TLS with \
         certificates on both ends: give tls-cert, tls-key and tls-ca"
    );
    assert_eq!(
        read("balancer", listen, &["--tls-cert=x", "--tls-ca=y"]),
        "spillwayd: listen 127.0.0.1:9751: tls-key is missing\nhint: the API over TCP always uses TLS with \
         certificates on both ends: give --tls-cert, tls-key and --tls-ca"
    );
    for component in ["balancer", "receiver"] {
        let other = match component {
            "receiver" => "allow-source = \"10.0.0.2\"\nvip = \"192.0.2.1\"\n",
            _ => "",
        };
        for (setting, missing) in [
            ("http-tls-cert = \"x\"", "http-tls-key"),
            ("http-tls-key = \"x\"", "http-tls-cert"),
            ("http-token-file = \"x\"", "http"),
        ] {
            let http = if missing == "http" { "" } else { "http = \"127.0.0.1:9750\"\n" };
            let file = format!("interface = \"eth0\"\n{other}{http}{setting}\n");
            let refused = read(component, &file, &[]);
            assert!(refused.contains(&format!("settings.toml: {missing} is not set")), "{refused}");
            assert!(refused.ends_with(&format!(", as `{missing} = \"…\"`")), "{refused}");
        }
    }
    assert_eq!(
        read("balancer", "interface = \"eth0\"\nsource = [\"10.0.0.1\", \"10.0.0.2\"]\n", &[]),
        "spillwayd: source: 10.0.0.1 and 10.0.0.2 are of the same family\n\
         hint: give at most one IPv4 and one IPv6 address"
    );
    let receiver = "interface = \"eth0\"\nallow-source = \"10.0.0.1\"\nvip = \"192.0.2.1\"\n";
    assert_eq!(
        read("receiver", &format!("{receiver}hook = \"tc\"\nxdp-mode = \"native\"\n"), &[]),
        "spillwayd: hook tc: xdp-mode native only applies to hook xdp\nhint: give one of the two"
    );
    // A failure of later on has the same names.
    let text = "interface = \"eth0\"\nbpffs = \"/b\"\n";
    let settings = directory.read(text, "balancer", &["--state-dir", "/s"]).unwrap();
    let failure = Failure::new("more than --map-memory-limit of --state-dir")
        .hint("give each its own --bpffs, --flows-or-so, and `--xdp-mode generic` to --help");
    assert_eq!(
        settings.names.spell(failure).to_string(),
        "spillwayd: more than map-memory-limit of --state-dir\n\
         hint: give each its own bpffs, --flows-or-so, and `xdp-mode generic` to --help"
    );
    let line = ["spillwayd", "balancer", "--interface", "eth0"].map(OsString::from);
    let alone = Settings::read(&line).unwrap();
    let failure = Failure::new("another --socket");
    assert_eq!(alone.names.spell(failure.clone()), failure, "without a file there are only flags");
}

#[test]
fn a_receiver_has_one_hook() {
    let text = "interface = \"eth0\"\nallow-source = \"10.0.0.1\"\nvip = \"192.0.2.1\"\n";
    let read = |more: &str, flags: &[&str]| {
        let settings = Dir::new().read(&format!("{text}{more}"), "receiver", flags)?;
        let Component::Receiver(arguments) = settings.arguments.component else {
            panic!("another component")
        };
        Ok::<_, SettingsError>(arguments.options().hook)
    };
    assert_eq!(read("", &[]).unwrap(), Hook::Xdp(XdpMode::Auto));
    assert_eq!(read("xdp-mode = \"generic\"", &[]).unwrap(), Hook::Xdp(XdpMode::Generic));
    assert_eq!(read("hook = \"tc\"", &[]).unwrap(), Hook::Tc);
    assert_eq!(read("", &["--hook", "tc"]).unwrap(), Hook::Tc);
    let Err(SettingsError::File(refused)) = read("xdp-mode = \"native\"", &["--hook", "tc"]) else {
        panic!("not refused")
    };
    let expected = "spillwayd: --hook tc: xdp-mode native only applies to --hook xdp\n\
                    hint: give one of the two";
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn what_must_be_set_may_be_set_in_either_and_must_in_one() {
    let directory = Dir::new();
    let error = directory.read("region = \"eu\"", "balancer", &[]).unwrap_err();
    assert!(matches!(error, SettingsError::File(_)), "{error:?}");
    directory.read("region = \"eu\"", "balancer", &["--interface", "eth0"]).unwrap();
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let line = ["spillwayd", "balancer", "--config", "/nonexistent/settings.toml"];
    let error = Settings::read(&line.map(OsString::from)).unwrap_err();
    let SettingsError::File(failure) = error else { panic!("{error:?}") };
    assert_eq!(
        failure.to_string(),
        "spillwayd: /nonexistent/settings.toml: No such file or directory\n\
         hint: give a readable file after --config"
    );
}

#[test]
fn what_differs_between_two_readings_is_named() {
    let directory = Dir::new();
    let first = directory.read("interface = \"eth0\"\nregion = \"eu\"", "balancer", &[]).unwrap();
    let text = "interface = \"eth0\"\nregion = \"us\"\napply = \"x\"";
    let second = directory.read(text, "balancer", &[]).unwrap();
    assert_eq!(first.values.differing(&second.values), ["apply", "region"]);
    assert_eq!(second.values.differing(&second.values), [""; 0]);
}

#[test]
fn the_settings_in_the_documents_are_accepted() {
    let dir = Dir::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (name, settings) in [("README.md", 2), ("docs/settings.md", 2), ("docs/security.md", 2)] {
        let text = fs::read_to_string(root.join(name)).unwrap();
        let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let blocks: Vec<_> = blocks.filter(|block| !block.contains("[[")).collect();
        assert_eq!(blocks.len(), settings, "{name}");
        for block in blocks {
            let component = if block.contains("vip") { "receiver" } else { "balancer" };
            assert!(dir.read(block, component, &[]).is_ok(), "{name}: {block}");
        }
    }
}

#[test]
fn the_documents_list_each_setting_of_each_role() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
    let document = fs::read_to_string(document).unwrap();
    for component in Arguments::command().get_subcommands() {
        let (_, section) =
            document.split_once(&format!("\n### {}\n", component.get_name())).unwrap();
        let section = section.split("\n#").next().unwrap();
        let row = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
        let mut listed: Vec<_> = section.lines().filter_map(row).collect();
        let shown = component.get_arguments().filter(|argument| !argument.is_hide_set());
        let flags = shown.filter_map(|argument| argument.get_long());
        let flags = flags.filter(|name| !["config", "help", "version"].contains(name));
        let mut flags: Vec<_> = flags.map(str::to_owned).collect();
        listed.sort();
        flags.sort();
        assert_eq!(listed, flags, "{}", component.get_name());
    }
}

#[test]
fn tunnels_are_to_end_at_no_vip() {
    let directory = Dir::new();
    let read = |endpoints: &str| {
        let file = format!(
            "interface = \"eth0\"\nallow-source = \"10.0.0.2\"\nvip = [\"192.0.2.1\", \"2001:db8::1\"]\n\
             tunnel-endpoint = {endpoints}\n"
        );
        let settings = directory.read(&file, "receiver", &[])?;
        let Component::Receiver(arguments) = settings.arguments.component else {
            panic!("another component")
        };
        Ok::<_, SettingsError>(arguments.allowed().endpoints)
    };
    let listed = read("[\"10.9.0.1\", \"fd00:9::1\"]").unwrap();
    assert_eq!(listed, ["10.9.0.1", "fd00:9::1"].map(|text| text.parse().unwrap()).into());
    let Err(SettingsError::File(refused)) = read("[\"10.9.0.1\", \"2001:db8::1\"]") else {
        panic!("not refused")
    };
    let expected = "spillwayd: tunnel-endpoint 2001:db8::1: is also a vip, and no tunnel may end there\n\
                    hint: remove it from one of the two";
    assert_eq!(refused.to_string(), expected);
}

/// The words of a text that stand in backquotes.
fn quoted(text: &str) -> Vec<String> {
    let mut words: Vec<_> = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    words.sort();
    words
}

#[test]
fn code_documents_and_packaged_files_agree_on_what_a_reload_takes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let line = |text: &str, begin: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(begin).map(str::to_owned));
        found.unwrap_or_else(|| panic!("no line begins with {begin}"))
    };
    let (settings, install) = (read("docs/settings.md"), read("docs/install.md"));
    let reload = settings.split("\n## Reload\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let of_unit = line(&install, "| `systemctl reload` | ");
    let (of_unit, _) = of_unit.split_once(". It fails").unwrap();
    let (of_balancer, of_receiver) = of_unit.split_once("receiver: ").unwrap();
    let required = "interface = \"eth0\"\nallow-source = \"10.0.0.1\"\nvip = \"192.0.2.1\"\n";
    for (component, of_unit, required) in
        [("balancer", of_balancer, "interface = \"eth0\"\n"), ("receiver", of_receiver, required)]
    {
        let settings = Dir::new().read(required, component, &[]).unwrap();
        let code = reloadable(&settings.arguments.component);
        let row = line(reload, &format!("| {component} | "));
        assert_eq!(quoted(row.split(" | ").next().unwrap()), code, "docs/settings.md, {component}");
        assert_eq!(quoted(of_unit), code, "docs/install.md, {component}");
        let file = read(&format!("packaging/etc/{component}.toml"));
        let comment = file.split(&format!("systemctl reload spillway-{component}")).nth(1).unwrap();
        let comment = comment.split("systemctl restart").next().unwrap();
        assert_eq!(quoted(comment), code, "packaging/etc/{component}.toml");
        let command = Arguments::command();
        let flags: Vec<_> = command.find_subcommand(component).unwrap().get_arguments().collect();
        for name in code {
            assert!(
                flags.iter().any(|flag| flag.get_long() == Some(name)),
                "{name} of {component}"
            );
        }
    }
}

#[test]
fn settings_that_wait_are_called_as_in_the_file() {
    let directory = Dir::new();
    let first = directory.read("interface = \"eth0\"\n", "balancer", &[]).unwrap();
    let all = "interface = \"eth1\"\nregion = \"us\"\napply = \"x\"\nxdp-mode = \"generic\"\n\
               http = \"127.0.0.1:9750\"\nstatus-page = true\nmap-memory-limit = \"2GiB\"\n\
               [tls-client]\na = \"viewer\"\n";
    let second = directory.read(all, "balancer", &[]).unwrap();
    let expected = ["http", "interface", "map-memory-limit", "region", "status-page", "xdp-mode"];
    assert_eq!(first.values.waiting(&second), expected);
    assert_eq!(second.values.waiting(&second), [""; 0]);
}

//! What must stay absent, held by a test: each rule of ARCHITECTURE.md names a word, the only places
//! that may say it, and why.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap is a failed test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

struct Rule {
    /// Folder the rule is about.
    within: &'static str,
    /// Words that may not stand there.
    words: &'static [&'static str],
    /// Files or folders, relative to `within`, where they may.
    except: &'static [&'static str],
    /// Why.
    because: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        within: "lb-common/src",
        words: &["aya", "tokio", "prost", "tonic", "std::net", "alloc::"],
        except: &[],
        because: "the pure decision runs in the kernel, in commands and in tests alike",
    },
    Rule {
        within: "lb-common/src",
        words: &["unsafe "],
        except: &["abi/pod.rs"],
        because: "plain-old-data views are the one unsafe thing of the crate",
    },
    Rule {
        within: "lb-ebpf/src",
        words: &["unsafe ", "data_end", "read_volatile"],
        except: &["kernel"],
        because: "packet and map memory are touched in one place",
    },
    Rule {
        within: "lb-ebpf/src",
        words: &["xdp_action", "XDP_TX", "XDP_PASS", "XDP_DROP", "TC_ACT"],
        except: &[
            "balancer/emit",
            "probe.rs",
            "receiver/emit.rs",
            "bench.rs",
            "bench",
            "bin/bench.rs",
        ],
        because: "only emit ends a packet, so every packet is counted",
    },
    Rule {
        within: "lb-daemon",
        words: &["unsafe "],
        except: &["maps/src/raw"],
        because: "mapped maps are the one unsafe thing of the daemon",
    },
    Rule {
        within: "lb-daemon/api/src/audit",
        words: &["spillway_proto"],
        except: &[],
        because: "messages of the API stop at its calls",
    },
    Rule {
        within: "lb-daemon/api/src/capture",
        words: &["spillway_proto"],
        except: &[],
        because: "messages of the API stop at its calls",
    },
    Rule {
        within: "lb-daemon/api/src/vip_probe",
        words: &["spillway_proto"],
        except: &[],
        because: "messages of the API stop at its calls",
    },
    Rule {
        within: "lb-daemon/fleet/member/src",
        words: &["spillway_proto"],
        except: &["sharing"],
        because: "messages of peers stop where they are taken",
    },
    Rule {
        within: "lb-daemon",
        words: &["SystemTime::now", "CLOCK_REALTIME", "UNIX_EPOCH.elapsed"],
        except: &[
            // Each takes the time to show or note it.
            "base/src/conditions.rs",
            "control/src/members/mod.rs",
            "api/src/audit/writer.rs",
            "api/src/capture/packet.rs",
            // Balancers of a fleet have no other clock in common.
            "peers/src/wall_clock.rs",
            "fleet/member/src/wall_clock.rs",
            "observe/src/http/reader.rs",
            // The validity of certificates is a matter of the wall clock.
            "secure/src/tls/expiry.rs",
            "src/app/receiver/mod.rs",
        ],
        because: "a clock that is set must change nothing: what waits or lasts goes by the monotonic one",
    },
    Rule {
        within: "lb-daemon",
        words: &["DisplacedMaps", "set_budget"],
        except: &["publish/src/reconcile/flow_walk", "maps/src"],
        because: "the displaced check is turned off by one writer",
    },
    Rule {
        within: "lb-daemon/control/src",
        words: &["WritableMaps", "MemberMaps", "PinnedMaps"],
        except: &[],
        because: "the loops ask lb-publish, whose writers can recover from the maps alone",
    },
    Rule {
        within: "lb-daemon/model/src",
        words: &["std::fs", "Instant::now()"],
        except: &[
            "hold_down/tests.rs",
            "ids/tests.rs",
            "mark_out/tests.rs",
            "overrides/tests.rs",
            "plan/tests.rs",
            "remap/tests.rs",
            "room/tests.rs",
        ],
        because: "what the model computes follows from its arguments alone",
    },
    Rule {
        within: "lb-daemon/sharing/src",
        words: &["std::fs", "Instant", "tokio", "std::net"],
        except: &[],
        because: "how a capacity is shared is simulated, with a clock, a network and disks of the test's own",
    },
    Rule {
        within: "lb-daemon",
        words: &["CaptureMaps", "CaptureSwitch"],
        except: &["api/src/capture", "maps/src"],
        because: "a capture is turned on in one place, which turns it off again",
    },
    Rule {
        within: "lb-daemon/observe/src",
        words: &["axum::", "hyper::server"],
        except: &["http"],
        because: "one folder shows things to browsers and scrapers",
    },
    Rule {
        within: "lb-daemon/observe/src",
        words: &["prometheus_client"],
        except: &["metrics"],
        because: "metrics are named, and written, in one place",
    },
    Rule {
        within: "lb-daemon",
        words: &["io::stderr()", "eprint", "println!"],
        except: &[
            "src/app/log",
            // The command's own messages, before the log is started.
            "src/app/mod.rs",
            // To cargo, or to whoever measures.
            "programs/build.rs",
            "health/examples",
            "health/tests",
            "model/src/maglev/tests",
            "sharing/tests",
        ],
        because: "a stderr that is not read blocks one thread, which does nothing else",
    },
    Rule {
        within: "lb-daemon/observe/src/http",
        words: &["commands.apply", "Command::", "WritableMaps"],
        except: &[],
        because: "the status page and the metrics change nothing",
    },
    Rule {
        within: "lb-daemon/health/src/agent_report",
        words: &["tokio", "Instant", "crate::"],
        except: &[],
        because: "an agent report follows from the lines of a backend alone",
    },
    Rule {
        within: "lb-cli",
        words: &["lb_daemon", "lb-daemon.", "lb_control", "lb_health", "lb_publish", "lb_store"],
        except: &[],
        because: "the command line reads maps and asks the daemon; it does not contain it",
    },
    Rule {
        within: "lb-cli/doctor/src/checks",
        words: &["std::fs", "Command::new", "async ", "PinnedMaps", "ReceiverMaps"],
        except: &[],
        because: "a check judges facts and reads nothing",
    },
    Rule {
        within: "xtask/src",
        words: &["lb_common::", "lb_daemon::", "spillway_proto::"],
        except: &[],
        because: "xtask builds the project, so it cannot need it",
    },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask has a parent").to_path_buf()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Code lines with their numbers, comments left out.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines.map(|(number, line)| (number + 1, line.split("//").next().unwrap_or_default()))
}

#[test]
fn what_must_stay_absent_is_absent() {
    let mut broken = Vec::new();
    for rule in RULES {
        let folder = root().join(rule.within);
        for name in rule.except.iter().filter(|name| !name.contains("bench")) {
            assert!(folder.join(name).exists(), "{}/{name} is excepted but gone", rule.within);
        }
        let mut files = Vec::new();
        rust_files(&folder, &mut files);
        assert!(!files.is_empty(), "{} holds no code", rule.within);
        for file in files {
            let inside = file.strip_prefix(&folder).unwrap();
            if rule.except.iter().any(|except| inside.starts_with(except)) {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in code(&text) {
                for word in rule.words.iter().filter(|word| line.contains(**word)) {
                    broken.push(format!(
                        "{}/{}:{number}: {word:?}: {}",
                        rule.within,
                        inside.display(),
                        rule.because
                    ));
                }
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Folders of the crates of the workspace, but for lb-ebpf's and the fuzz targets'.
fn crates() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    members.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_crate_inherits_the_lints() {
    let crates = crates();
    assert!(crates.len() > 12, "{crates:?}");
    for krate in crates {
        let manifest = fs::read_to_string(root().join(&krate).join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{krate}");
    }
}

/// The layers of the daemon, each with the layers that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "api",
        &[
            "lb-base",
            "lb-common",
            "lb-config",
            "lb-control",
            "lb-health",
            "lb-inspect",
            "lb-maps",
            "lb-member",
            "lb-model",
            "lb-publish",
            "lb-secure",
            "lb-store",
        ],
    ),
    ("base", &[]),
    ("model", &["lb-base", "lb-common"]),
    ("config", &["lb-base", "lb-common", "lb-model"]),
    ("maps", &["lb-base", "lb-common"]),
    ("net", &["lb-base", "lb-common", "lb-model"]),
    ("fleet", &["lb-base", "lb-model", "lb-pieces", "lb-sharing"]),
    (
        "fleet/member",
        &[
            "lb-base",
            "lb-config",
            "lb-control",
            "lb-fleet",
            "lb-inspect",
            "lb-model",
            "lb-peers",
            "lb-pieces",
            "lb-secure",
            "lb-sharing",
            "lb-store",
        ],
    ),
    ("manual", &[]),
    ("pieces", &[]),
    ("programs", &["lb-maps"]),
    ("secure", &["lb-base", "lb-model"]),
    (
        "observe",
        &[
            "lb-base",
            "lb-common",
            "lb-control",
            "lb-health",
            "lb-inspect",
            "lb-maps",
            "lb-member",
            "lb-model",
            "lb-publish",
            "lb-secure",
            "lb-sharing",
            "lb-store",
        ],
    ),
    ("sharing", &["lb-model"]),
    ("peers", &["lb-model", "lb-sharing"]),
    ("inspect", &["lb-base", "lb-common", "lb-config", "lb-maps", "lb-model"]),
    ("health", &["lb-base", "lb-common", "lb-model", "lb-net"]),
    (
        "control",
        &[
            "lb-base",
            "lb-common",
            "lb-config",
            "lb-health",
            "lb-maps",
            "lb-model",
            "lb-net",
            "lb-publish",
            "lb-store",
        ],
    ),
    ("publish", &["lb-base", "lb-common", "lb-maps", "lb-model", "lb-net"]),
    ("store", &["lb-base", "lb-config", "lb-model", "lb-pieces"]),
];

#[test]
fn a_layer_depends_on_those_below_it_alone() {
    for (layer, below) in LAYERS {
        let manifest = root().join("lb-daemon").join(layer).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap();
        let product = dependencies.split("[dev-dependencies]").next().unwrap();
        let ours = product.lines().filter(|line| line.starts_with("lb-"));
        let ours: Vec<_> = ours.map(|line| line.split('.').next().unwrap()).collect();
        assert_eq!(ours, *below, "{layer}");
    }
}

#[test]
fn a_plain_cargo_test_runs_every_layer() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let default = manifest.split("default-members = [").nth(1).unwrap().split(']').next().unwrap();
    // The client of etcd is built with protoc, and its tests start etcd.
    for (layer, _) in LAYERS.iter().filter(|(layer, _)| *layer != "fleet") {
        assert!(default.contains(&format!("\"lb-daemon/{layer}\"")), "{layer}");
    }
    assert!(default.contains("\"lb-common/fake\""));
}

#[test]
fn the_packet_crate_depends_on_nothing() {
    let manifest = fs::read_to_string(root().join("lb-common/Cargo.toml")).unwrap();
    assert!(!manifest.contains("\n[dependencies]"), "lb-common has a dependency");
    // The fake of the maps is a crate that every test may use, so it depends on lb-common alone of the project's.
    let fake = fs::read_to_string(root().join("lb-common/fake/Cargo.toml")).unwrap();
    let dependencies = fake.split("[dependencies]\n").nth(1).unwrap().lines();
    let ours: Vec<_> = dependencies.filter(|line| line.starts_with("lb-")).collect();
    assert_eq!(ours, ["lb-common.workspace = true"]);
}

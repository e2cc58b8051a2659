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
        except: &["balancer/emit", "probe/emit.rs", "receiver/emit.rs", "bench", "bin/bench.rs"],
        because: "only emit ends a packet, so every packet is counted",
    },
    Rule {
        within: "lb-daemon/src",
        words: &["unsafe "],
        except: &["dataplane/raw"],
        because: "mapped maps are the one unsafe thing of the daemon",
    },
    Rule {
        within: "lb-daemon/src",
        words: &["spillway_proto"],
        except: &["api", "document", "store"],
        because: "protobuf types stop at the doors",
    },
    Rule {
        within: "lb-daemon/src",
        words: &["SystemTime::now", "CLOCK_REALTIME", "UNIX_EPOCH.elapsed"],
        except: &[
            // Each takes the time to show or note it.
            "audit/writer.rs",
            "capture/clock.rs",
            "http/reader.rs",
            "role/receiver.rs",
            "state/homes.rs",
            "state/mod.rs",
            "troubles.rs",
        ],
        because: "a clock that is set must change nothing: what waits or lasts goes by the monotonic one",
    },
    Rule {
        within: "lb-daemon/src",
        words: &["aya::"],
        except: &["dataplane"],
        because: "one folder knows how maps and programs are handled",
    },
    Rule {
        within: "lb-daemon/src",
        words: &["Gates", "set_budget"],
        except: &["dataplane", "reconcile/gates"],
        because: "a gate is closed by one writer, and by nobody else",
    },
    Rule {
        within: "lb-daemon/src/model",
        words: &["crate::api", "crate::state", "crate::dataplane", "crate::store", "tokio"],
        except: &[],
        because: "data goes one way: doors to model to state to plan to maps",
    },
    Rule {
        within: "lb-daemon/src/plan",
        words: &["crate::dataplane", "crate::reconcile", "crate::api", "tokio"],
        except: &[],
        because: "a plan is a pure function of configuration and ids",
    },
    Rule {
        within: "lb-daemon/src/capacity",
        words: &["crate::dataplane", "crate::reconcile", "crate::state", "tokio"],
        except: &[],
        because: "a limit is a pure function of configuration and health",
    },
    Rule {
        within: "lb-daemon/src/homes",
        words: &["crate::dataplane", "crate::reconcile", "crate::state", "tokio", "Instant::now()"],
        except: &["tests.rs"],
        because: "phases follow from moments that are handed in",
    },
    Rule {
        within: "lb-daemon/src",
        words: &["CaptureMaps", "CaptureSwitch"],
        except: &["dataplane", "capture"],
        because: "a capture is turned on in one place, which turns it off again",
    },
    Rule {
        within: "lb-daemon/src",
        words: &["axum::", "hyper::server"],
        except: &["http"],
        because: "one folder shows things to browsers and scrapers",
    },
    Rule {
        within: "lb-daemon/src",
        words: &["prometheus_client"],
        except: &["metrics"],
        because: "metrics are defined, and written, in one place",
    },
    Rule {
        within: "lb-daemon/src/http",
        words: &["commands.apply", "Command::", "WritableMaps"],
        except: &[],
        because: "who looks changes nothing",
    },
    Rule {
        within: "lb-daemon/src/shares",
        words: &["crate::", "tokio", "Instant"],
        except: &["tests.rs"],
        because: "a share follows from times and weights that are handed in",
    },
    Rule {
        within: "lb-daemon/src/health/word",
        words: &["tokio", "Instant", "crate::"],
        except: &[],
        because: "what a backend says follows from its lines alone",
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

#[test]
fn every_crate_inherits_the_lints() {
    for krate in ["lb-common", "lb-ebpf", "lb-daemon", "lb-cli", "proto", "xtask", "tests"] {
        let manifest = fs::read_to_string(root().join(krate).join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{krate}");
    }
}

#[test]
fn the_packet_crate_depends_on_nothing() {
    let manifest = fs::read_to_string(root().join("lb-common/Cargo.toml")).unwrap();
    assert!(!manifest.contains("\n[dependencies]"), "lb-common has a dependency");
}

//! `spillway watch`, read as it prints.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use lb_tests::daemon::Balancer;
use lb_tests::process::until;
use serde_json::Value;

/// What the balancer last said of a backend, and when it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) state: String,
    pub(crate) reason: String,
    pub(crate) at: Instant,
}

/// A running `spillway watch`.
#[derive(Debug)]
pub(crate) struct Watch {
    child: Child,
    said: Arc<Mutex<BTreeMap<String, Said>>>,
}

impl Watch {
    pub(crate) fn start(balancer: &Balancer) -> Result<Self> {
        let mut command = balancer.command(&["--output", "json", "watch"]);
        command.stdout(std::process::Stdio::piped());
        let mut child = command.spawn().context("start spillway watch")?;
        let out = child.stdout.take().context("output of spillway watch")?;
        let said = Arc::new(Mutex::new(BTreeMap::new()));
        std::thread::spawn({
            let said = said.clone();
            move || {
                // It ends when the program does.
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    let event = serde_json::from_str(&line).unwrap_or(Value::Null);
                    let backends = match event["event"].as_str() {
                        Some("snapshot") => event["status"]["backends"].as_array().cloned(),
                        Some("backend") => Some(vec![event["backend"].clone()]),
                        _ => None,
                    };
                    let mut said = said.lock().expect("nobody panics with it");
                    for backend in backends.into_iter().flatten() {
                        let text = |name: &str| backend[name].as_str().unwrap_or("?").to_owned();
                        let now =
                            Said { state: text("state"), reason: text("text"), at: Instant::now() };
                        said.insert(text("address"), now);
                    }
                }
            }
        });
        let watch = Self { child, said };
        until("spillway watch prints", Duration::from_secs(5), || {
            Ok((!watch.said.lock().expect("nobody panics with it").is_empty()).then_some(()))
        })?;
        Ok(watch)
    }

    /// Waits until a backend is said to be up.
    pub(crate) fn wait_up(&self, address: &str) -> Result<Said> {
        self.wait(address, "up", |state| state == "up")
    }

    /// Waits until a backend is said to be anything but up.
    pub(crate) fn wait_down(&self, address: &str) -> Result<Said> {
        self.wait(address, "down", |state| state != "up")
    }

    fn wait(&self, address: &str, what: &str, is_so: impl Fn(&str) -> bool) -> Result<Said> {
        until(&format!("{address} is {what}"), Duration::from_secs(10), || {
            let said = self.said.lock().expect("nobody panics with it");
            Ok(said.get(address).filter(|said| is_so(&said.state)).cloned())
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

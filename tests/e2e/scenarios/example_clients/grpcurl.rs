use anyhow::{Context as _, Result, bail, ensure};
use lb_tests::sandbox::Sandbox;
use serde_json::Value;

use super::{CONFIGURATION, Host, LAB_SOCKET, go::program};

/// The commands of docs/api.md, which need no proto files, as the daemon answers reflection.
pub(super) fn works(sandbox: &Sandbox) -> Result<()> {
    let host = Host::start(sandbox, "grpcurl", CONFIGURATION)?;
    let program = program("grpcurl")?;
    let document = include_str!("../../../../docs/api.md");
    let run = |arguments: &[&str]| {
        let mut command = host.fabric.balancer.command(&program);
        command.args(["-plaintext", "-unix"]);
        host.run(command, arguments)
    };
    let socket = host.balancer.socket.display().to_string();
    let call = |method: &str, request: &str| -> Result<(Option<i32>, Value, String)> {
        let (code, out, err) = run(&["-d", request, &socket, &format!("spillway.v1.{method}")])?;
        let answer = if out.is_empty() { Value::Null } else { serde_json::from_str(&out)? };
        Ok((code, answer, err))
    };
    let (code, out, _) = run(&[&socket, "list", "spillway.v1.Objects"])?;
    ensure!(code == Some(0) && out.contains("spillway.v1.Objects.BatchCreateBackends\n"), "{out}");

    // Those of the document, word for word.
    let first = document.lines().filter_map(|line| line.strip_prefix("grpcurl -plaintext -unix "));
    let first: Vec<_> = first.filter_map(|rest| rest.strip_prefix(LAB_SOCKET)).collect();
    for (rest, expected) in first.iter().zip(["spillway.v1.Fleet\n", "\"generation\": \"1\""]) {
        let (code, out, err) = run(&[&socket, rest.trim()])?;
        ensure!(code == Some(0) && out.contains(expected), "{rest}: {out} {err}");
    }
    ensure!(first.len() == 2, "{first:?}");
    let section = document.split("\n## From a shell\n").nth(1).context("From a shell")?;
    let section = section.split("\n## ").next().context("an end")?;
    let requests = section.split("-d '").skip(1).filter_map(|rest| rest.split('\'').next());
    let requests: Vec<_> = requests.collect();
    let [list, update] = requests[..] else { bail!("{requests:?}") };
    let (code, answer, err) = call("Objects/ListBackends", list)?;
    ensure!(code == Some(0) && answer["backends"].is_null(), "{answer} {err}");
    let (code, answer, err) = call("Objects/UpdateBackend", update)?;
    ensure!(code == Some(0), "{err}");
    let changed = &answer["result"]["changes"][1]["fields"][0];
    ensure!(changed["field"] == "weight" && changed["new"] == "3", "{answer}");

    let drain =
        r#"{"targets": [{"pool": "web", "backend": "10.1.0.12"}], "kind": "OVERRIDE_KIND_DRAIN"}"#;
    let (code, answer, err) = call("Overrides/SetOverrides", drain)?;
    let name = &answer["overrides"][0]["name"];
    ensure!(code == Some(0) && name == "pools/web/backends/10.1.0.12/drain", "{answer} {err}");
    let status = r#"{"pool": "web", "address": "10.1.0.12"}"#;
    let (_, answer, _) = call("Spillway/GetBackendStatus", status)?;
    ensure!(answer["state"] == "BACKEND_STATE_DRAINING", "{answer}");

    // The word for programs is among the details.
    let (code, _, err) =
        call("Spillway/GetBackendStatus", r#"{"pool": "web", "address": "10.9.9.9"}"#)?;
    ensure!(
        code != Some(0) && err.contains("NotFound") && err.contains("OBJECT_NOT_FOUND"),
        "{err}"
    );
    Ok(())
}

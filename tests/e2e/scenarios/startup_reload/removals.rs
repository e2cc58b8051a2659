//! A configuration file that removes much at once: at a reload, at a signal and at a start.

use std::fs;

use anyhow::{Result, ensure};
use lb_tests::sandbox::Sandbox;
use serde_json::Value;

use crate::{host::Host, startup_reload::settings_files::hang_up};

/// A pool with backends of these last bytes, and a service.
fn web(backends: std::ops::RangeInclusive<u8>) -> String {
    let backend =
        |last| format!("[[pool.backend]]\naddress = \"10.1.0.{last}\"\nregion = \"eu\"\n");
    let backends: String = backends.map(backend).collect();
    format!(
        "[[region]]\nname = \"eu\"\n[[pool]]\nname = \"web\"\nslots = 1009\n{backends}[[service]]\nname = \"web\"\n\
         address = \"192.0.2.80\"\nport = 80\nprotocol = \"tcp\"\npool = \"web\"\n"
    )
}

pub(crate) fn of_a_file(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "removals")?;
    let audit = host.path("audit.log");
    let apply =
        format!("apply = {:?}\nregion = \"eu\"\naudit-file = {audit:?}\n", host.path("web.toml"));
    host.write("settings.toml", &host.settings(&apply))?;
    host.write("web.toml", &web(11..=20))?;
    let config = host.path("settings.toml").display().to_string();
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1");
    ensure!(host.status()?.generation == 1);

    // As a template that was filled from half of an answer, or from none. (A file without a word is refused as such.)
    let half = "pool web loses 5 of 10 backends, more than 30 %: this needs --force";
    let all = "the configuration loses all backends, of which it has 10: this needs --force";
    for (text, cause) in [(web(16..=20), half), ("# nothing\n".into(), all)] {
        host.write("web.toml", &text)?;
        let output = host.cli(&["reload"])?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(6) && said.contains(cause), "{output:?}");
        ensure!(host.told()?.starts_with("RELOADING=1") && host.told()? == "READY=1");
        hang_up(&host, &running)?;
        let status = host.status()?;
        ensure!(status.generation == 1, "{status:?}");
        ensure!(status.conditions.iter().any(|it| it.text == cause), "{status:?}");
    }

    // A start begins with what was in force.
    host.write("web.toml", &web(16..=20))?;
    host.stop(&mut running)?;
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1");
    let status = host.status()?;
    ensure!(status.generation == 1, "{status:?}");
    ensure!(status.conditions.iter().any(|it| it.text.contains(half)), "{status:?}");

    let output = host.cli(&["reload", "--force"])?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(said == "reloaded: generation 2 is in force\n", "{output:?}");
    ensure!(!host.status()?.conditions.iter().any(|it| it.text.contains("--force")));
    host.write("web.toml", &web(11..=20))?;
    ensure!(host.cli(&["reload"])?.status.success(), "what adds needs no force");
    host.stop(&mut running)?;

    let noted = fs::read_to_string(&audit)?;
    let noted: Vec<Value> = noted.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let forced: Vec<_> = noted.iter().filter(|line| line["forced"].is_array()).collect();
    ensure!(forced.len() == 1 && forced[0]["after"] == 2, "{noted:?}");
    ensure!(
        noted.iter().any(|line| line["what"] == "reload" && line["force"] == true),
        "{noted:?}"
    );
    Ok(())
}

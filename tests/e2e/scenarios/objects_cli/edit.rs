//! `spillway edit` keeps a draft that cannot be applied, and changes nothing if another change came first.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::Balancer;
use lb_tests::sandbox::Sandbox;

use crate::objects_cli::{CONFIGURATION, balancer};

/// Edits, which fails; its exit status and what it says.
fn edit(balancer: &Balancer, editor: &str) -> Result<(i32, String)> {
    let output = balancer.shell("spillway edit").env("EDITOR", editor).output()?;
    ensure!(output.stdout.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stderr).context("stderr")?;
    Ok((output.status.code().context("killed")?, said))
}

/// The file that a hint names.
fn draft(said: &str) -> Result<PathBuf> {
    let mut words = said.split([' ', '`', ':']);
    let path = words.find(|word| word.ends_with(".toml")).with_context(|| said.to_owned())?;
    Ok(path.into())
}

/// What an editor left that is no configuration, or one that the daemon refuses, is not lost.
pub(crate) fn kept(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, balancer) = balancer(sandbox, "kept")?;
    balancer.apply(CONFIGURATION)?;
    let before = balancer.client()?.export()?;
    for (change, cause, written) in [
        ("s/^port = 80$/prot = 80/", "unknown field `prot`", "prot = 80\n"),
        ("s/^weight = 1$/weight = 1000001/", "weight: 1000001 is not", "weight = 1000001\n"),
    ] {
        let (status, said) = edit(&balancer, &format!("sed -i '{change}'"))?;
        ensure!(status == 6 && said.contains(cause), "{status}: {said}");
        let path = draft(&said)?;
        ensure!(said.starts_with(&format!("error: {}: line ", path.display())), "{said}");
        let hint = format!("spillway apply -f {} --expect-generation 1`\n", path.display());
        ensure!(said.ends_with(&hint), "{said}");
        let text = fs::read_to_string(&path).with_context(|| said.clone())?;
        ensure!(text.starts_with("# generation 1\n") && text.contains(written), "{text}");
    }
    // Nobody can be asked whether packets are to stop.
    let (status, said) = edit(&balancer, "sed -i '/^\\[\\[service/,$d'")?;
    ensure!(status == 2 && said.contains("this stops packets: all connections of"), "{said}");
    let path = draft(&said)?;
    let hint = format!("spillway apply -f {} --expect-generation 1 --yes`\n", path.display());
    ensure!(said.ends_with(&hint), "{said}");
    ensure!(balancer.client()?.export()? == before, "something was changed");
    Ok(())
}

/// While the editor was open somebody else changed something.
pub(crate) fn overtaken(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, balancer) = balancer(sandbox, "overtaken")?;
    balancer.apply(CONFIGURATION)?;
    let editor = "spillway region create asia > /dev/null && sed -i 's/^weight = 1$/weight = 2/'";
    let (status, said) = edit(&balancer, editor)?;
    ensure!(status == 7, "{status}: {said}");
    let path = draft(&said)?;
    let hint = format!("your file is kept: see `spillway diff -f {}`\n", path.display());
    ensure!(said.ends_with(&hint), "{said}");
    ensure!(fs::read_to_string(&path)?.contains("weight = 2\n"), "the draft has what was written");
    let exported = balancer.cli(&["export"])?;
    ensure!(exported.starts_with("# generation 2\n"), "{exported}");
    ensure!(exported.contains("\"asia\"") && !exported.contains("weight = 2"), "{exported}");
    Ok(())
}

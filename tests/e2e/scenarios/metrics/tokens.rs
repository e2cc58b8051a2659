//! Over TLS, and only with a token, a client on another host reads metrics and the status page.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::{Balancer, Binaries, Receiver},
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::{Fabric, Node, REGIONS},
};
use spillway_proto::v1::ConditionReason;

use crate::api_access::tls::{authority, certificate};

const TOKEN: &str = "c3BpbGx3YXktZmlyc3Q=";
const NEXT: &str = "c3BpbGx3YXktbmV4dA==";

/// The flags of a listener with the certificate and the tokens of a folder.
fn flags(folder: &Path, address: &str) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let flags = [
        ("--http", format!("{address}:9750")),
        ("--http-tls-cert", file("daemon.cert")),
        ("--http-tls-key", file("daemon.key")),
        ("--http-token-file", file("tokens")),
    ];
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}

/// What curl on a node prints of a URL, headers first; `Err`: why there is no answer.
fn curl(node: &Node, authority: &Path, url: &str, more: &[&str]) -> Result<Result<String, String>> {
    let mut curl: Command = node.command("curl");
    curl.args(["--silent", "--show-error", "--include", "--max-time", "10", "--cacert"]);
    let output = curl.arg(authority).args(more).arg(url).output().context("start curl")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    })
}

pub(crate) fn over_tls(sandbox: &Sandbox) -> Result<()> {
    let fabric = Fabric::new(sandbox, "tokens", 1)?;
    let (binaries, client) = (Binaries::find()?, &fabric.client);
    let folder = fabric.balancer.directory().to_owned();
    let ours = authority(&folder, "ours")?;
    certificate(&folder, &ours, "daemon", "spillwayd.example")?;
    let mut balancer = Balancer::new(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
    balancer.more = flags(&folder, &Fabric::BALANCER_V4.to_string());
    balancer.more.push("--status-page".into());
    let missing = balancer.start().err().context("it starts without its file")?;
    let sentence = format!("{}: No such file or directory", folder.join("tokens").display());
    ensure!(format!("{missing:#}").contains(&sentence), "{missing:#}");
    fs::write(folder.join("tokens"), TOKEN)?;
    balancer.start()?;

    let authority = folder.join("ours.ca");
    let get = |path: &str, more: &[&str]| {
        curl(client, &authority, &format!("https://{}:9750{path}", Fabric::BALANCER_V4), more)
    };
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    let (first, next) = (bearer(TOKEN), bearer(NEXT));
    let answers = |path: &str, more: &[&str], status: &str| -> Result<String> {
        let answer = get(path, more)?.map_err(anyhow::Error::msg)?;
        ensure!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path} {more:?}: {answer}");
        Ok(answer)
    };
    let metrics = answers("/metrics", &["--header", &first], "200")?;
    ensure!(metrics.ends_with("# EOF\n"), "{metrics}");
    for series in [
        "\nspillway_http_requests_refused_total 0\n",
        "\nspillway_tls_certificate_expiration_timestamp_seconds{certificate=\"http\"} ",
    ] {
        ensure!(metrics.contains(series), "{series}: {metrics}");
    }
    // As a browser does.
    let page = answers("/", &["--user", &format!("eye:{TOKEN}")], "200")?;
    ensure!(page.contains("<html"), "{page}");
    answers("/data.json", &["--user", &format!(":{TOKEN}")], "200")?;
    for path in ["/metrics", "/", "/data.json", "/nothing"] {
        let refused = answers(path, &[], "401")?;
        ensure!(refused.contains("www-authenticate: Basic realm=\"spillway\""), "{refused}");
        answers(path, &["--header", &next], "401")?;
    }
    // On a busy machine the daemon gives out for a while what it has read.
    until("eight requests were refused", PATIENCE, || {
        let metrics = answers("/metrics", &["--header", &first], "200")?;
        Ok(metrics.contains("\nspillway_http_requests_refused_total 8\n").then_some(()))
    })?;
    // Nothing is answered without TLS, and a client that trusts another authority does not accept the certificate.
    let plain = format!("http://{}:9750/metrics", Fabric::BALANCER_V4);
    ensure!(curl(client, &authority, &plain, &["--header", &first])?.is_err());
    crate::api_access::tls::authority(&folder, "other")?;
    let other = curl(
        client,
        &folder.join("other.ca"),
        &plain.replacen("http", "https", 1),
        &["--header", &first],
    )?;
    ensure!(other.as_ref().is_err_and(|error| error.contains("certificate")), "{other:?}");

    // A new token counts as soon as the daemon has read it, without any call.
    fs::write(folder.join("tokens"), format!("# from today on\n{NEXT}\n"))?;
    until("the new token is accepted", PATIENCE, || {
        let answer = get("/metrics", &["--header", &next])?.map_err(anyhow::Error::msg)?;
        Ok(answer.starts_with("HTTP/1.1 200 ").then_some(()))
    })?;
    answers("/metrics", &["--header", &first], "401")?;
    // A file without a token lets nobody else in, and a reload says what is wrong.
    fs::write(folder.join("tokens"), "# none\n")?;
    let refused = balancer.try_cli(&["reload"], None)?;
    let said = String::from_utf8_lossy(&refused.stderr);
    let wrong = format!("HTTP: {}: contains no token", folder.join("tokens").display());
    ensure!(refused.status.code() == Some(6) && said.contains(&wrong), "{refused:?}");
    let conditions = balancer.status()?.conditions;
    ensure!(conditions[0].reason() == ConditionReason::HttpFiles, "{conditions:?}");
    answers("/metrics", &["--header", &next], "200")?;
    answers("/metrics", &[], "401")?;

    receiver(sandbox, &fabric, &binaries, &folder)
}

/// A receiver's metrics are guarded in the same way, with the same files.
fn receiver(sandbox: &Sandbox, fabric: &Fabric, binaries: &Binaries, folder: &Path) -> Result<()> {
    let backend = &fabric.backends[0];
    fs::write(folder.join("tokens"), TOKEN)?;
    let more = flags(folder, &backend.v4.to_string());
    let more: Vec<_> = more.iter().map(String::as_str).collect();
    let sources = [Fabric::BALANCER_V4.into()];
    let vips = [Fabric::VIP_V4.into()];
    let _running = Receiver::start_with(sandbox, binaries, &backend.node, &sources, &vips, &more)?;
    let resolve = format!("spillwayd.example:9750:{}", backend.v4);
    let get = |more: &[&str]| -> Result<String> {
        let more = [&["--resolve", &*resolve], more].concat();
        let url = "https://spillwayd.example:9750/metrics";
        curl(&fabric.balancer, &folder.join("ours.ca"), url, &more)?.map_err(anyhow::Error::msg)
    };
    let refused = get(&[])?;
    ensure!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let metrics = get(&["--oauth2-bearer", TOKEN])?;
    for series in [
        "\nspillway_http_requests_refused_total 1\n",
        "\nspillway_tls_certificate_expiration_timestamp_seconds{certificate=\"http\"} ",
    ] {
        ensure!(metrics.contains(series), "{series}: {metrics}");
    }
    Ok(())
}

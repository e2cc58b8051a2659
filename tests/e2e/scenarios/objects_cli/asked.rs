use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_tests::sandbox::Sandbox;

use super::{CONFIGURATION, balancer};

/// The daemon closes a connection whose client does not answer its pings for longer: it sends the first after 30 s, and
/// waits 20 s (`api/server.rs`).
const KEEPALIVE: Duration = Duration::from_secs(50);

/// On a terminal the user is asked before packets stop, and may take any time to answer.
pub(super) fn on_a_terminal(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, balancer) = balancer(sandbox, "asked")?;
    balancer.apply(CONFIGURATION)?;
    let services = || -> Result<usize> { Ok(balancer.client()?.export()?.1.services.len()) };
    let answer = |answer: &str, after: Duration| {
        let delete = "script -qec 'spillway service delete web' /dev/null";
        let script = format!("(sleep {}; printf '{answer}\\n') | {delete}", after.as_secs());
        balancer.shell(&script).output().context("script")
    };
    let refused = answer("no", Duration::ZERO)?;
    let said = String::from_utf8_lossy(&refused.stdout);
    let question = "This stops packets:\r\n  all connections of service web are no longer balanced\r\n\
                    Go on? [y/N]\r\n";
    ensure!(said.contains(question) && said.contains("error: not confirmed"), "{said}");
    ensure!(refused.status.code() == Some(1) && services()? == 1, "{refused:?}");
    let done = answer("yes", KEEPALIVE + Duration::from_secs(5))?;
    let said = String::from_utf8_lossy(&done.stdout);
    ensure!(done.status.success() && said.contains("- service web\r\n"), "{done:?}");
    ensure!(services()? == 0);
    Ok(())
}

//! Clusters of etcd as fleets use them.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::certificates::{Authority, Certificate};
use lb_e2e::etcd::{EtcdCluster, EtcdOptions, Identity, put_to_watch};
use lb_e2e::harness;
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Cut, FleetFabric, Host};

/// Each balancer reaches etcd with its certificate and not without; also after the leader was killed.
pub(super) fn tls(sandbox: &Sandbox) -> Result<()> {
    let mut fabric = FleetFabric::new(sandbox, "tls", 4, 1, 3)?;
    let folder = sandbox.directory("certificates")?;
    let authority = Authority::new(&folder, "edge")?;
    let mut etcd = EtcdCluster::start(&fabric.etcd, Some(&authority), EtcdOptions::default())?;
    let strangers = Authority::new(&folder.join("strangers"), "strangers")?;
    let stranger = strangers.issue("lb-1", &[])?;
    let stranger = Certificate { authority: authority.file(), ..stranger };

    let issue = |host: &Host| authority.issue(host.name(), &[host.v4.into(), host.v6.into()]);
    let certificates = fabric.balancers.iter().map(issue).collect::<Result<Vec<_>>>()?;
    for (host, own) in fabric.balancers.iter().zip(&certificates) {
        let key = format!("/members/{}", host.name());
        let output = etcd.etcdctl(&host.node, Some(own)).args(["put", &key, "here"]).output()?;
        ensure!(output.status.success(), "{}: {output:?}", host.name());
    }
    let without = [None, Some(&stranger)];
    for certificate in without {
        let mut command = etcd.etcdctl(&fabric.balancers[0].node, certificate);
        let output = command.args(["--command-timeout=2s", "get", "/"]).output()?;
        ensure!(!output.status.success(), "{certificate:?}: {output:?}");
    }

    let [writer, watcher] = [0, 3].map(|n| (&fabric.balancers[n].node, Some(&certificates[n])));
    harness::note(format!("put to watch: {}", put_to_watch(&etcd, writer, watcher, 200)?));

    let leader = etcd.leader()?;
    etcd.kill(leader)?;
    let next = etcd.leader()?;
    ensure!(next != leader, "a dead server leads");
    for (host, own) in fabric.balancers.iter().zip(&certificates) {
        until("etcd answers without its first leader", PATIENCE, || {
            let mut command = etcd.etcdctl(&host.node, Some(own));
            let output = command.args(["get", "--prefix", "/members/", "--keys-only"]).output()?;
            let keys = String::from_utf8_lossy(&output.stdout).matches("/members/lb-").count();
            Ok((output.status.success() && keys == 4).then_some(()))
        })?;
    }

    // Without a majority nothing is written: one server is dead, one is stopped.
    let other = (0..3).find(|server| *server != leader && *server != next).context("no other")?;
    etcd.freeze(other)?;
    ensure!(etcd.ask_at(next, &["--command-timeout=2s", "put", "/x", "y"]).is_err());
    etcd.thaw(other)?;
    etcd.spawn(leader)?;
    (0..3).try_for_each(|server| etcd.wait_until_it_answers(server))?;

    let reach = |fabric: &FleetFabric| -> Result<bool> {
        let host = &fabric.balancers[1].node;
        let mut command = etcd.etcdctl(host, Some(&certificates[1]));
        Ok(command.args(["--command-timeout=2s", "get", "/x"]).output()?.status.success())
    };
    fabric.cut(1, Cut::Etcd)?;
    ensure!(!reach(&fabric)?, "a balancer that is cut off reaches etcd");
    fabric.heal(1)?;
    until("etcd is reached again", PATIENCE, || Ok(reach(&fabric)?.then_some(())))
}

/// A cluster that takes no more writes until there is room, and one that goes back to a snapshot.
pub(super) fn data(sandbox: &Sandbox) -> Result<()> {
    let fabric = FleetFabric::new(sandbox, "data", 1, 1, 3)?;
    let options = EtcdOptions { quota: Some(8 << 20), retention: None };
    let mut etcd = EtcdCluster::start(&fabric.etcd, None, options)?;
    etcd.ask(&["put", "/x", "first"])?;
    let (id, snapshot) = (etcd.id()?, etcd.save_snapshot("backup")?);
    let saved_at = etcd.revision()?;
    etcd.ask(&["put", "/x", "second"])?;

    etcd.fill()?;
    let full = etcd.ask(&["put", "/x", "third"]).err().context("a full cluster takes writes")?;
    ensure!(full.to_string().contains("database space exceeded"), "{full}");
    etcd.make_room()?;
    etcd.ask(&["put", "/x", "third"])?;

    let compacted = etcd.compact()?;
    let old = format!("--rev={}", compacted - 1);
    let gone = etcd.ask(&["get", "/x", &old]).err().context("history is there")?;
    ensure!(gone.to_string().contains("required revision has been compacted"), "{gone}");

    for (identity, is_same) in [(Identity::Same, true), (Identity::New, false)] {
        etcd.restore(&snapshot, identity)?;
        ensure!(etcd.ask(&["get", "/x", "--print-value-only"])? == "first\n");
        ensure!(etcd.revision()? == saved_at && (etcd.id()? == id) == is_same);
    }
    Ok(())
}

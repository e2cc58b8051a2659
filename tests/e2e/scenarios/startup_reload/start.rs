//! A start that cannot work fails with one sentence and a hint; a full disk changes nothing.

use std::{
    fs,
    io::ErrorKind,
    net::TcpListener,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{MetadataExt, PermissionsExt},
            net::UnixListener,
        },
    },
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::sandbox::Sandbox;
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::signal::Signal,
};

use crate::host::Host;

/// A daemon that refuses to start: status 1, one sentence with these words, and a hint.
fn refused(command: &mut Command, sentence: &str, hint: &str) -> Result<()> {
    let output: Output = command.env("RUST_LOG", "off").output().context("spillwayd")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = said.lines().collect();
    ensure!(output.status.code() == Some(1), "{output:?}");
    ensure!(lines.len() == 2, "{said}");
    ensure!(lines[0].starts_with("spillwayd: ") && lines[0].contains(sentence), "{said}");
    ensure!(lines[1].starts_with("hint: ") && lines[1].contains(hint), "{said}");
    Ok(())
}

pub(crate) fn socket_rights(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "rights")?;
    let more = "socket-owner = \"nobody\"\nsocket-group = 7\nsocket-mode = 640\n";
    host.write("settings.toml", &host.settings(more))?;
    let config = host.path("settings.toml").display().to_string();
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1", "{}", running.output());
    let socket = fs::symlink_metadata(host.path("s.sock"))?;
    let mode = socket.permissions().mode() & 0o777;
    ensure!((socket.uid(), socket.gid(), mode) == (65534, 7, 0o640), "{socket:?}");
    let ask = |user: &str, group: &str| {
        let mut command = host.fabric.balancer.command("setpriv");
        command.args([&*format!("--reuid={user}"), &format!("--regid={group}"), "--clear-groups"]);
        command.arg(&host.binaries.spillway).arg("--socket").arg(host.path("s.sock"));
        command.arg("status").output().context("setpriv")
    };
    let owner = ask("65534", "65534")?;
    ensure!(owner.status.success(), "the owner: {owner:?}");
    // To talk takes the right to write.
    for (user, group) in [("4242", "7"), ("4242", "4242")] {
        let other = ask(user, group)?;
        let said = String::from_utf8_lossy(&other.stderr);
        ensure!(other.status.code() == Some(4) && said.lines().count() == 2, "{other:?}");
        ensure!(said.contains("s.sock") && said.contains("\nhint: "), "{said}");
    }
    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());
    Ok(())
}

pub(crate) fn in_use(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "in-use")?;
    host.write("settings.toml", &host.settings(""))?;
    let config = host.path("settings.toml").display().to_string();
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1", "{}", running.output());
    let second = |more: &[&str]| host.daemon(&[&["balancer", "--config", &config], more].concat());
    let other = |name: &str| host.path(name).display().to_string();
    let stop = format!("stop the other daemon (process {})", running.id());
    refused(&mut second(&[]), "in use by another spillwayd", &stop)?;
    let state = other("other");
    refused(&mut second(&["--state-dir", &state]), "another spillwayd listens there", &stop)?;
    let socket = other("o.sock");
    let apart = ["--state-dir", &*state, "--socket", &*socket];
    refused(&mut second(&apart), "in use by another spillwayd", &stop)?;
    ensure!(host.status()?.interfaces[0].mode == "native", "the first one goes on");
    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());

    // Addresses that somebody else listens on.
    let (cert, key) = (other("cert"), other("key"));
    let own = rcgen::generate_simple_self_signed(vec!["spillwayd.example".into()])?;
    host.write("cert", &own.cert.pem())?;
    host.write("key", &own.signing_key.serialize_pem())?;
    let taken = host.fabric.balancer.enter(|| TcpListener::bind(("127.0.0.1", 0)))??;
    let address = taken.local_addr()?.to_string();
    let tls = ["--listen", &*address, "--tls-cert", &*cert, "--tls-key", &*key, "--tls-ca", &*cert];
    refused(
        &mut second(&tls),
        &format!("{address}: cannot listen: Address already in use"),
        "`ss -ltnp` shows which process listens there",
    )?;
    refused(
        &mut second(&["--http", &address]),
        &format!("http {address}: Address already in use"),
        "give --http another port",
    )
}

/// A disk that fills up while the daemon runs: what is in force stays, and is changed when there is
/// room again.
pub(crate) fn full_disk(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "full")?;
    host.write("settings.toml", &host.settings("audit-file = \"/dev/full\"\n"))?;
    host.write("web.toml", "[[region]]\nname = \"eu\"\n")?;
    let many: String = (0..500).map(|n| format!("[[region]]\nname = \"r{n}\"\n")).collect();
    host.write("many.toml", &many)?;
    let state = host.path("state");
    fs::create_dir_all(&state)?;
    let _disk = Disk::mount(&state)?;
    let config = host.path("settings.toml").display().to_string();
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1", "{}", running.output());
    let path = |name: &str| host.path(name).display().to_string();
    let apply = |name: &str| host.cli(&["apply", "-f", &path(name)]);
    let applied = apply("web.toml")?;
    ensure!(applied.status.success(), "{applied:?}");

    // The change is in force, and that it was not noted is said.
    let conditions = format!("{:?}", host.status()?.conditions);
    ensure!(
        conditions.contains("/dev/full") && conditions.contains("audit: not written"),
        "{conditions}"
    );

    let filler = state.join("filler");
    let full = fs::write(&filler, vec![1; Disk::SIZE]).err().context("the disk is not full")?;
    ensure!(full.kind() == ErrorKind::StorageFull, "{full}");
    let refused = apply("many.toml")?;
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(refused.status.code() == Some(1), "{refused:?}");
    ensure!(said.lines().count() == 2 && said.contains("No space left on device"), "{said}");
    ensure!(said.contains("\nhint: free space on the disk"), "{said}");
    let in_force = || -> Result<String> {
        let output = host.cli(&["export"])?;
        ensure!(output.status.success(), "{output:?}");
        Ok(String::from_utf8(output.stdout)?)
    };
    let before = in_force()?;
    ensure!(host.status()?.generation == 1 && !before.contains("r499"), "{before}");

    fs::remove_file(&filler)?;
    let applied = apply("many.toml")?;
    ensure!(applied.status.success(), "with room again: {applied:?}");
    ensure!(host.status()?.generation == 2 && in_force()?.contains("r499"));
    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());
    Ok(())
}

/// A small disk; it goes with this.
struct Disk(PathBuf);

impl Disk {
    /// Bytes.
    const SIZE: usize = 4 << 20;

    fn mount(at: &Path) -> Result<Self> {
        let options = format!("size={}", Self::SIZE);
        mount(Some("none"), at, Some("tmpfs"), MsFlags::empty(), Some(options.as_str()))?;
        Ok(Self(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The daemon may still have files there, if the test failed.
        let _gone_with_the_sandbox = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

pub(crate) fn without_capabilities(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "unable")?;
    host.write("settings.toml", &host.settings(""))?;
    // Root in name, and nobody at all: neither may load a packet program.
    for words in [&["--bounding-set=-all"][..], &["--reuid=65534", "--clear-groups"]] {
        let mut command = host.fabric.balancer.command("setpriv");
        command.args(words).args(["--inh-caps=-all", "--"]).arg(&host.binaries.spillwayd);
        command.args(["balancer", "--config"]).arg(host.path("settings.toml"));
        if words.len() == 1 {
            refused(&mut command, "ermitted", "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON")?;
        } else {
            refused(&mut command, "ermission denied", "run as")?;
        }
    }
    Ok(())
}

pub(crate) fn lacking(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "lacking")?;
    host.write("settings.toml", &host.settings(""))?;
    fs::create_dir_all(host.path("state"))?;
    let state = host.path("state").display().to_string();
    // In mounts of its own: a kernel that says it is old, one that shows no types, a full disk, and
    // one that is read only.
    for (script, sentence, hint) in [
        ("exec setarch --uname-2.6 \"$@\"", "is too old", "boot Linux 6.1"),
        (
            "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"",
            "/sys/kernel/btf/vmlinux: does not exist, so the kernel has no BTF",
            "CONFIG_DEBUG_INFO_BTF=y",
        ),
        (
            &*format!(
                "mount -t tmpfs -o size=4k none {state} && printf %4096s > {state}/x && exec \"$@\""
            ),
            "No space left on device",
            "make room on the disk",
        ),
        (
            &*format!("mount -t tmpfs -o ro none {state} && exec \"$@\""),
            "Read-only file system",
            "`ReadWritePaths=`",
        ),
    ] {
        let mut command = host.fabric.balancer.command("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(&host.binaries.spillwayd);
        command.args(["balancer", "--config"]).arg(host.path("settings.toml"));
        refused(&mut command, sentence, hint).with_context(|| script.to_owned())?;
    }
    Ok(())
}

/// Hands its standard input over as a service manager does, sd_listen_fds(3).
const HAND_OVER: &str =
    "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" balancer --config \"$1\"";

/// A daemon answers on the socket that the service manager hands over, and leaves it there.
pub(crate) fn handed_over_socket(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "activation")?;
    host.write("settings.toml", &host.settings(""))?;
    let listener = UnixListener::bind(host.path("s.sock"))?;
    for _ in 0..2 {
        let mut command = host.fabric.balancer.command("sh");
        command.args(["-c", HAND_OVER]).arg(&host.binaries.spillwayd);
        command.arg(host.path("settings.toml")).env("NOTIFY_SOCKET", host.path("notify"));
        command.stdin(OwnedFd::from(listener.try_clone()?));
        let mut running = host.start(&mut command)?;
        ensure!(host.told()? == "READY=1");
        ensure!(host.status()?.generation == 0);
        running.signal(Signal::SIGTERM)?;
        ensure!(running.wait()?.success(), "{}", running.output());
        ensure!(host.told()? == "STOPPING=1");
        // It is the service manager's, who hands it over again.
        ensure!(host.path("s.sock").exists(), "the socket is gone");
    }
    Ok(())
}

//! A browser in front of a status page, and a proxy between the two that adds a hostile word to a reason and a
//! measurement to the page.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::get;
use lb_tests::process::pause;
use lb_tests::topology::Node;

/// Where the page is to be had, in the node of the daemon.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9752);

/// What a backend would say that means harm.
pub(crate) const HOSTILE: &str = "<img src=x onerror=\\\"document.title='owned'\\\">";

/// Writes into the page how far it is wider than its window, how many names of regions are broken into lines, and what was
/// refused to it.
const MEASURE: &str = "addEventListener('securitypolicyviolation',e=>document.body.dataset.refused=\
    e.violatedDirective);addEventListener('error',e=>document.body.dataset.error=e.message);\
    setInterval(()=>{document.body.dataset.over=document.documentElement.scrollWidth-innerWidth;\
    document.body.dataset.width=innerWidth;const lines=n=>{const r=document.createRange();\
    r.selectNodeContents(n);return r.getClientRects().length};document.body.dataset.broken=\
    [...document.querySelectorAll('.region strong')].filter(n=>lines(n)>1).length},50)";

/// A window as narrow as a phone's: a browser's own is 500 wide at least. What the page inside says of
/// itself is said outside as well.
const PHONE: &str = "<!doctype html><body style=\"margin:0\"><iframe id=\"inside\" src=\"/\" \
    width=\"390\" height=\"2600\" style=\"border:0\"></iframe><script>setInterval(()=>Object.assign(\
    document.body.dataset,inside.contentDocument.body.dataset),50)</script></body>";

/// Stands between daemon and browser until it goes.
pub(crate) struct Between {
    node: Node,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a browser shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) name: &'static str,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
    /// What is asked for.
    pub(crate) path: &'static str,
}

impl Between {
    pub(crate) fn start(node: &Node) -> Result<Self> {
        let listener = node.enter(|| TcpListener::bind(ADDRESS))??;
        let stop = Arc::new(AtomicBool::new(false));
        let (inside, stopping) = (node.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopping.load(Ordering::Relaxed) {
                    return;
                }
                // A browser opens connections that it never uses: each is on its own.
                let node = inside.clone();
                std::thread::spawn(move || drop(pass(stream, &node)));
            }
        });
        Ok(Self { node: node.clone(), stop, thread: Some(thread) })
    }

    /// The document of the page as it is after some seconds.
    pub(crate) fn document(&self, look: Look) -> Result<String> {
        self.chromium(look, &["--dump-dom".into()])
    }

    /// A picture of it, where the one who runs the test wants pictures.
    pub(crate) fn picture(&self, look: Look) -> Result<()> {
        let Some(folder) = std::env::var_os("SPILLWAY_SCREENSHOTS") else { return Ok(()) };
        let path = PathBuf::from(folder).join(format!("{}.png", look.name));
        self.chromium(look, &[format!("--screenshot={}", path.display())])?;
        Ok(())
    }

    fn chromium(&self, look: Look, what: &[String]) -> Result<String> {
        let profile = self.node.directory().join(format!("chromium-{}", look.name));
        let scheme = if look.dark { 0 } else { 1 };
        let arguments = [
            "--headless".into(),
            // Its own sandbox wants an ordinary user; ours holds it.
            "--no-sandbox".into(),
            "--disable-gpu".into(),
            "--disable-dev-shm-usage".into(),
            "--disable-background-networking".into(),
            "--hide-scrollbars".into(),
            "--no-first-run".into(),
            "--virtual-time-budget=8000".into(),
            format!("--blink-settings=preferredColorScheme={scheme}"),
            format!("--window-size={},{}", look.width, look.height),
            format!("--user-data-dir={}", profile.display()),
        ];
        let url = format!("http://{ADDRESS}{}", look.path);
        let mut command = self.node.command("chromium");
        let output = command.args(arguments).args(what).arg(url).output().context("chromium")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "chromium: {}\n{said}", output.status);
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.node.enter(|| TcpStream::connect(ADDRESS));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Hands one question on.
fn pass(mut stream: TcpStream, node: &Node) -> Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let asked = String::from_utf8(head)?;
    let path = asked.split_whitespace().nth(1).context("no path")?;
    if path == "/phone" {
        let length = PHONE.len();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")?;
        write!(stream, "Content-Length: {length}\r\nConnection: close\r\n\r\n{PHONE}")?;
        return Ok(());
    }
    if path.starts_with("/data.json") {
        // The browser's own time goes fast, but stands still while it waits: rates are of real time.
        pause(Duration::from_millis(400));
    }
    let (head, body) = get(node, path)?;
    let body = body.replace("connection refused", HOSTILE);
    let body =
        match head.split_once("script-src 'nonce-").and_then(|(_, rest)| rest.split_once('\'')) {
            Some((nonce, _)) => {
                let script = format!("<script nonce=\"{nonce}\">{MEASURE}</script></body>");
                body.replace("</body>", &script)
            }
            None => body,
        };
    // Framing is refused but to the phone.
    let head = head.replace("frame-ancestors 'none'", "frame-ancestors 'self'");
    let dropped = ["content-length", "x-frame-options"];
    let kept = head.lines().filter(|line| {
        let line = line.to_lowercase();
        !dropped.iter().any(|name| line.starts_with(name))
    });
    let head = kept.collect::<Vec<_>>().join("\r\n");
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    Ok(())
}

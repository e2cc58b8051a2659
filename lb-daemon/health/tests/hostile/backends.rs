//! A thousand backends behind one listener, and the prober that checks them.

use std::{
    env,
    io::{self, Read as _},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::Builder,
    sync::Barrier,
    task::spawn_blocking,
    time::timeout,
};

use crate::{BACKENDS, PROBER, kinds::Kind};

const PATIENCE: Duration = Duration::from_secs(240);

/// The prober's peak when a thousand of a kind were checked, KiB.
pub(crate) fn checked(kind: &Kind) -> Result<u64, String> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(16_384), hard).unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (peak, said) = runtime
        .block_on(async { timeout(PATIENCE, check(kind)).await })
        .map_err(|_| format!("{}: nothing came of it in {PATIENCE:?}", kind.name))?
        .map_err(|error| format!("{}: {error}", kind.name))?;
    let expected = format!("{BACKENDS} {}", kind.reason);
    match said == expected {
        true => Ok(peak),
        false => Err(format!("{}: {said}\nexpected: {expected}", kind.name)),
    }
}

/// Ends with the test, however that ends.
struct Prober(Child);

impl Drop for Prober {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Peak, and what was said of how many.
async fn check(kind: &Kind) -> io::Result<(u64, String)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind("0.0.0.0:0".parse().unwrap())?;
    let listener = socket.listen(BACKENDS)?;
    let port = listener.local_addr()?.port().to_string();
    let prober = Command::new(env::current_exe()?)
        .args([PROBER, kind.name, &port])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut prober = Prober(prober);
    let mut said = prober.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let reading = spawn_blocking(move || {
        let mut text = String::new();
        said.read_to_string(&mut text).map(|_| text)
    });
    let serving = tokio::spawn(serve(listener, kind.clone()));
    let output = reading.await??;
    serving.abort();
    let (peak, said) = output.split_once('\n').unwrap_or(("", &output));
    let peak = peak.parse().map_err(|_| io::Error::other(format!("the prober said {output:?}")))?;
    Ok((peak, said.trim_end().to_owned()))
}

/// Behaves as the kind does, once all of them have been asked.
async fn serve(listener: TcpListener, kind: Kind) {
    let all = Arc::new(Barrier::new(BACKENDS as usize));
    let kind = Arc::new(kind);
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(behave(stream, all.clone(), kind.clone()));
    }
}

async fn behave(mut stream: TcpStream, all: Arc<Barrier>, kind: Arc<Kind>) -> io::Result<()> {
    let mut heard = [0; 1024];
    if stream.read(&mut heard).await? == 0 {
        return Ok(());
    }
    all.wait().await;
    stream.write_all(&kind.begin).await?;
    let (mut read, mut write) = stream.split();
    // What is answered to all that must be read, or neither would go on.
    let hearing = async { while read.read(&mut heard).await.is_ok_and(|read| read > 0) {} };
    let sending = async {
        if kind.part.is_empty() {
            return;
        }
        let many = kind.part.repeat(4096_usize.div_ceil(kind.part.len()));
        while write.write_all(&many).await.is_ok() {}
    };
    tokio::join!(hearing, sending);
    Ok(())
}

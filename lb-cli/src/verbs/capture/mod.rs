//! `spillway capture`: packets as the packet path sees them, as a pcap-ng file; `spillway drops`: a line
//! for each that is dropped.
//!
//! Data goes one way: [`asked`] makes a request of flags, [`heard`] hears what the daemon says, [`pcapng`]
//! and [`lines`] write it down.

mod asked;
pub(crate) mod drops;
mod heard;
mod lines;
mod pcapng;

use std::{
    fs::OpenOptions,
    io::{self, BufWriter, IsTerminal as _, Write},
    ops::ControlFlow,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde::Serialize;
use spillway_proto::v1;

use self::{
    asked::{Extent, Filter},
    heard::{End, hear},
    pcapng::PcapNg,
};
use crate::{
    arguments::Options,
    daemon::converse,
    exit::Exit,
    failure::{Failure, describe},
    output::{Report, count, print},
};

/// Options of `capture`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// File to write, of its owner's alone where it is made; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    write: PathBuf,
    #[command(flatten)]
    filter: Filter,
    /// Only packets that are dropped
    #[arg(long)]
    dropped: bool,
    /// Most bytes of a frame to take down, as it came and as it left each
    #[arg(long, value_name = "BYTES", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=2000))]
    snap: u32,
    /// Packets after which it ends
    #[arg(long, short, value_name = "PACKETS", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Time after which it ends, at most 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = asked::duration)]
    duration: prost_types::Duration,
    /// Most packets a second; others are counted and left out [default: no limit]
    #[arg(long, value_name = "PACKETS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
}

/// What became of it.
#[derive(Serialize)]
struct Taken {
    /// Where it was written.
    file: String,
    #[serde(flatten)]
    end: End,
}

/// Captures until it ends, or the user stops it.
///
/// # Errors
/// The daemon does not answer or refuses, or the file cannot be written.
pub(crate) fn run(options: Options, arguments: Arguments) -> Result<(), Failure> {
    let Arguments { write, filter, dropped, snap, count, duration, rate } = arguments;
    let is_piped = write == Path::new("-");
    if is_piped && io::stdout().is_terminal() {
        return Err(Failure::new(
            Exit::Usage,
            "standard output: is a terminal, and a capture is no text",
        )
        .hint("pipe it, as in `spillway capture -w - | tshark -r -`, or give -w a file"));
    }
    let extent = Extent { count, duration, rate };
    let request = v1::CaptureRequest { snap_length: snap, ..filter.request(dropped, &extent) };
    let about = format!("spillway {}", env!("CARGO_PKG_VERSION"));
    let form = options.output;
    let end = converse(async {
        let mut file: Option<PcapNg<BufWriter<Box<dyn Write>>>> = None;
        // The file is made once the daemon agrees: a refusal leaves an older one as it is.
        let mut put = |said: &[v1::CapturedPacket]| {
            let to = match &mut file {
                Some(file) => file,
                none => none.insert(PcapNg::new(open(&write)?, snap, &about)?),
            };
            said.iter().try_for_each(|packet| to.packet(packet))?;
            to.flush()
        };
        let mut is_read = true;
        let end = hear(&options, "capture", request, |said| match put(said) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            // Nobody reads any more.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                is_read = false;
                Ok(ControlFlow::Break(()))
            }
            Err(error) => Err(unwritable(&write, &error)),
        })
        .await?;
        if let Some(file) = file.as_mut().filter(|_| is_read) {
            let written = file.summary(&end).and_then(|()| file.flush());
            written.map_err(|error| unwritable(&write, &error))?;
        }
        Ok(end)
    })?;
    let taken = Taken { file: write.display().to_string(), end };
    if is_piped {
        eprint!("{}", taken.table());
        return Ok(());
    }
    print(&taken, form)
}

fn open(path: &Path) -> io::Result<BufWriter<Box<dyn Write>>> {
    let sink: Box<dyn Write> = if path == Path::new("-") {
        Box::new(io::stdout())
    } else {
        // It has what people say to each other in it.
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        Box::new(file?)
    };
    Ok(BufWriter::new(sink))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    if path == Path::new("-") {
        return Failure::new(Exit::Failure, format!("standard output: {}", describe(error)));
    }
    Failure::path(path, error)
}

impl Report for Taken {
    fn table(&self) -> String {
        let Self { file, end } = self;
        let into = if file == "-" { String::new() } else { format!(" in {file}") };
        format!("{}{into}; {}\n", count(end.written, "packet"), end.words())
    }
}

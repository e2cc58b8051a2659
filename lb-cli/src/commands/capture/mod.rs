//! `spillway capture`: writes packets as the packet path sees them to a pcap-ng file. [`session`] makes the
//! request and receives the packets, [`pcapng`] writes them; `drops` shares the session.

mod pcapng;
pub(super) mod session;

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
    pcapng::PcapNg,
    session::{CaptureResult, Filter, Limits, receive},
};
use crate::{
    arguments::{Options, parse_duration},
    client::block_on,
    failure::{Exit, Failure, describe},
    output::{Report, count, print},
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// File to write; a new file is readable by its owner only; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    write: PathBuf,
    #[command(flatten)]
    filter: Filter,
    /// Only dropped packets
    #[arg(long)]
    dropped: bool,
    /// Maximum number of bytes to capture of each received and each sent frame
    #[arg(long, value_name = "BYTES", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=2000))]
    snap: u32,
    /// Stop after this number of packets
    #[arg(long, short, value_name = "PACKETS", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Stop after this time, at most 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    duration: prost_types::Duration,
    /// Maximum packets per second; more are counted but not captured [default: no limit]
    #[arg(long, value_name = "PACKETS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
}

#[derive(Serialize)]
struct CaptureReport {
    file: String,
    #[serde(flatten)]
    result: CaptureResult,
}

/// # Errors
/// The daemon does not answer or refuses, or the file cannot be written.
pub(crate) fn run(options: Options, arguments: Arguments) -> Result<(), Failure> {
    let Arguments { write, filter, dropped, snap, count, duration, rate } = arguments;
    let is_piped = write == Path::new("-");
    if is_piped && io::stdout().is_terminal() {
        return Err(Failure::new(
            Exit::Usage,
            "standard output: is a terminal, and a capture is binary",
        )
        .hint("pipe it, as in `spillway capture -w - | tshark -r -`, or name a file with -w"));
    }
    let limits = Limits { count, duration, rate };
    let request = v1::CaptureRequest { snap_length: snap, ..filter.request(dropped, &limits) };
    let about = format!("spillway {}", env!("CARGO_PKG_VERSION"));
    let form = options.output;
    let result = block_on(async {
        let mut file: Option<PcapNg<BufWriter<Box<dyn Write>>>> = None;
        // Created once the daemon agrees: a refusal leaves an older file as it is.
        let mut write_packets = |packets: &[v1::CapturedPacket]| {
            let to = match &mut file {
                Some(file) => file,
                none => none.insert(PcapNg::new(open(&write)?, snap, &about)?),
            };
            packets.iter().try_for_each(|packet| to.packet(packet))?;
            to.flush()
        };
        let mut has_reader = true;
        let result =
            receive(&options, "capture", request, |packets| match write_packets(packets) {
                Ok(()) => Ok(ControlFlow::Continue(())),
                // The reader is gone.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    has_reader = false;
                    Ok(ControlFlow::Break(()))
                }
                Err(error) => Err(unwritable(&write, &error)),
            })
            .await?;
        if let Some(file) = file.as_mut().filter(|_| has_reader) {
            let written = file.summary(&result).and_then(|()| file.flush());
            written.map_err(|error| unwritable(&write, &error))?;
        }
        Ok(result)
    })?;
    let report = CaptureReport { file: write.display().to_string(), result };
    if is_piped {
        eprint!("{}", report.table());
        return Ok(());
    }
    print(&report, form)
}

fn open(path: &Path) -> io::Result<BufWriter<Box<dyn Write>>> {
    let sink: Box<dyn Write> = if path == Path::new("-") {
        Box::new(io::stdout())
    } else {
        // Captured packets are private.
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

impl Report for CaptureReport {
    fn table(&self) -> String {
        let Self { file, result } = self;
        let into = if file == "-" { String::new() } else { format!(" in {file}") };
        format!("{}{into}; {}\n", count(result.written, "packet"), result.describe())
    }
}

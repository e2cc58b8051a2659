//! Agent checks: reads one line of an agent.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Failure;
use crate::agent_report::{self, ReportLine};
use lb_model::AgentCheck;

/// Sends the configured bytes and reads a line, which the end of the connection ends too.
pub(super) async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    probe: &AgentCheck,
) -> Result<ReportLine, Failure> {
    if !probe.send.is_empty() {
        stream.write_all(&probe.send).await?;
        stream.flush().await?;
    }
    let mut line = Vec::with_capacity(agent_report::MOST + 1);
    let mut searched = 0;
    loop {
        let end = line[searched..].iter().position(|byte| *byte == b'\n');
        if let Some(end) = end {
            return Ok(ReportLine::parse(&line[..searched + end])?);
        }
        searched = line.len();
        if searched > agent_report::MOST {
            return Ok(ReportLine::parse(&line)?);
        }
        let room = (agent_report::MOST + 1 - searched) as u64;
        let read = match (&mut *stream).take(room).read_buf(&mut line).await.map_err(Failure::from)
        {
            Ok(read) => read,
            Err(Failure::Closed) => 0,
            Err(failure) => return Err(failure),
        };
        match read {
            0 if line.is_empty() => return Err(Failure::Closed),
            0 => return Ok(ReportLine::parse(&line)?),
            _ => {}
        }
    }
}

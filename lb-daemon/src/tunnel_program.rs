//! The packet program of health checks through tunnels, as `lb-health` wants it.

use lb_common::abi::form::ProbeRoute;
use lb_health::{TunnelProgram, tunnel::ProgramError};
use lb_maps::ProbeProgram;

#[derive(Debug)]
struct Attached(ProbeProgram);

/// Loads the program and attaches it where packets leave by a link of this thread's network namespace.
///
/// # Errors
/// See [`ProbeProgram::attach`].
pub fn attach_tunnel_program(link: &str) -> Result<Box<dyn TunnelProgram>, ProgramError> {
    Ok(Box::new(Attached(ProbeProgram::attach(&crate::OBJECTS, link)?)))
}

impl TunnelProgram for Attached {
    fn enter(&mut self, number: u32, way: &ProbeRoute) -> Result<(), ProgramError> {
        Ok(self.0.enter(number, way)?)
    }

    fn remove(&mut self, number: u32) -> Result<(), ProgramError> {
        Ok(self.0.remove(number)?)
    }
}

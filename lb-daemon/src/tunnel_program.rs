//! The packet program that health checks through tunnels attach.

use std::net::IpAddr;

use lb_common::abi::{form::ProbeRoute, service::VipKey};
use lb_health::{TunnelProgram, tunnel::ProgramError};
use lb_maps::ProbeProgram;
use lb_programs::OBJECTS;

#[derive(Debug)]
struct AttachedTunnelProgram(ProbeProgram);

/// Loads the program and attaches it where packets leave by a link of this thread's network namespace.
///
/// # Errors
/// See [`ProbeProgram::attach`].
pub fn attach_tunnel_program(link: &str) -> Result<Box<dyn TunnelProgram>, ProgramError> {
    Ok(Box::new(AttachedTunnelProgram(ProbeProgram::attach(&OBJECTS, link)?)))
}

impl TunnelProgram for AttachedTunnelProgram {
    fn enter(&mut self, number: u32, route: &ProbeRoute) -> Result<(), ProgramError> {
        Ok(self.0.enter(number, route)?)
    }

    fn remove(&mut self, number: u32) -> Result<(), ProgramError> {
        Ok(self.0.remove(number)?)
    }

    fn redirect_answers(&mut self, vip: IpAddr, interface: u32) -> Result<(), ProgramError> {
        Ok(self.0.redirect_answers(VipKey::of(vip), interface)?)
    }

    fn stop_redirecting(&mut self, vip: IpAddr) -> Result<(), ProgramError> {
        Ok(self.0.stop_redirecting(VipKey::of(vip))?)
    }
}

//! The packet programs of this build, and the one that health checks through tunnels attach.

use aya::include_bytes_aligned;
use lb_common::abi::form::ProbeRoute;
use lb_health::{TunnelProgram, tunnel::ProgramError};
use lb_maps::{Objects, ProbeProgram};

/// The packet programs of this build.
pub const OBJECTS: Objects = Objects {
    balancer: include_bytes_aligned!(concat!(env!("OUT_DIR"), "/balancer.o")),
    probe: include_bytes_aligned!(concat!(env!("OUT_DIR"), "/probe.o")),
    receiver: include_bytes_aligned!(concat!(env!("OUT_DIR"), "/receiver.o")),
    tracepoints: include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tracepoints.o")),
};

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
}

#[cfg(test)]
mod tests {
    use lb_maps::Component;

    use super::OBJECTS;

    #[test]
    fn an_object_is_an_elf_file_or_says_how_to_get_one() {
        for component in Component::ALL {
            match OBJECTS.component(component) {
                Ok(object) => {
                    assert_eq!(&object[..4], b"\x7fELF");
                    assert!(OBJECTS.digest(component).is_some());
                }
                Err(stub) => {
                    let expected = format!(
                        "{component} object: missing in this build: build with `cargo xtask build`, which \
                         compiles the packet programs first"
                    );
                    assert_eq!(stub.to_string(), expected);
                    assert_eq!(OBJECTS.digest(component), None);
                }
            }
        }
    }
}

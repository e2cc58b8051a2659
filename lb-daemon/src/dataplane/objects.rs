//! The packet programs, embedded by the build script.

use aya::include_bytes_aligned;
use lb_common::abi::names;
use xxhash_rust::xxh64::xxh64;

use super::Role;

static BALANCER: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/balancer.o"));
static PROBE: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/probe.o"));
static RECEIVER: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/receiver.o"));

/// This build has no packet programs in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} object: this build has none: build with `cargo xtask build`, which compiles the packet \
     programs first"
)]
pub struct StubObject(&'static str);

/// The ELF object of a role.
///
/// # Errors
/// [`StubObject`]: the build had no BPF compiler.
pub fn object(role: Role) -> Result<&'static [u8], StubObject> {
    match role {
        Role::Balancer => whole(BALANCER, role.name()),
        Role::Receiver => whole(RECEIVER, role.name()),
    }
}

/// The ELF object of probes.
///
/// # Errors
/// [`StubObject`]: the build had no BPF compiler.
pub(super) fn probe() -> Result<&'static [u8], StubObject> {
    whole(PROBE, names::PROBE)
}

fn whole(object: &'static [u8], name: &'static str) -> Result<&'static [u8], StubObject> {
    if object.is_empty() { Err(StubObject(name)) } else { Ok(object) }
}

/// A digest of a role's object, to tell builds apart; `None` for a stub.
pub fn digest(role: Role) -> Option<u64> {
    object(role).ok().map(|object| xxh64(object, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_an_elf_file_or_says_how_to_get_one() {
        for role in Role::ALL {
            match object(role) {
                Ok(object) => {
                    assert_eq!(&object[..4], b"\x7fELF");
                    assert!(digest(role).is_some());
                }
                Err(stub) => {
                    let expected = format!(
                        "{role} object: this build has none: build with `cargo xtask build`, which \
                         compiles the packet programs first"
                    );
                    assert_eq!(stub.to_string(), expected);
                    assert_eq!(digest(role), None);
                }
            }
        }
    }
}

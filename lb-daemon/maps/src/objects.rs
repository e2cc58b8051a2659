//! The compiled packet programs, which the daemon embeds and hands in.

use lb_common::abi::names;
use xxhash_rust::xxh64::xxh64;

use super::Component;

/// ELF objects of the packet programs. An empty one stands for a build without a BPF compiler.
#[derive(Clone, Copy)]
pub struct Objects {
    /// The balancer's program.
    pub balancer: &'static [u8],
    /// The program that puts packets of health checks into tunnels.
    pub probe: &'static [u8],
    /// The receiver's programs.
    pub receiver: &'static [u8],
}

/// This build has no packet programs in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} object: this build has none: build with `cargo xtask build`, which compiles the packet \
     programs first"
)]
pub struct StubObject(&'static str);

impl Objects {
    /// The object of a component.
    ///
    /// # Errors
    /// [`StubObject`]: the build had no BPF compiler.
    pub fn component(&self, component: Component) -> Result<&'static [u8], StubObject> {
        match component {
            Component::Balancer => whole(self.balancer, component.name()),
            Component::Receiver => whole(self.receiver, component.name()),
        }
    }

    /// The object of health checks.
    ///
    /// # Errors
    /// [`StubObject`]: the build had no BPF compiler.
    pub(super) fn probe(&self) -> Result<&'static [u8], StubObject> {
        whole(self.probe, names::PROBE)
    }

    /// A digest of a component's object, to tell builds apart; `None` for a stub.
    pub fn digest(&self, component: Component) -> Option<u64> {
        self.component(component).ok().map(|object| xxh64(object, 0))
    }
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

fn whole(object: &'static [u8], name: &'static str) -> Result<&'static [u8], StubObject> {
    if object.is_empty() { Err(StubObject(name)) } else { Ok(object) }
}

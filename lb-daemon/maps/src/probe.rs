//! The program that puts packets of health checks into tunnels, and the ways it knows. Nothing of it is
//! pinned: it goes with the daemon.

use std::{fmt, io};

use aya::{
    Ebpf, EbpfError, EbpfLoader,
    maps::{HashMap, MapData, MapError},
    programs::{
        ProgramError, SchedClassifier, TcAttachType,
        tc::{self, NlOptions, TcAttachOptions, TcError},
    },
};
use lb_common::abi::{
    form::{PROBE_MARK_MASK, ProbeRoute},
    names,
    pod::bytes_of,
};

use super::{Objects, StubObject, maps::array};

const WAY: usize = size_of::<ProbeRoute>();

/// Why packets of checks cannot be put into tunnels.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The build has no packet programs.
    #[error(transparent)]
    Stub(#[from] StubObject),
    /// The object or its map was refused.
    #[error("probe object")]
    Object(#[from] EbpfError),
    /// The object is another than the daemon knows.
    #[error("probe object: has no {0}")]
    Lacks(&'static str),
    /// The kernel refused the program, or to put it where it belongs.
    #[error("probe program")]
    Program(#[from] ProgramError),
    /// There is no place for a program at the end of a link.
    #[error("probe program: cannot attach to {link}")]
    Place { link: String, source: TcError },
    /// A way cannot be entered: there are too many, perhaps.
    #[error("probe map")]
    Map(#[from] MapError),
}

/// The program at the end of a link.
pub struct ProbeProgram {
    ways: HashMap<MapData, u64, [u8; WAY]>,
    /// Takes the program off when it goes.
    _program: Ebpf,
}

impl fmt::Debug for ProbeProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeProgram").finish_non_exhaustive()
    }
}

impl ProbeProgram {
    /// Loads the program and puts it where packets leave by a link of this thread's network namespace:
    /// a netlink filter, as kernels before 6.6 know no other.
    ///
    /// # Errors
    /// [`ProbeError`].
    pub fn attach(objects: &Objects, link: &str) -> Result<Self, ProbeError> {
        // The program reads nothing of the kernel's own types.
        let mut loaded = EbpfLoader::new().btf(None).load(objects.probe()?)?;
        let program = loaded.program_mut(names::PROBE).ok_or(ProbeError::Lacks(names::PROBE))?;
        let program: &mut SchedClassifier = program.try_into()?;
        program.load()?;
        let place = |source| ProbeError::Place { link: link.to_owned(), source };
        match tc::qdisc_add_clsact(link) {
            Ok(()) | Err(TcError::AlreadyAttached) => {}
            Err(error) => return Err(place(error)),
        }
        let options = TcAttachOptions::Netlink(NlOptions::default());
        program.attach_with_options(link, TcAttachType::Egress, options)?;
        let ways =
            loaded.take_map(names::PROBE_ROUTES).ok_or(ProbeError::Lacks(names::PROBE_ROUTES))?;
        Ok(Self { ways: HashMap::try_from(ways)?, _program: loaded })
    }

    /// Enters the way of a number, which is below 2^24.
    ///
    /// # Errors
    /// [`ProbeError::Map`].
    pub fn enter(&mut self, number: u32, way: &ProbeRoute) -> Result<(), ProbeError> {
        debug_assert_eq!(number & PROBE_MARK_MASK, 0);
        let value: [u8; WAY] = array(bytes_of(way));
        Ok(self.ways.insert(u64::from(number), value, 0)?)
    }

    /// Takes the way of a number out; that there is none is no error.
    ///
    /// # Errors
    /// [`ProbeError::Map`].
    pub fn remove(&mut self, number: u32) -> Result<(), ProbeError> {
        match self.ways.remove(&u64::from(number)) {
            Ok(()) | Err(MapError::KeyNotFound) => Ok(()),
            Err(MapError::SyscallError(error))
                if error.io_error.kind() == io::ErrorKind::NotFound =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

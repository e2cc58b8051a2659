//! The program that puts packets of health checks into tunnels, and the ways it knows. Nothing of it is
//! pinned: it goes with the daemon.

use std::{collections::HashSet, fmt, io};

use aya::{
    Ebpf, EbpfError, EbpfLoader,
    maps::{HashMap, MapData, MapError},
    programs::{
        ProgramError, SchedClassifier, TcAttachType,
        tc::{NlOptions, TcAttachOptions, TcError},
    },
};
use lb_common::abi::{
    form::{PROBE_MARK_MASK, ProbeRoute},
    names,
    pod::bytes_of,
    service::VipKey,
};
use nix::net::if_::if_nametoindex;

use super::{
    Objects, StubObject,
    attach::{answers, filter},
    maps::array,
};

const WAY: usize = size_of::<ProbeRoute>();
const VIP: usize = size_of::<VipKey>();

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
    vips: HashMap<MapData, [u8; VIP], u32>,
    /// Interfaces with the program for answers.
    with_answers: HashSet<u32>,
    /// Takes the programs off when it goes.
    programs: Ebpf,
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
        let place = |source| ProbeError::Place { link: link.to_owned(), source };
        let index = if_nametoindex(link).map_err(|errno| place(TcError::IoError(errno.into())))?;
        // The programs read nothing of the kernel's own types.
        let mut loader = EbpfLoader::new();
        loader.btf(None).override_global(names::PROBE_LINK, &index, true);
        let mut loaded = loader.load(objects.probe()?)?;
        classifier(&mut loaded, names::PROBE_ANSWERS)?.load()?;
        let program = classifier(&mut loaded, names::PROBE)?;
        program.load()?;
        filter::add_qdisc(link).map_err(place)?;
        let options = TcAttachOptions::Netlink(NlOptions::default());
        program.attach_with_options(link, TcAttachType::Egress, options)?;
        let mut map = |name| loaded.take_map(name).ok_or(ProbeError::Lacks(name));
        let (ways, vips) = (map(names::PROBE_ROUTES)?, map(names::PROBE_VIPS)?);
        Ok(Self {
            ways: HashMap::try_from(ways)?,
            vips: HashMap::try_from(vips)?,
            with_answers: HashSet::new(),
            programs: loaded,
        })
    }

    /// Redirects packets from a VIP that arrive by an interface to the link.
    ///
    /// # Errors
    /// [`ProbeError`]: the interface is gone, or there are too many VIPs.
    pub fn redirect_answers(&mut self, vip: VipKey, interface: u32) -> Result<(), ProbeError> {
        if !self.with_answers.contains(&interface) {
            answers::attach(classifier(&mut self.programs, names::PROBE_ANSWERS)?, interface)?;
            self.with_answers.insert(interface);
        }
        Ok(self.vips.insert(array::<VIP>(bytes_of(&vip)), 0, 0)?)
    }

    /// Redirects packets from a VIP no longer.
    ///
    /// # Errors
    /// [`ProbeError::Map`].
    pub fn stop_redirecting(&mut self, vip: VipKey) -> Result<(), ProbeError> {
        removed(self.vips.remove(&array::<VIP>(bytes_of(&vip))))
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
        removed(self.ways.remove(&u64::from(number)))
    }
}

/// A program of the object.
fn classifier<'a>(
    object: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut SchedClassifier, ProbeError> {
    Ok(object.program_mut(name).ok_or(ProbeError::Lacks(name))?.try_into()?)
}

/// The result of a removal; that there was nothing is no error.
fn removed(result: Result<(), MapError>) -> Result<(), ProbeError> {
    match result {
        Ok(()) | Err(MapError::KeyNotFound) => Ok(()),
        Err(MapError::SyscallError(error)) if error.io_error.kind() == io::ErrorKind::NotFound => {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

//! Where maps, links and programs are pinned.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use lb_common::abi::{LAYOUT_VERSION, flow_map::FLOW_VERSION, names};

/// Name of the receiver's program for tc, in the object and to the kernel.
pub(super) const RECEIVER_TC: &str = "receiver_tc";

/// Where the BPF file system is, unless said otherwise.
pub const DEFAULT_BPFFS: &str = "/sys/fs/bpf";

/// What a daemon does on its interfaces; one interface has one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// Sends packets of services to backends.
    Balancer,
    /// Takes packets of services out of their tunnels, on a backend.
    Receiver,
}

impl Component {
    /// Both components.
    pub const ALL: [Self; 2] = [Self::Balancer, Self::Receiver];

    /// Name of the component, of its object and of its program.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Balancer => names::BALANCER,
            Self::Receiver => names::RECEIVER,
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The pins of one component: `BPFFS/spillway/ROLE-vLAYOUT/{maps/NAME, links/INTERFACE, program}`; of a
/// balancer `inner/NAME/INDEX`, what stands at an index of an array of maps, `slow-paths/PROGRAM`, the array by which a
/// fast path jumps into its slow path, and `tracepoints/NAME`, the links to tracepoints and what they count; of a receiver
/// at tc's hook before Linux 6.6 `filters/INTERFACE`, the program that is there in a filter, instead of a link.
/// `started-by` says how the daemon was started ([`super::StartRecord`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    root: PathBuf,
}

impl Pins {
    /// The pins of a component under a BPF file system.
    pub fn new(bpffs: &Path, component: Component) -> Self {
        Self::with_layout(bpffs, component, LAYOUT_VERSION)
    }

    /// The pins that a component has, or would have, with a layout that may be another version's.
    pub fn with_layout(bpffs: &Path, component: Component, layout: u32) -> Self {
        Self { root: bpffs.join("spillway").join(format!("{component}-v{layout}")) }
    }

    /// The layouts that a component has pins of, lowest first; none where nothing is pinned.
    ///
    /// # Errors
    /// The directory of the pins cannot be read.
    pub fn layouts(bpffs: &Path, component: Component) -> io::Result<Vec<u32>> {
        let entries = match fs::read_dir(bpffs.join("spillway")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut layouts = Vec::new();
        for entry in entries {
            match Self::parse_directory(&entry?.path()) {
                Some((of, layout)) if of == component => layouts.push(layout),
                _ => {}
            }
        }
        layouts.sort_unstable();
        Ok(layouts)
    }

    /// Whether a pin beside all layouts is a flow table of some version.
    pub(super) fn is_flow_table(name: &str) -> bool {
        name.strip_prefix("flows-v").is_some_and(|version| version.parse::<u64>().is_ok())
    }

    /// The component and the layout that a directory of pins is named for; `None`: it has another name.
    pub fn parse_directory(path: &Path) -> Option<(Component, u32)> {
        let name = path.file_name()?.to_str()?;
        let (component, layout) = name.rsplit_once("-v")?;
        let component = Component::ALL.into_iter().find(|known| known.name() == component)?;
        // "+1" and "01" are numbers, but no names that a layout is written with.
        let layout: u32 = layout.parse().ok().filter(|n: &u32| n.to_string() == layout)?;
        Some((component, layout))
    }

    /// The pins under a directory, whatever component and layout it is of.
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// The directory of them all.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of the maps.
    pub fn maps(&self) -> PathBuf {
        self.root.join("maps")
    }

    /// A map's pin. The flow table's is beside all layouts, which have it in common.
    pub fn map(&self, name: &str) -> PathBuf {
        match name {
            names::FLOWS => self.root.with_file_name(format!("flows-v{FLOW_VERSION}")),
            name => self.maps().join(name),
        }
    }

    /// The directory of what stands in arrays of maps.
    pub(super) fn all_inner(&self) -> PathBuf {
        self.root.join("inner")
    }

    /// The directory of what stands in one array of maps, by index.
    pub(super) fn inner(&self, name: &str) -> PathBuf {
        self.all_inner().join(name)
    }

    /// The directory of the links.
    pub fn links(&self) -> PathBuf {
        self.root.join("links")
    }

    /// The pin of the link to an interface.
    pub fn link(&self, interface: &str) -> PathBuf {
        self.links().join(link_file(interface))
    }

    /// Where the next link to an interface is pinned before it takes the place of one of another hook.
    pub(super) fn next_link(&self) -> PathBuf {
        self.root.join("link-next")
    }

    /// The directory of the programs that are in filters.
    pub(super) fn filters(&self) -> PathBuf {
        self.root.join("filters")
    }

    /// The pin of the program that is in a filter of an interface.
    pub(super) fn filter(&self, interface: &str) -> PathBuf {
        self.filters().join(link_file(interface))
    }

    /// Whether the interface has a pin here.
    pub fn has(&self, interface: &str) -> bool {
        self.link(interface).exists() || self.filter(interface).exists()
    }

    /// The directory of the arrays by which a balancer's fast paths jump into their slow paths.
    pub(super) fn slow_paths(&self) -> PathBuf {
        self.root.join("slow-paths")
    }

    /// The pin of the array of a fast path with this program id.
    pub(super) fn slow_path(&self, program: u32) -> PathBuf {
        self.slow_paths().join(program.to_string())
    }

    /// The directory of the programs on tracepoints and of their counts.
    pub(super) fn tracepoints(&self) -> PathBuf {
        self.root.join("tracepoints")
    }

    /// The pin of a program on a tracepoint, or of their counts.
    pub(super) fn tracepoint(&self, name: &str) -> PathBuf {
        self.tracepoints().join(name)
    }

    /// The pin of the program.
    pub fn program(&self) -> PathBuf {
        self.root.join("program")
    }

    /// Where the next program is pinned before it takes the name of the last one.
    pub(super) fn next_program(&self) -> PathBuf {
        self.root.join("program-next")
    }
}

/// File name of an interface's link: a BPF file system reserves the dot, an interface name cannot
/// hold a colon.
fn link_file(interface: &str) -> String {
    interface.replace('.', ":")
}

/// The interface that a link's file name stands for.
pub(super) fn interface_of(link_file: &str) -> String {
    link_file.replace(':', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_stand_under_role_and_layout() {
        let pins = Pins::new(Path::new("/sys/fs/bpf"), Component::Balancer);
        assert_eq!(pins.map("ARRAYS"), Path::new("/sys/fs/bpf/spillway/balancer-v7/maps/ARRAYS"));
        assert_eq!(pins.link("eth0"), Path::new("/sys/fs/bpf/spillway/balancer-v7/links/eth0"));
        assert_eq!(pins.program(), Path::new("/sys/fs/bpf/spillway/balancer-v7/program"));
    }

    #[test]
    fn layouts_are_read_off_the_names_of_directories() {
        for (name, parsed) in [
            ("balancer-v1", Some((Component::Balancer, 1))),
            ("receiver-v12", Some((Component::Receiver, 12))),
            ("balancer-v01", None),
            ("balancer-v+1", None),
            ("balancer-v", None),
            ("balancer", None),
            ("other-v1", None),
            ("balancer-v5294967296", None),
        ] {
            assert_eq!(
                Pins::parse_directory(&Path::new("/b/spillway").join(name)),
                parsed,
                "{name}"
            );
        }
        let bpffs = tempfile::tempdir().unwrap();
        let layouts = |component| Pins::layouts(bpffs.path(), component).unwrap();
        assert!(layouts(Component::Balancer).is_empty());
        for name in ["balancer-v10", "balancer-v2", "receiver-v5", "balancer-old", "x"] {
            fs::create_dir_all(bpffs.path().join("spillway").join(name)).unwrap();
        }
        assert_eq!(layouts(Component::Balancer), [2, 10]);
        assert_eq!(layouts(Component::Receiver), [5]);
    }

    #[test]
    fn the_name_of_a_vlan_interface_survives_a_file_system_without_dots() {
        let pins = Pins::new(Path::new("/b"), Component::Receiver);
        let link = pins.link("bond0.100");
        assert_eq!(link, Path::new("/b/spillway/receiver-v7/links/bond0:100"));
        assert_eq!(interface_of("bond0:100"), "bond0.100");
    }
}

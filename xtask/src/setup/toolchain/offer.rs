//! The packages that make a compiler for the packet programs, as apt offers them now.

use anyhow::{Context, Result, bail};

use crate::setup::apt::{self, Lists, Package};

/// The compiler, the library for build scripts and macros, clippy: of one version always.
const COMPILER: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-clippy"];

/// `core` for the BPF targets: built, or as source to be built.
const CORE: [&str; 2] = ["libstd-rust-web-dev-bpf", "rust-web-src"];

/// The oldest compiler that the packet programs build with.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// One set of packages that go together.
pub(super) struct Offer {
    packages: Vec<Package>,
    pub(super) rust: String,
    pub(super) llvm_major: u32,
}

impl Offer {
    pub(super) fn of(lists: &Lists) -> Result<Self> {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let mut roots = lists.show(&names(&COMPILER))?;
        roots.sort_by_key(|package| package.name != COMPILER[0]);
        let core = lists.show(&names(&CORE))?;
        Self::choose(roots, core, |roots| {
            apt::with_libraries(roots, &apt::installed()?, |names| lists.show(names))
        })
    }

    fn choose(
        mut roots: Vec<Package>,
        core: Vec<Package>,
        with_libraries: impl FnOnce(Vec<Package>) -> Result<Vec<Package>>,
    ) -> Result<Self> {
        let Some(rustc) = roots.first().filter(|package| package.name == COMPILER[0]) else {
            bail!(
                "rustc-web: not offered by apt; it comes from Debian's security suite, \
                 which must be among the sources"
            );
        };
        let (version, rust) = (rustc.version.clone(), rustc.upstream_version().to_owned());
        if !is_at_least(&rust, OLDEST) {
            bail!("rustc-web: apt offers {rust}, the packet programs need {OLDEST}");
        }
        roots.retain(|package| package.version == version);
        let core = CORE.iter().find_map(|&name| {
            core.iter().find(|package| package.name == name && package.version == version)
        });
        roots.push(
            core.with_context(|| format!("{}: no {version} offered by apt", CORE[0]))?.clone(),
        );
        let packages = with_libraries(roots)?;
        let llvm_major = packages
            .iter()
            .find_map(|package| package.name.strip_prefix("libllvm")?.parse().ok())
            .context("rustc-web: depends on no libllvm")?;
        Ok(Self { packages, rust, llvm_major })
    }

    /// Download size.
    pub(super) fn bytes(&self) -> u64 {
        self.packages.iter().map(|package| package.size).sum()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.packages.iter().map(|package| package.name.clone()).collect()
    }

    /// Compares with what the unpacked compiler says of itself.
    pub(super) fn check(&self, verbose_version: &str) -> Result<()> {
        match llvm_major(verbose_version) {
            Some(major) if major == self.llvm_major => Ok(()),
            other => bail!("rustc -vV: LLVM {other:?}, but its package names {}", self.llvm_major),
        }
    }
}

/// The LLVM in the output of `rustc -vV`.
fn llvm_major(verbose_version: &str) -> Option<u32> {
    let version = verbose_version.lines().find_map(|line| line.strip_prefix("LLVM version: "))?;
    version.split('.').next()?.parse().ok()
}

fn is_at_least(version: &str, oldest: &str) -> bool {
    let numbers = |version: &str| -> Vec<u32> {
        version.split('.').map_while(|number| number.parse().ok()).collect()
    };
    numbers(version) >= numbers(oldest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, size: u64) -> Package {
        Package {
            name: name.into(),
            version: version.into(),
            section: "devel".into(),
            size,
            depends: Vec::new(),
        }
    }

    const NEW: &str = "1.96.0+dfsg1-1~deb12u2";
    const OLD: &str = "1.85.0+dfsg3-1~deb12u3";

    fn choose(rustc: &str, core: Vec<Package>) -> Result<Offer> {
        let roots = vec![package("rustc-web", rustc, 1), package("libstd-rust-web-dev", rustc, 10)];
        Offer::choose(roots, core, |mut roots| {
            roots.push(package("libllvm22", "1:22.1.8-1~deb12u1", 100));
            Ok(roots)
        })
    }

    #[test]
    fn a_built_core_is_taken_before_its_source() {
        let both =
            vec![package("rust-web-src", NEW, 2000), package("libstd-rust-web-dev-bpf", NEW, 1000)];
        let offer = choose(NEW, both).unwrap();
        assert_eq!(
            offer.names(),
            ["rustc-web", "libstd-rust-web-dev", "libstd-rust-web-dev-bpf", "libllvm22"]
        );
        assert_eq!((offer.rust.as_str(), offer.llvm_major, offer.bytes()), ("1.96.0", 22, 1111));
        let source = vec![package("rust-web-src", NEW, 2000)];
        assert_eq!(choose(NEW, source).unwrap().names()[2], "rust-web-src");
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let error = |offer: Result<Offer>| offer.err().map(|error| error.to_string()).unwrap();
        let other = vec![package("libstd-rust-web-dev-bpf", OLD, 1000)];
        assert_eq!(
            error(choose(NEW, other)),
            format!("libstd-rust-web-dev-bpf: no {NEW} offered by apt")
        );
        assert!(error(choose(OLD, Vec::new())).starts_with("rustc-web: apt offers 1.85.0"));
        assert!(
            error(Offer::choose(Vec::new(), Vec::new(), Ok)).starts_with("rustc-web: not offered")
        );
    }

    #[test]
    fn the_compilers_own_word_on_its_llvm_counts() {
        let core = vec![package("libstd-rust-web-dev-bpf", NEW, 1000)];
        let offer = choose(NEW, core).unwrap();
        offer
            .check("rustc 1.96.0\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.8\n")
            .unwrap();
        offer.check("rustc 1.96.0\nLLVM version: 23.1.0\n").unwrap_err();
        offer.check("rustc 1.96.0\n").unwrap_err();
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(is_at_least("1.96.0", "1.95"));
        assert!(is_at_least("1.95.0", "1.95"));
        assert!(is_at_least("1.100.0", "1.95"));
        assert!(!is_at_least("1.85.0", "1.95"));
    }
}

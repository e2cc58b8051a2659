//! What apt prints.

/// One package as `apt-cache show` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// With epoch and Debian revision.
    pub(crate) version: String,
    /// `libs`, `devel`, …
    pub(crate) section: String,
    /// Download size in bytes.
    pub(crate) size: u64,
    /// Names that it depends on: the first alternative of each clause.
    pub(crate) depends: Vec<String>,
}

impl Package {
    /// The version of those who wrote the program: no epoch, no Debian revision, no `+dfsg1`.
    pub(crate) fn upstream_version(&self) -> &str {
        let version = self.version.split_once(':').map_or(&*self.version, |(_, rest)| rest);
        let version = version.rsplit_once('-').map_or(version, |(upstream, _)| upstream);
        version.split_once('+').map_or(version, |(upstream, _)| upstream)
    }
}

/// The stanzas of `apt-cache show`.
pub(crate) fn packages(shown: &str) -> Vec<Package> {
    shown.split("\n\n").filter_map(package).collect()
}

fn package(stanza: &str) -> Option<Package> {
    let field =
        |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    Some(Package {
        name: field("Package")?.to_owned(),
        version: field("Version")?.to_owned(),
        section: field("Section").unwrap_or_default().to_owned(),
        size: field("Size")?.parse().ok()?,
        depends: field("Depends").map(depends).unwrap_or_default(),
    })
}

fn depends(clauses: &str) -> Vec<String> {
    let end = |c: char| c.is_whitespace() || c == '(' || c == ':' || c == '|';
    let first = |clause: &str| clause.trim().split(end).next().unwrap_or_default().to_owned();
    clauses.split(',').map(first).filter(|name| !name.is_empty()).collect()
}

/// What an installation would download.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Download {
    pub(crate) packages: usize,
    pub(crate) bytes: u64,
}

/// Sums up `apt-get install --print-uris`: lines of `'address' file size checksum`.
pub(crate) fn download(printed: &str) -> Download {
    let sizes = printed.lines().filter_map(|line| {
        let (_, rest) = line.strip_prefix('\'')?.split_once("' ")?;
        rest.split(' ').nth(1)?.parse::<u64>().ok()
    });
    sizes.fold(Download { packages: 0, bytes: 0 }, |sum, size| Download {
        packages: sum.packages + 1,
        bytes: sum.bytes + size,
    })
}

/// The installed ones of `dpkg-query --show`, asked for `${db:Status-Status} ${Package}`.
pub(crate) fn installed(printed: &str) -> impl Iterator<Item = &str> {
    printed.lines().filter_map(|line| line.strip_prefix("installed "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "\
Package: libstd-rust-web-1.96
Source: rustc-web
Version: 1.96.0+dfsg1-1~deb12u2
Architecture: amd64
Depends: libc6 (>= 2.34), libllvm22, libstdc++6 (>= 11)
Section: libs
Size: 21977620
Description-en: Rust standard libraries
 Rust is a curly-brace, block-structured expression language.
 .
 Size: 7

Package: llvm-22
Version: 1:22.1.8-1~deb12u1
Depends: python3:any, gcc | clang | c-compiler
Section: devel
Size: 19143812

Package: rust-web-src
Version: 1.96.0+dfsg1-1~deb12u2
Size: 45012756
";

    #[test]
    fn stanzas_become_packages() {
        let all = packages(SHOWN);
        assert_eq!(all.len(), 3);
        assert_eq!(
            all[0],
            Package {
                name: "libstd-rust-web-1.96".into(),
                version: "1.96.0+dfsg1-1~deb12u2".into(),
                section: "libs".into(),
                size: 21_977_620,
                depends: vec!["libc6".into(), "libllvm22".into(), "libstdc++6".into()],
            }
        );
        assert_eq!(all[1].depends, ["python3", "gcc"]);
        assert_eq!(all[2].depends, Vec::<String>::new());
        assert_eq!(packages(""), []);
    }

    #[test]
    fn upstream_versions_have_no_epoch_and_no_revision() {
        let all = packages(SHOWN);
        assert_eq!(all[0].upstream_version(), "1.96.0");
        assert_eq!(all[1].upstream_version(), "22.1.8");
    }

    #[test]
    fn a_download_is_the_sum_of_its_lines() {
        let printed = "\
Reading package lists...
The following NEW packages will be installed:
  nginx nginx-common
'http://mirror/nginx-common_1.22.1-9%2bdeb12u10_all.deb' nginx-common_1.22.1-9+deb12u10_all.deb 114932 SHA256:00
'http://mirror/nginx_1.22.1-9%2bdeb12u10_amd64.deb' nginx_1.22.1-9+deb12u10_amd64.deb 531468 
";
        assert_eq!(download(printed), Download { packages: 2, bytes: 646_400 });
        assert_eq!(
            download("nginx is already the newest version"),
            Download { packages: 0, bytes: 0 }
        );
    }

    #[test]
    fn removed_packages_are_not_installed() {
        let printed = "installed libz3-4\nconfig-files nginx\ninstalled wrk\n";
        assert_eq!(installed(printed).collect::<Vec<_>>(), ["libz3-4", "wrk"]);
    }
}

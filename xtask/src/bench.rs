//! The bench: the packet path measured by the program `bench` of lb-tests.

use std::process::ExitCode;

use anyhow::Result;

use crate::build;
use crate::cli::BenchArgs;
use crate::demo;
use crate::setup::{self, Purpose, Wants};

/// `cargo xtask bench`.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    let ready = setup::ensure(&Wants::purpose(Purpose::Bench), args.no_install)?;
    build::everything(&ready.toolchain, true)?;
    let mut all = Vec::new();
    if args.quick {
        all.push("--quick".into());
    }
    all.extend(args.args.iter().cloned());
    demo::as_root("bench", "the bench: network namespaces, BPF programs", &all)
}

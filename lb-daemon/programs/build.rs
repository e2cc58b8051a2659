//! Embeds the packet programs: the objects that `cargo xtask build` made, from the directory in
//! `SPILLWAY_BPF_OBJECTS`, or an empty stub each, so that plain cargo needs no BPF compiler.

use std::{env, error::Error, fs, path::PathBuf};

const DIRECTORY: &str = "SPILLWAY_BPF_OBJECTS";
const OBJECTS: [&str; 4] = ["balancer.o", "probe.o", "receiver.o", "tracepoints.o"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed={DIRECTORY}");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let built = env::var_os(DIRECTORY).filter(|path| !path.is_empty()).map(PathBuf::from);
    for object in OBJECTS {
        let content = match &built {
            None => Vec::new(),
            Some(directory) => {
                let path = directory.join(object);
                println!("cargo::rerun-if-changed={}", path.display());
                fs::read(&path)
                    .map_err(|error| format!("{}: {error} (from {DIRECTORY})", path.display()))?
            }
        };
        fs::write(out.join(object), content)?;
    }
    Ok(())
}

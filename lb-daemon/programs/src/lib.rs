//! The packet programs of this build, embedded. A crate of its own, so that another build of them compiles nothing else
//! anew but what carries them.

use aya::include_bytes_aligned;
use lb_maps::Objects;

/// The packet programs of this build.
pub const OBJECTS: Objects = Objects {
    balancer: include_bytes_aligned!(concat!(env!("OUT_DIR"), "/balancer.o")),
    probe: include_bytes_aligned!(concat!(env!("OUT_DIR"), "/probe.o")),
    receiver: include_bytes_aligned!(concat!(env!("OUT_DIR"), "/receiver.o")),
    tracepoints: include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tracepoints.o")),
};

#[cfg(test)]
mod tests {
    use lb_maps::Component;

    use super::OBJECTS;

    #[test]
    fn an_object_is_an_elf_file_or_says_how_to_get_one() {
        for component in Component::ALL {
            match OBJECTS.component(component) {
                Ok(object) => {
                    assert_eq!(&object[..4], b"\x7fELF");
                    assert!(OBJECTS.digest(component).is_some());
                }
                Err(stub) => {
                    let expected = format!(
                        "{component} object: missing in this build: build with `cargo xtask build`, which \
                         compiles the packet programs first"
                    );
                    assert_eq!(stub.to_string(), expected);
                    assert_eq!(OBJECTS.digest(component), None);
                }
            }
        }
    }
}

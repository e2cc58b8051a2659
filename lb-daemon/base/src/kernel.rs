//! What packet programs need of the kernel.

/// The oldest kernel that the programs are tried on: major and minor number.
pub const OLDEST: (u32, u32) = (6, 1);

/// Types of the kernel; without them it takes no program with types of its own.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

/// `6.1` of `6.1.0-40-cloud-amd64`; `None`: the release begins with no two numbers.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_apart() {
        for (release, expected) in [
            ("6.1.0-40-cloud-amd64", Some((6, 1))),
            ("5.19.17", Some((5, 19))),
            ("10.0-rc1\n", Some((10, 0))),
            ("strange", None),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
        assert!(version("5.19.17") < Some(OLDEST) && version("10.0") > Some(OLDEST));
    }
}

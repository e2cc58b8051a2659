//! Names of this host's users, so that a history can be read without the host's `/etc/passwd` beside it.

use std::{fs::File, io::Read as _, path::Path};

/// Bytes that are read of the file: it is read for each connection, and on some hosts everyone of a directory is in it.
const MOST: u64 = 1 << 20;

/// Longest name; `useradd` takes no longer ones.
const LONGEST: usize = 32;

/// The name that `/etc/passwd` gives a user. Users whom only another source knows (LDAP, systemd) have none: asking those
/// can take seconds, and the daemon would have to load their C libraries.
pub(crate) fn user_name(uid: u32) -> Option<String> {
    read_name(Path::new("/etc/passwd"), uid)
}

fn read_name(file: &Path, uid: u32) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    String::from_utf8_lossy(&bytes).lines().find_map(|line| name_of(line, uid))
}

/// `name:password:uid:…`, passwd(5).
fn name_of(line: &str, uid: u32) -> Option<String> {
    let mut fields = line.split(':');
    let (name, number) = (fields.next()?, fields.nth(1)?);
    (number.parse() == Ok(uid) && is_plain(name)).then(|| name.to_owned())
}

/// A name is stored and printed for years: none that could be taken for more than a name.
fn is_plain(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let stem = name.strip_suffix('$').unwrap_or(name);
    (1..=LONGEST).contains(&name.len()) && !stem.is_empty() && stem.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "root:x:0:0:root:/root:/bin/bash\n# a comment\nlp:x:7:7:lp\n\n\
                        short:x\n+::::::\nalice.b-c_1:x:1000:1000::/home/a:/bin/sh\n\
                        second:x:1000:1000\npc$:x:1001:1\nodd name:x:1002:1\n<b>:x:1003:1\n\
                        \u{1b}[31m:x:1004:1\n:x:1005:1\n$:x:1006:1\n";

    #[test]
    fn names_are_those_of_the_file_unless_they_are_odd() {
        let directory = std::env::temp_dir().join(format!("spillway-users-{}", std::process::id()));
        std::fs::write(&directory, FILE.to_owned() + &"n".repeat(33) + ":x:1007:1\n").unwrap();
        let name = |uid| read_name(&directory, uid);
        let known = [(0, "root"), (7, "lp"), (1_000, "alice.b-c_1"), (1_001, "pc$")];
        let found: Vec<_> = known.iter().map(|(uid, _)| name(*uid)).collect();
        let others: Vec<_> = (1_002..=1_008).map(name).collect();
        std::fs::remove_file(&directory).unwrap();
        assert_eq!(found, known.map(|(_, name)| Some(name.to_owned())));
        assert_eq!(others, vec![None; 7]);
        assert_eq!(name(0), None, "no file");
    }
}

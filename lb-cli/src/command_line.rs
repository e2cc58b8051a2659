//! How a daemon was started: its command line, and the settings file that it names.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The words of a process's command line, the program's full path first; empty: it is gone, or not to be seen.
pub(crate) fn of_process(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let mut words: Vec<_> = line.split_terminator('\0').map(str::to_owned).collect();
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    if let (Some(first), Some(program)) = (words.first_mut(), program) {
        // A program whose file was replaced goes by the former name, marked.
        *first = program.display().to_string().trim_end_matches(" (deleted)").to_owned();
    }
    words
}

/// The settings file of a daemon with this command line.
pub(crate) fn settings_file(words: &[String]) -> Option<PathBuf> {
    option(words, "--config").map(PathBuf::from)
}

/// A setting that is a text, by its name in the file: of the command line, or else of the settings file. `None`: it is
/// the default one, or the file cannot be read.
pub(crate) fn setting(words: &[String], name: &str) -> Option<String> {
    let given = option(words, &format!("--{name}")).map(str::to_owned);
    given.or_else(|| text(&settings_file(words)?, name))
}

/// The value of an option, `--option VALUE` or `--option=VALUE`.
fn option<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    let joined = words.iter().find_map(|word| word.strip_prefix(option)?.strip_prefix('='));
    let apart = words.iter().position(|word| word == option).and_then(|at| words.get(at + 1));
    joined.or(apart.map(String::as_str))
}

fn text(file: &Path, name: &str) -> Option<String> {
    let table: toml::Table = fs::read_to_string(file).ok()?.parse().ok()?;
    Some(table.get(name)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    #[test]
    fn the_command_line_wins_over_the_file_in_both_its_forms() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("r.toml").display().to_string();
        fs::write(&file, "socket = \"/c\"\ngue-port = 6080\n").unwrap();
        for (line, socket) in [
            ("/d receiver --interface eth0", None),
            ("/d receiver --socket /a", Some("/a")),
            ("/d receiver --socket=/b", Some("/b")),
            (&*format!("/d receiver --config {file}"), Some("/c")),
            (&*format!("/d receiver --config={file}"), Some("/c")),
            (&*format!("/d receiver --config={file} --socket /a"), Some("/a")),
            ("/d receiver --config /nonexistent", None),
            ("/d receiver --socket", None),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(setting(&words, "socket").as_deref(), socket, "{line}");
            assert_eq!(setting(&words, "gue-port"), None, "{line}: it is no text");
        }
    }

    #[test]
    fn a_process_is_called_by_its_program() {
        let words = of_process(process::id());
        assert_eq!(Path::new(&words[0]), std::env::current_exe().unwrap());
        assert_eq!(words.len(), std::env::args().len());
        assert!(of_process(u32::MAX).is_empty());
    }
}

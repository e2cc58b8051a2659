//! A settings file with a setting changed, as a command.

use std::path::Path;

use super::quoted;

/// Sets a setting of a file to a text, then does the rest; where no line alone holds the setting, a
/// person has to.
pub(super) fn change(
    file: &Path,
    text: Option<&String>,
    (flag, value): (&str, &str),
    then: &str,
) -> String {
    let name = quoted(&file.display().to_string());
    let line = format!("{flag} = \"{value}\"");
    match text.is_some_and(|text| has_it_on_one_line(text, flag, &line)) {
        // A key that stands twice is refused: the former one goes.
        true => format!("sed -i -e '1i {line}' -e '/^{flag} *=/d' {name} && {then}"),
        false => format!("${{EDITOR:-vi}} {name}  # {line}; then {then}"),
    }
}

/// Whether `sed`, which takes the lines that begin with the setting away, leaves a whole file where the
/// new line says all.
fn has_it_on_one_line(text: &str, flag: &str, line: &str) -> bool {
    let begins = |line: &&str| {
        let rest = line.strip_prefix(flag);
        rest.is_some_and(|rest| rest.trim_start_matches(' ').starts_with('='))
    };
    let others: Vec<_> = text.lines().filter(|line| !begins(line)).collect();
    let parsed = |text: &str| text.parse::<toml::Table>().ok();
    let (Some(mut before), Some(mut after)) =
        (parsed(text), parsed(&format!("{line}\n{}", others.join("\n"))))
    else {
        return false;
    };
    after.remove(flag).is_some() && {
        before.remove(flag);
        // Before the first line of an empty file sed puts nothing.
        before == after && !text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    /// What a file holds after its command was pasted; `None`: a person is told to edit it.
    fn pasted(text: &str) -> Option<toml::Table> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("receiver.toml");
        fs::write(&file, text).unwrap();
        let given = text.to_owned();
        let command = change(&file, Some(&given), ("allow-source", "10.0.0.2"), "true");
        if !command.starts_with("sed ") {
            let name = file.display();
            let said = format!("${{EDITOR:-vi}} {name}  # allow-source = \"10.0.0.2\"; then true");
            assert_eq!(command, said);
            return None;
        }
        let done = Command::new("sh").args(["-c", &command]).status().unwrap();
        assert!(done.success(), "{command}");
        Some(fs::read_to_string(&file).unwrap().parse().unwrap())
    }

    fn table(text: &str) -> Option<toml::Table> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_setting_of_one_line_is_changed_and_no_other_is() {
        let changed = table("vip = [\"a\"]\nallow-source = \"10.0.0.2\"\n");
        assert_eq!(pasted("vip = [\"a\"]\nallow-source = [\"0.0.0.0/0\"]\n"), changed);
        assert_eq!(pasted("allow-source=[\"::/0\"]  # all\nvip = [\n  \"a\",\n]\n"), changed);
        assert_eq!(pasted("# none yet\nvip = [\"a\"]\n"), changed);
        let in_table = pasted("allow-source = \"x\"\n[vlan]\neth1 = 100\n");
        assert_eq!(in_table, table("allow-source = \"10.0.0.2\"\n[vlan]\neth1 = 100\n"));
    }

    #[test]
    fn a_setting_of_several_lines_or_of_another_spelling_is_left_to_a_person() {
        assert_eq!(pasted("allow-source = [\n  \"0.0.0.0/0\",\n]\nvip = [\"a\"]\n"), None);
        assert_eq!(pasted("allow-source = [ \"a\", [\n] ]\n"), None);
        assert_eq!(pasted("\"allow-source\" = [\"0.0.0.0/0\"]\n"), None);
        assert_eq!(pasted("  allow-source = [\"0.0.0.0/0\"]\n"), None);
        // What the line looks like is in a text, or in a table of the same word.
        assert_eq!(pasted("note = '''\nallow-source = 1\n'''\n"), None);
        assert_eq!(pasted("[other]\nallow-source = 1\n"), None);
        assert_eq!(pasted("not TOML\n"), None);
        assert_eq!(pasted(""), None);
    }
}

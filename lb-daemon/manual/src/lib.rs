//! Man pages and shell completions of a command line, generated from its definition.

use std::{fs, io, path::Path};

use clap::Command;
use clap_complete::{Shell, generate};
use clap_mangen::Man;

/// Writes the manual of a program into a directory: a page for the program, and one for each verb,
/// named `PROGRAM-VERB.SECTION`. Verbs that help hides have none.
///
/// # Errors
/// A page cannot be written.
pub fn write_pages(mut command: Command, section: &str, directory: &Path) -> io::Result<()> {
    // Verbs learn their whole names, and the options that every verb has.
    command.build();
    write_page(&command, section, directory)
}

fn write_page(command: &Command, section: &str, directory: &Path) -> io::Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
    let man = Man::new(command.clone().name(name.clone()))
        .section(section)
        .title(name.to_uppercase())
        .manual("Spillway")
        .date("");
    let mut text = Vec::new();
    man.render(&mut text)?;
    fs::write(directory.join(format!("{name}.{section}")), text)?;
    let mut verbs = command.get_subcommands();
    verbs.try_for_each(|verb| match verb.is_hide_set() || verb.get_name() == "help" {
        true => Ok(()),
        false => write_page(verb, section, directory),
    })
}

/// A shell's completions of a command line.
pub fn completions(mut command: Command, shell: Shell) -> Vec<u8> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(shell, &mut command, name, &mut script);
    script
}

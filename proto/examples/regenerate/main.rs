//! Writes the generated Rust of the API: `cargo run -p spillway-proto --example regenerate`.
//!
//! With the word `release` it also writes down what is promised from now on, which a test holds every
//! later version to. Do that with a release, and at no other time.

mod generate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    generate::into(&generate::checked_in())?;
    if std::env::args().any(|word| word == "release") {
        std::fs::copy(generate::checked_in().join(generate::DESCRIPTORS), generate::promised())?;
    }
    Ok(())
}

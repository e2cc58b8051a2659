//! Writes the generated Rust of the API: `cargo run -p spillway-proto --example regenerate`.

mod generate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    generate::into(&generate::checked_in())
}

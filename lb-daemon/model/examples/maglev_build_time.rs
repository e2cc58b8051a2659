//! How long tables take to build: `cargo run --release -p lb-model --example maglev_build_time`.

use lb_model::maglev::{BuildError, build_time};

fn main() -> Result<(), BuildError> {
    for (members, slots) in [(3, 65_537), (100, 65_537), (1_000, 65_537), (1_000, 655_373)] {
        let time = build_time(members, slots, 21)?;
        println!("{members:>5} members, {slots:>6} slots: {:.2} ms", time.as_secs_f64() * 1e3);
    }
    Ok(())
}

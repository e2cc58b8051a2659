//! Slot tables: which members of a group may have a flow, in which order.
//!
//! A table is a pure function of member addresses, weights, size and [`ALGORITHM_VERSION`], so that
//! balancers agree without talking. Health is no input: a slot holds an order of preference, and who
//! of it is alive is looked up with every packet.
//!
//! # The algorithm, version 1
//! Integers throughout; `/` rounds down. `h(seed, member)` is XXH64 of the member's 16 key bytes under
//! a 64-bit seed. `M` is the number of slots, a prime.
//!
//! 1. **Ranks.** Members are sorted by key; a rank is a position in that order. Weights are divided by
//!    their greatest common divisor. A member of weight 0 has a rank and stands in no slot.
//! 2. **Quotas.** A member's quota is its share of `M` by weight, by largest remainder; equal
//!    remainders go to the lower ranks first.
//! 3. **Owners.** Maglev's fill (Eisenbud et al., NSDI 2016, section 3.4): a member prefers the slots
//!    `offset`, `offset + skip`, `offset + 2·skip` … modulo `M`, with `offset = h(0, member) mod M` and
//!    `skip = h(1, member) mod (M - 1) + 1`. A member of quota `q` has `q` turns; turn `k`, from 0, is
//!    in round `k·qmax / q`, where `qmax` is the largest quota. Rounds are played in order, and within
//!    a round the lower rank first. A turn takes the member's next preferred slot that is free. Equal
//!    weights make this Maglev as published.
//! 4. **Alternates.** The slots of an owner `o`, in the order in which it took them, are dealt to the
//!    other members by weight; the slots of owner `o` and first alternate `a`, in the same order, to
//!    the members that remain; and so on to the third alternate. *Dealt* means: lay the intervals of
//!    the members, as long as their weights, end to end in rank order; `W` is the length of it all. Of
//!    `n` slots the `j`-th goes to the member whose interval holds the point `(j·W + s) / n`. The phase
//!    `s` is `seed·W / 2^64`, with the seeds `h(2, o)`, `h(h(2, o), a)` and so on.
//!
//! Dealing gives each member its share of any one, two or three members that fail together to within
//! one slot for each list of failed ones: no draw from a hash or walk over the table is so even, and it
//! needs no bound for groups in which one member has nearly all the weight.

mod alternates;
mod built;
mod owners;
mod spec;
mod table;
#[cfg(test)]
mod tests;

pub use built::BuiltTables;
pub(crate) use spec::is_prime;
pub use spec::{BuildError, MAX_MEMBERS, Member, MemberKey, TableId, TableSpec};
pub use table::{Table, checksum, shares};

/// Version of the rules above. A table that they would build otherwise is another version.
pub const ALGORITHM_VERSION: u32 = 1;

/// The table of a group: [`TableSpec::new`] and [`TableSpec::build`] in one.
///
/// # Errors
/// Those of [`TableSpec::new`].
pub fn build(members: &[Member], slots: u32) -> Result<Table, BuildError> {
    Ok(TableSpec::new(members, slots)?.build())
}

//! The fast path of choosing: home has the packet, and nothing is remembered of any connection.

use super::{
    admit,
    choose::{self, Choice},
    parse::Kind,
    question::{Ask, Question},
    tables::Tables,
};
use crate::abi::{descriptor::LIMITED, service::SERVICE_TRACKED, verdict::Verdict};

/// The member that has a packet, if that can be told at once.
///
/// # Errors
/// The verdict of a packet that no backend gets.
#[inline(always)]
pub(super) fn at_once<T: Tables + ?Sized>(
    tables: &T,
    question: &Question,
    kind: Kind,
) -> Result<Option<Choice>, Verdict> {
    let ask = &Ask::new(tables, question)?;
    let told = match kind {
        Kind::OpenConnection => ask.is_settled(),
        Kind::NewConnection => ask.remembers_nothing(),
        Kind::Datagram => !ask.service_has(SERVICE_TRACKED),
    };
    if !told {
        return Ok(None);
    }
    let owner = choose::owner(tables, ask.descriptor, ask.hash)?;
    if owner.member.is_out_of_home() {
        return Ok(None);
    }
    let choice = owner.choice(tables, kind);
    if let Some(choice) = &choice
        && kind == Kind::NewConnection
    {
        admit::count(tables, ask, choice, false);
    }
    Ok(choice)
}

impl Ask<'_> {
    /// Whether every open connection is at home, and home means one thing.
    #[inline(always)]
    pub(super) fn is_settled(&self) -> bool {
        self.line().is_gate_closed() && self.line().versions().former() == 0
    }

    /// Whether a SYN that goes home leaves no trace.
    #[inline(always)]
    pub(super) fn remembers_nothing(&self) -> bool {
        self.is_settled() && self.descriptor.flags & LIMITED == 0
    }
}

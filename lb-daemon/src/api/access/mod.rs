//! Who may call what. Each call is looked up in one table before anything of it is read; what the
//! table does not name takes admin.

mod calls;
mod guard;
mod within;

pub(super) use calls::takes_admin;
pub(super) use guard::{Guard, caller, watching, working};
pub(super) use within::within;
#[cfg(test)]
mod tests;

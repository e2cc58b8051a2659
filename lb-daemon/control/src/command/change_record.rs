use std::fmt::Debug;

use super::{Applied, Refusal};

/// Records the outcome of a change, as the audit log does. If it is dropped before either method is called, the
/// change was not carried out.
pub trait ChangeRecord: Debug + Send {
    /// The change is in force. `behind` says why the packet path is not there yet.
    fn changed(self: Box<Self>, before: u64, applied: &Applied, behind: Option<String>);

    /// The change was refused, or changed nothing.
    fn finished(self: Box<Self>, result: &Result<Applied, Refusal>);
}

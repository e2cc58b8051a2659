//! Between protobuf messages and our own types. Nothing else in the daemon sees protobuf.

mod answer;
mod captured;
mod counted;
mod demand;
mod document;
mod explained;
mod invalid;
mod message;
mod probed;
mod refused;
mod stored;
mod tabulated;
mod validate;

pub(super) use captured::{said, wanted};
pub use document::UnknownValue;
pub use explained::{UnknownAnswer, explanation};
pub(super) use explained::{explained, flow};
pub use invalid::Invalid;
pub(super) use probed::{asked, told};
pub use refused::{FIELD_TRAILER, HINT_TRAILER};
pub(super) use refused::{WrongField, hinted};
pub use stored::{StoredMessage, encode};
pub use tabulated::pool_tables;
pub(super) use tabulated::tables;
pub use validate::configuration;

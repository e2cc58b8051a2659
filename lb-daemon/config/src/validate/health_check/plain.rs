use super::super::invalid::{Invalid, Place};

/// Only what may stand inside a request line or a header: printable ASCII without blanks.
pub(super) fn plain(
    at: &Place,
    field: &'static str,
    text: &str,
    longest: usize,
) -> Result<(), Invalid> {
    at_most(at, field, text.len(), longest)?;
    if let Some(c) = text.chars().find(|c| !c.is_ascii_graphic()) {
        let cause = format!("holds {c:?}; only printable ASCII without blanks is allowed");
        return Err(at.wrong(field, cause));
    }
    Ok(())
}

/// No more bytes than there is room for.
pub(super) fn at_most(
    at: &Place,
    field: &'static str,
    bytes: usize,
    longest: usize,
) -> Result<(), Invalid> {
    if bytes > longest {
        let cause = format!("has {bytes} bytes; at most {longest} are allowed");
        return Err(at.wrong(field, cause));
    }
    Ok(())
}

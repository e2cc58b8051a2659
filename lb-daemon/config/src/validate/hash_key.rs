//! The key of the flow hash.

use super::invalid::{Invalid, Place};

/// 32 hexadecimal digits; the first 16 are the first half, most significant first.
pub(super) fn hash_key(text: &str) -> Result<Option<[u64; 2]>, Invalid> {
    if text.is_empty() {
        return Ok(None);
    }
    let all_digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = Some(text).filter(|text| text.len() == 32 && all_digits);
    let half = |digits: &str| u64::from_str_radix(digits, 16).ok();
    // The key is a secret of the fleet: the message does not repeat it.
    let key = digits.and_then(|digits| Some([half(&digits[..16])?, half(&digits[16..])?]));
    match key {
        Some(key) => Ok(Some(key)),
        None => {
            let cause = format!("give 32 hexadecimal digits; these are {} bytes", text.len());
            Err(Place::default().wrong("hash_key", cause))
        }
    }
}

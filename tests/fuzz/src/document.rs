//! The file form: a text that is read is written and read again as the same; what it means is stored and read
//! again as the same.

use lb_config::document::{self, Document};
use spillway_proto::v1;

/// Any text.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = match Document::parse(text) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let written = read.to_toml().expect("what was read can be written");
    assert_eq!(Document::parse(&written).expect("what was written can be read"), read, "{written}");
    let message = v1::Configuration::from(read);
    match Document::try_from(message.clone()) {
        Ok(back) => assert_eq!(v1::Configuration::from(back), message),
        // A file may lack what every configuration has, such as the kind of a check.
        Err(_) => assert!(lb_config::validate_first(&message).is_err(), "{written}"),
    }
    match lb_config::validate_first(&message) {
        Ok(configuration) => crate::configuration::is_kept(&configuration),
        Err(invalid) => {
            // A mistake is told, and where it is.
            assert!(!invalid.to_string().is_empty());
            let _ = document::find_field(text, &invalid.path());
        }
    }
}

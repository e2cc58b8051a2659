//! The API's form: a message that is valid is stored, shown as a file, and read again as the same.

use lb_config::document::Document;
use lb_model::Configuration;
use prost::Message as _;
use spillway_proto::v1;

/// The bytes of a message.
pub fn check(data: &[u8]) {
    let Ok(message) = v1::Configuration::decode(data) else { return };
    match lb_config::validate_first(&message) {
        Ok(configuration) => is_kept(&configuration),
        Err(invalid) => {
            assert_eq!(lb_config::validate_first(&message), Err(invalid), "the same mistake again");
        }
    }
}

/// A configuration survives the store, and the file that `spillway get` writes of it.
pub fn is_kept(configuration: &Configuration) {
    let stored = lb_config::encode(configuration);
    let read = lb_config::StoredMessage::read(&stored).expect("what was stored");
    assert_eq!(read.configuration().expect("what was valid"), *configuration);
    assert_eq!(lb_config::encode(configuration), stored);
    let message = v1::Configuration::decode(&stored[..]).expect("a message");
    let document = Document::try_from(message).expect("our own words");
    let text = document.to_toml().expect("a file");
    let read = Document::parse(&text).expect("our own file").into();
    assert_eq!(
        lb_config::validate_first(&read).expect("valid as a file"),
        *configuration,
        "{text}"
    );
}

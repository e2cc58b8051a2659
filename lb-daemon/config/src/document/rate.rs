//! Rates as people write them: a number of connections and the time they come in, `10/s`, `600/m`.

use serde::{Deserializer, Serializer, de::Error};

use lb_model::rate::{parse, spell};

pub(super) fn serialize<S: Serializer>(
    per_second: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match per_second {
        Some(per_second) => serializer.serialize_str(&spell(*per_second)),
        None => serializer.serialize_none(),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    struct Text;
    impl serde::de::Visitor<'_> for Text {
        type Value = f64;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a rate with its unit, such as \"10/s\" or \"600/m\"")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
            parse(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_str(Text).map(Some)
}

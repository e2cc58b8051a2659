use std::collections::{BTreeMap, HashMap};

use lb_base::{Prefix, PrefixError, Quoted};
use lb_model::{Unserved, bounds::MOST_VIP_RANGES};
use spillway_proto::v1;

use super::{
    invalid::{Invalid, ObjectPath, all},
    values,
};

/// The ranges of VIPs, each prefix once.
pub(super) fn vips(messages: &[v1::VipRange], invalid: &mut Invalid) -> BTreeMap<Prefix, Unserved> {
    if messages.len() > MOST_VIP_RANGES {
        let cause = format!("{} ranges; at most {MOST_VIP_RANGES} are allowed", messages.len());
        invalid.add(ObjectPath::default().invalid("vips", cause));
        return BTreeMap::new();
    }
    let (mut vips, mut places) = (BTreeMap::new(), HashMap::new());
    for (index, message) in messages.iter().enumerate() {
        let at = ObjectPath::default().child("vips", index, &message.prefix);
        let prefix = prefix(&at, &message.prefix).and_then(|prefix| {
            let first = *places.entry(prefix).or_insert(index);
            let is_taken =
                format_args!("{prefix} is already the prefix of vips[{first}]").to_string();
            if first == index { Ok(prefix) } else { Err(at.invalid("prefix", is_taken)) }
        });
        let unserved = values::value(&at, "unserved", message.unserved);
        let range = invalid.value(all((prefix, unserved)));
        vips.extend(range.map(|(prefix, unserved)| (prefix, unserved.unwrap_or_default())));
    }
    vips
}

/// The prefix that a text spells.
fn prefix(at: &ObjectPath, text: &str) -> Result<Prefix, Invalid> {
    if text.is_empty() {
        return Err(at.invalid("prefix", "must be set"));
    }
    let quoted = Quoted(text);
    let cause = match Prefix::parse(text) {
        Ok(prefix) if prefix.address().is_ipv4() && text.contains(':') => {
            format!("{quoted} is IPv4 written as IPv6; give {prefix}")
        }
        Ok(prefix) => return Ok(prefix),
        Err(PrefixError::Beyond { network, .. }) => {
            format!("{quoted} has bits set behind the prefix; give {network}")
        }
        Err(PrefixError::TooLong { most, .. }) => {
            format!("{quoted} has more bits than the {most} of an address")
        }
        Err(_) => {
            format!("{quoted} is not an IPv4 or IPv6 address or prefix; write 203.0.113.0/24")
        }
    };
    Err(at.invalid("prefix", cause))
}

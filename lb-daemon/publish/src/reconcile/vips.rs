//! The words of VIPs: what becomes of packets that no service takes.

use std::{collections::BTreeMap, net::IpAddr};

use lb_common::abi::service::{VipKey, VipWord};
use lb_model::{
    Unserved,
    unserved::{self, LocalHost},
};

/// The words of VIPs, by what a configuration says of them and what this host is to them.
pub(super) fn words(
    unserved: &BTreeMap<IpAddr, Unserved>,
    host: &LocalHost,
) -> BTreeMap<VipKey, VipWord> {
    let words = unserved.iter().map(|(vip, unserved)| {
        (VipKey::of(*vip), VipWord::new(unserved::drops(*unserved, host, *vip)))
    });
    words.collect()
}

/// What has to be written to get from one state of VIPs to another.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct VipChange {
    /// New ones, and those with another word.
    pub(super) set: Vec<(VipKey, VipWord)>,
    pub(super) removed: Vec<VipKey>,
}

impl VipChange {
    pub(super) fn between(
        old: &BTreeMap<VipKey, VipWord>,
        new: &BTreeMap<VipKey, VipWord>,
    ) -> Self {
        let set = new.iter().filter(|(vip, word)| old.get(vip) != Some(word));
        Self {
            set: set.map(|(vip, word)| (*vip, *word)).collect(),
            removed: old.keys().filter(|vip| !new.contains_key(vip)).copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn key(text: &str) -> VipKey {
        VipKey::of(ip(text))
    }

    const PASS: VipWord = VipWord::new(false);
    const DROP: VipWord = VipWord::new(true);

    #[test]
    fn a_word_says_what_the_configuration_says_and_else_what_follows_from_the_host() {
        let vips = [
            (ip("192.0.2.1"), Unserved::Auto),
            (ip("192.0.2.2"), Unserved::Auto),
            (ip("192.0.2.3"), Unserved::Pass),
            (ip("192.0.2.4"), Unserved::Drop),
            (ip("2001:db8::1"), Unserved::Auto),
        ];
        let expected = |words: [VipWord; 5]| -> BTreeMap<_, _> {
            let keys = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "2001:db8::1"];
            keys.map(key).into_iter().zip(words).collect()
        };
        let mut host = LocalHost {
            addresses: BTreeSet::from([ip("192.0.2.2"), ip("192.0.2.4")]),
            forwards_v4: false,
            forwards_v6: true,
        };
        assert_eq!(words(&vips.into(), &host), expected([DROP, PASS, PASS, DROP, PASS]));
        host.forwards_v6 = false;
        assert_eq!(words(&vips.into(), &host), expected([DROP, PASS, PASS, DROP, DROP]));
        let unknown = LocalHost::default();
        assert_eq!(words(&vips.into(), &unknown), expected([PASS, PASS, PASS, DROP, PASS]));
    }

    #[test]
    fn only_vips_that_differ_are_written() {
        let [stays, changes, goes, comes] =
            ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"].map(key);
        let old = BTreeMap::from([(stays, DROP), (changes, DROP), (goes, PASS)]);
        let new = BTreeMap::from([(stays, DROP), (changes, PASS), (comes, DROP)]);
        let mut expected =
            VipChange { set: vec![(changes, PASS), (comes, DROP)], removed: vec![goes] };
        expected.set.sort_by_key(|(vip, _)| *vip);
        assert_eq!(VipChange::between(&old, &new), expected);
        assert_eq!(VipChange::between(&new, &new), VipChange::default());
    }
}

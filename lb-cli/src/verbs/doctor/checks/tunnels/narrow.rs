//! Backends that large packets do not get to.

use std::{collections::BTreeMap, net::IpAddr};

use super::{
    super::{Facts, Finding, mtu},
    some,
};
use crate::verbs::doctor::facts::{Daemon, Outcome, Way};

/// Least that may be said to be what a way takes (`backend update --mtu`), bytes.
const LEAST: u32 = 1_280;
/// Commands that are printed.
const MOST: usize = 3;

/// Backends of which nobody has said so.
pub(super) fn narrow(facts: &Facts, ways: &[Way]) -> Vec<Finding> {
    let mut takes: BTreeMap<IpAddr, (Option<u32>, bool)> = BTreeMap::new();
    for way in ways.iter().filter(|way| is_unknown(facts, way)) {
        let mtu = way.takes().filter(|mtu| *mtu >= LEAST);
        // What the narrowest of its ways takes, as far as it is known.
        let (known, _) = takes.entry(way.backend).or_insert((mtu, way.is_tunnel()));
        *known = [*known, mtu].into_iter().flatten().min();
    }
    let mut groups: BTreeMap<(Option<u32>, bool), Vec<IpAddr>> = BTreeMap::new();
    takes.into_iter().for_each(|(backend, what)| groups.entry(what).or_default().push(backend));
    let found = groups.into_iter();
    found.map(|((mtu, in_it), backends)| too_large(facts, mtu, in_it, &backends)).collect()
}

fn too_large(facts: &Facts, mtu: Option<u32>, is_tunnel: bool, backends: &[IpAddr]) -> Finding {
    let client = facts.places.client_mtu;
    let (come, with) = match is_tunnel {
        true => ("come through the tunnel", " with the tunnel"),
        false => ("get there", ""),
    };
    let most = mtu.map(|mtu| format!(" (the way takes {mtu}{with})")).unwrap_or_default();
    let found = format!("packets of {client} bytes do not {come}, small ones do{most}");
    let finding = Finding::warning("tunnels", some(backends), found).why(
        "a switch, a router or the backend's interface takes less than this host does, and what is too large \
         vanishes without a word: large uploads hang, unless backends ask clients for smaller segments. Widen \
         it, or say what the way takes, and clients are told",
    );
    let bytes = mtu.map_or_else(|| "BYTES".into(), |mtu| mtu.to_string());
    let update = |backend: String| format!("spillway backend update {backend} --mtu {bytes}");
    match backends {
        _ if backends.len() <= MOST => {
            backends.iter().fold(finding, |finding, one| finding.mend(update(one.to_string())))
        }
        _ => finding.mend(format!("{}  # each of them", update("ADDRESS".into()))),
    }
}

/// Whether large packets do not get there, and it is not known here that they do not: neither has anybody said
/// what fits, or said more than was measured, nor has another check found as much on this host.
pub(super) fn is_unknown(facts: &Facts, way: &Way) -> bool {
    match (&way.outcome, way.takes()) {
        (Outcome::Narrow { .. }, Some(takes)) => {
            mtu::least(facts, way.backend).is_none_or(|least| least > takes)
        }
        (Outcome::Narrow { .. }, None) => {
            !is_said(facts, way.backend) && !mtu::is_narrow(facts, way.backend)
        }
        _ => false,
    }
}

/// Whether the configuration says what fits.
fn is_said(facts: &Facts, backend: IpAddr) -> bool {
    matches!(&facts.daemon, Some(Daemon::Answers { told, .. }) if told.sized.contains(&backend))
}

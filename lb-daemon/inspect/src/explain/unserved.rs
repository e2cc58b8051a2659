//! Packets for a VIP that no service of it takes.

use std::net::IpAddr;

use lb_common::abi::verdict::Verdict;
use lb_model::unserved::{UnservedCause, UnservedDecision};
use serde::Serialize;

use super::{Explanation, Flow};

/// What becomes of a packet that no service takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnservedPart {
    /// Whether it is dropped; else it is left to the host.
    pub drops: bool,
    /// `configured`, `own_address`, `forwards` or `not_of_host`; `null`: not known.
    pub cause: Option<&'static str>,
    /// Prefix of the configuration that says so; `null`: none does.
    pub prefix: Option<String>,
}

/// A packet for a VIP that no service of it takes, by what the maps say of the VIP. Why they say so is not in the maps.
pub fn unserved(flow: &Flow, drops: bool) -> Explanation {
    let mut explanation = Explanation::for_flow(flow);
    let verdict = if drops { Verdict::Unserved } else { Verdict::NotOurs };
    explanation.verdict = verdict.name().into();
    explanation.unserved = Some(UnservedPart { drops, cause: None, prefix: None });
    explanation.why = sentence(drops, None, flow.vip());
    explanation
}

impl Explanation {
    /// Says why the packet is dropped or left to the host, if what the maps say is what follows from the configuration and the
    /// host.
    pub fn add_cause(&mut self, flow: &Flow, decision: UnservedDecision) {
        if let Some(unserved) = self.unserved.as_mut().filter(|it| it.drops == decision.drops) {
            unserved.cause = Some(cause_name(decision.cause));
            unserved.prefix = match decision.cause {
                UnservedCause::Configured(prefix) => Some(prefix.to_string()),
                _ => None,
            };
            self.why = sentence(decision.drops, Some(decision.cause), flow.vip());
        }
    }
}

impl UnservedPart {
    /// The names of causes, in the order of the API.
    pub const CAUSES: [&str; 4] = ["configured", "own_address", "forwards", "not_of_host"];
}

fn cause_name(cause: UnservedCause) -> &'static str {
    let [configured, own_address, forwards, not_of_host] = UnservedPart::CAUSES;
    match cause {
        UnservedCause::Configured(_) => configured,
        UnservedCause::OwnAddress => own_address,
        UnservedCause::Forwards => forwards,
        UnservedCause::NotOfHost => not_of_host,
    }
}

fn sentence(drops: bool, cause: Option<UnservedCause>, vip: IpAddr) -> String {
    let what = if drops { "dropped" } else { "left to the host" };
    let begin = format!("no service of this VIP takes the packet, so it is {what}");
    let family = if vip.is_ipv4() { "IPv4" } else { "IPv6" };
    match cause {
        None => begin,
        Some(UnservedCause::Configured(prefix)) => {
            format!("{begin}: `unserved` of vip {prefix} says so")
        }
        Some(UnservedCause::OwnAddress) => format!("{begin}: the VIP is an address of the host"),
        Some(UnservedCause::Forwards) => format!("{begin}, which forwards {family} packets"),
        Some(UnservedCause::NotOfHost) => format!(
            "{begin}: the VIP is no address of the host, and the host does not forward {family} packets"
        ),
    }
}

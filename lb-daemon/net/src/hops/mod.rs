//! The state of the network, and the next hops that follow from it. Does no I/O.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Bonds, Interface, NextHopChange, Unresolved, UnsupportedVlan,
    events::Event,
    neighbour::{Neighbour, NeighbourEntry, NeighbourKey, Phase},
    neighbour_requests::NeighbourRequests,
    route::Route,
};
use lb_model::next_hop::NextHop;

/// Time after which a failed neighbour is given up. If its entry is being deleted, that event follows at once, and a
/// neighbour that exists answers the next request within this time.
const GRACE_PERIOD: Duration = Duration::from_millis(20);

/// Interfaces, neighbours, and the wanted addresses with their routes.
///
/// Each input marks the addresses that it concerns; [`Hops::settle`] computes the next hops of those.
#[derive(Debug, Default)]
pub(super) struct Hops {
    /// Interfaces that have the packet program. Their own VLAN tags do not matter: on a VLAN device the program runs
    /// in the stack, where the kernel removes and adds tags.
    attached: BTreeSet<u32>,
    interfaces: HashMap<u32, Interface>,
    neighbours: HashMap<NeighbourKey, Neighbour>,
    wanted: BTreeMap<IpAddr, AddressState>,
    /// The addresses behind each neighbour: a thousand behind one gateway are one neighbour.
    by_neighbour: HashMap<NeighbourKey, BTreeSet<IpAddr>>,
    requests: NeighbourRequests,
    /// When failing neighbours are given up.
    grace_periods: BTreeSet<(Instant, NeighbourKey)>,
    touched: BTreeSet<IpAddr>,
    touched_neighbours: BTreeSet<NeighbourKey>,
    /// Addresses whose neighbour has fallen silent: the kernel may have another way to them.
    cut_off: BTreeSet<IpAddr>,
    /// The bonds reported last.
    reported_bonds: Option<Bonds>,
}

#[derive(Debug, Default)]
struct AddressState {
    route: Option<Result<Route, Unresolved>>,
    /// Its interface went down, and the route has not been looked up since: the kernel may have another route.
    in_doubt: bool,
    reported: Option<Result<NextHop, Unresolved>>,
}

/// What the kernel is told to do about a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Resolve it, or check that it still answers.
    Resolve(NeighbourKey),
    /// Ask it at once.
    Probe(NeighbourKey),
}

impl Hops {
    /// `attached`: the interfaces that have the packet program.
    pub(super) fn new(attached: BTreeSet<u32>) -> Self {
        Self { attached, ..Self::default() }
    }

    /// Sets the interfaces that have the packet program.
    pub(super) fn set_attached(&mut self, attached: BTreeSet<u32>) {
        self.attached = attached;
        self.wanted.values_mut().for_each(|wanted| wanted.reported = None);
        self.touched.extend(self.wanted.keys());
    }

    /// Sets the wanted addresses, and returns the new ones, whose routes are not known. The others are reported
    /// again: an address that was removed and added between two sets looks unchanged here, but its receiver has
    /// dropped its next hop.
    pub(super) fn want(&mut self, addresses: &BTreeSet<IpAddr>) -> BTreeSet<IpAddr> {
        let unwanted: Vec<_> =
            self.wanted.keys().filter(|known| !addresses.contains(known)).copied().collect();
        for address in unwanted {
            self.replace_route(address, None);
            self.wanted.remove(&address);
        }
        self.wanted.values_mut().for_each(|wanted| wanted.reported = None);
        self.touched.extend(self.wanted.keys());
        let new: BTreeSet<_> =
            addresses.iter().filter(|a| !self.wanted.contains_key(a)).copied().collect();
        self.wanted.extend(new.iter().map(|address| (*address, AddressState::default())));
        new
    }

    /// All wanted addresses.
    pub(super) fn wanted(&self) -> BTreeSet<IpAddr> {
        self.wanted.keys().copied().collect()
    }

    /// Sets an address's route, or why there is none.
    pub(super) fn set_route(&mut self, address: IpAddr, route: Result<Route, Unresolved>) {
        self.replace_route(address, Some(route));
    }

    fn replace_route(&mut self, address: IpAddr, route: Option<Result<Route, Unresolved>>) {
        let Some(wanted) = self.wanted.get_mut(&address) else { return };
        if std::mem::take(&mut wanted.in_doubt) {
            self.touched.insert(address);
        }
        if wanted.route == route {
            return;
        }
        let neighbour = |route: &Option<Result<Route, _>>| match route {
            Some(Ok(route)) => Some(route.neighbour),
            _ => None,
        };
        let former = neighbour(&std::mem::replace(&mut wanted.route, route.clone()));
        let current = neighbour(&route);
        if let Some(addresses) = former.and_then(|key| self.by_neighbour.get_mut(&key)) {
            addresses.remove(&address);
        }
        if let Some(key) = current {
            self.by_neighbour.entry(key).or_default().insert(address);
        }
        self.touched_neighbours.extend(former.into_iter().chain(current));
        self.touched.insert(address);
    }

    /// Applies an event of an interface or a neighbour; others are ignored.
    pub(super) fn observe(&mut self, event: Event, now: Instant) {
        match event {
            Event::Neighbour(seen) => {
                let before = self.neighbours.get(&seen.key).copied();
                let after = Neighbour::after(before, seen);
                let failing = |n: Option<Neighbour>| n.is_some_and(|n| n.phase == Phase::Failing);
                if failing(after) && !failing(before) {
                    self.grace_periods.insert((now + GRACE_PERIOD, seen.key));
                }
                self.set_neighbour(seen.key, after);
            }
            Event::NeighbourGone(seen) => {
                let left = self.neighbours.get(&seen.key).and_then(|before| before.removed());
                // No wanted address uses it.
                self.set_neighbour(
                    seen.key,
                    left.filter(|_| self.by_neighbour.contains_key(&seen.key)),
                );
            }
            Event::Link(interface) => self.set_interface(interface.index, Some(interface)),
            Event::LinkGone(index) => self.set_interface(index, None),
            Event::Address | Event::Routing | Event::Lost => {}
        }
    }

    /// Replaces interfaces and neighbours, after events were lost.
    pub(super) fn replace(&mut self, interfaces: Vec<Interface>, neighbours: Vec<NeighbourEntry>) {
        let present: BTreeSet<_> = interfaces.iter().map(|interface| interface.index).collect();
        let gone: Vec<_> =
            self.interfaces.keys().filter(|known| !present.contains(known)).copied().collect();
        gone.into_iter().for_each(|index| self.set_interface(index, None));
        interfaces.into_iter().for_each(|i| self.set_interface(i.index, Some(i)));

        let present: BTreeSet<_> = neighbours.iter().map(|seen| seen.key).collect();
        let gone: Vec<_> =
            self.neighbours.keys().filter(|known| !present.contains(known)).copied().collect();
        for key in gone {
            let left = self.neighbours.get(&key).and_then(|before| before.removed());
            self.set_neighbour(key, left.filter(|_| self.by_neighbour.contains_key(&key)));
        }
        for seen in neighbours {
            let before = self.neighbours.get(&seen.key).copied();
            // A failed entry in a listing is not being deleted.
            let after = Neighbour::after(before, seen).map(Neighbour::given_up);
            self.set_neighbour(seen.key, after);
        }
    }

    /// Stores the answer to a neighbour request: the kernel's reason if it refused.
    pub(super) fn set_refused(&mut self, key: NeighbourKey, refused: Option<String>) {
        if self.requests.set_refused(key, refused) {
            self.touched_neighbours.insert(key);
        }
    }

    /// The neighbours to ask at `now`.
    pub(super) fn take_requests(&mut self, now: Instant) -> Vec<Request> {
        let request = |key| match self.neighbours.get(&key).map(|neighbour| neighbour.phase) {
            Some(Phase::Unconfirmed) => Request::Probe(key),
            _ => Request::Resolve(key),
        };
        self.requests.take_due(now).into_iter().map(request).collect()
    }

    /// The addresses whose neighbour has fallen silent since the last call.
    pub(super) fn take_cut_off(&mut self) -> BTreeSet<IpAddr> {
        std::mem::take(&mut self.cut_off)
    }

    /// When there is something to do without any event.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let chance = self.grace_periods.first().map(|(end, _)| *end);
        self.requests.next_due().into_iter().chain(chance).min()
    }

    /// The changes since the last call.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<NextHopChange> {
        while let Some((end, key)) = self.grace_periods.first().copied().filter(|(e, _)| *e <= now)
        {
            self.grace_periods.remove(&(end, key));
            let given_up = self.neighbours.get(&key).map(|neighbour| neighbour.given_up());
            self.set_neighbour(key, given_up);
        }
        for key in std::mem::take(&mut self.touched_neighbours) {
            self.settle_neighbour(key, now);
        }
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().filter_map(|address| self.take_change(address)).collect()
    }

    /// Which interfaces are ports of bonds, if that changed since it was reported.
    pub(super) fn settle_bonds(&mut self) -> Option<Bonds> {
        let ports = self.interfaces.values();
        let bonds: Bonds = ports.filter_map(|port| Some((port.index, port.bond?))).collect();
        if self.reported_bonds.as_ref() == Some(&bonds) {
            return None;
        }
        self.reported_bonds = Some(bonds.clone());
        Some(bonds)
    }

    fn settle_neighbour(&mut self, key: NeighbourKey, now: Instant) {
        let addresses = self.by_neighbour.get(&key).filter(|addresses| !addresses.is_empty());
        let Some(addresses) = addresses else {
            self.by_neighbour.remove(&key);
            self.requests.end(key);
            return;
        };
        self.touched.extend(addresses);
        let interface = self.interfaces.get(&key.interface);
        let can_resolve = interface.is_some_and(|i| i.is_usable() && i.mac.is_some() && !i.noarp);
        let known = self.neighbours.get(&key);
        match can_resolve && known.is_none_or(|neighbour| neighbour.needs_request()) {
            true => self.requests.begin(key, now),
            false => self.requests.end(key),
        }
    }

    fn set_neighbour(&mut self, key: NeighbourKey, neighbour: Option<Neighbour>) {
        let before = match neighbour {
            Some(neighbour) => self.neighbours.insert(key, neighbour),
            None => self.neighbours.remove(&key),
        };
        if before == neighbour {
            return;
        }
        self.touched_neighbours.insert(key);
        if neighbour.is_some_and(|n| n.phase == Phase::Silent) {
            self.cut_off.extend(self.by_neighbour.get(&key).into_iter().flatten());
        }
        let is_new =
            |n: Neighbour| matches!(n.phase, Phase::Failing | Phase::Removed | Phase::Unconfirmed);
        if neighbour.is_some_and(is_new) {
            // Requested at once, even if it has just been.
            self.requests.end(key);
        }
    }

    fn set_interface(&mut self, index: u32, interface: Option<Interface>) {
        let usable = interface.as_ref().is_some_and(Interface::is_usable);
        let before = match interface.clone() {
            Some(interface) => self.interfaces.insert(index, interface),
            None => self.interfaces.remove(&index),
        };
        if before == interface {
            return;
        }
        if !usable {
            // When the interface is up again, another host may have the address.
            self.neighbours.retain(|key, neighbour| {
                key.interface != index || neighbour.phase == Phase::Permanent
            });
        }
        let of_interface = self.by_neighbour.keys().filter(|key| key.interface == index);
        self.touched_neighbours.extend(of_interface);
        for key in self.by_neighbour.keys().filter(|key| !usable && key.interface == index) {
            for address in &self.by_neighbour[key] {
                self.wanted.entry(*address).and_modify(|wanted| wanted.in_doubt = true);
            }
        }
    }

    /// The change of an address's next hop, if there is one.
    fn take_change(&mut self, address: IpAddr) -> Option<NextHopChange> {
        let hop = self.resolve(address)?;
        let wanted = self.wanted.get_mut(&address)?;
        // Without a next hop packets are retransmitted, but connections that move to another host are lost.
        let is_early = wanted.in_doubt && hop.is_err();
        if is_early || wanted.reported.as_ref() == Some(&hop) {
            return None;
        }
        wanted.reported = Some(hop.clone());
        Some(NextHopChange { address, hop })
    }

    /// The next hop of an address; `None` while it is being resolved.
    fn resolve(&self, address: IpAddr) -> Option<Result<NextHop, Unresolved>> {
        let route = match self.wanted.get(&address)?.route.as_ref()? {
            Ok(route) => route,
            Err(unresolved) => return Some(Err(unresolved.clone())),
        };
        let key = route.neighbour;
        let Some(interface) = self.interfaces.get(&key.interface) else {
            return Some(Err(Unresolved::Gone(key.interface)));
        };
        if let Some(cause) = self.unsupported_vlan(interface) {
            let interface = interface.name.clone();
            return Some(Err(Unresolved::Untaggable { interface, cause }));
        }
        let interface_mac = match sending_mac(interface) {
            Ok(mac) => mac,
            Err(unresolved) => return Some(Err(unresolved)),
        };
        let mac = match self.neighbour_mac(key, interface)? {
            Ok(mac) => mac,
            Err(unresolved) => return Some(Err(unresolved)),
        };
        let mtu = route.mtu.map_or(interface.mtu, |mtu| mtu.min(interface.mtu));
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        Some(Ok(NextHop {
            gateway: key.address,
            mac,
            interface: key.interface,
            vlan: interface.vlan,
            interface_mac,
            mtu,
            source: route.source,
        }))
    }

    /// Why the packet program cannot add the tags of an interface.
    fn unsupported_vlan(&self, interface: &Interface) -> Option<UnsupportedVlan> {
        let is_vlan =
            |beneath: &&Interface| beneath.vlan.is_some() || beneath.unsupported_vlan.is_some();
        let parent = || self.interfaces.get(&interface.vlan?.beneath).filter(is_vlan);
        let stacked = || parent().map(|beneath| UnsupportedVlan::Stacked(beneath.name.clone()));
        let unsupported_vlan = interface.unsupported_vlan.clone().or_else(stacked);
        unsupported_vlan.filter(|_| !self.attached.contains(&interface.index))
    }

    fn neighbour_mac(
        &self,
        key: NeighbourKey,
        interface: &Interface,
    ) -> Option<Result<[u8; 6], Unresolved>> {
        let neighbour = self.neighbours.get(&key);
        if let Some(mac) = neighbour.and_then(|neighbour| neighbour.mac) {
            return Some(Ok(mac));
        }
        let (gateway, name) = (key.address, interface.name.clone());
        if interface.noarp {
            return Some(Err(Unresolved::NoArp { gateway, interface: name }));
        }
        if let Some(cause) = self.requests.refused(key) {
            let cause = cause.to_owned();
            return Some(Err(Unresolved::Unresolvable { gateway, interface: name, cause }));
        }
        let silent = neighbour.is_some_and(|neighbour| neighbour.is_silent());
        silent.then_some(Err(Unresolved::Silent { gateway, interface: name }))
    }
}

/// The source MAC of frames on an interface.
fn sending_mac(interface: &Interface) -> Result<[u8; 6], Unresolved> {
    match interface.mac {
        None => Err(Unresolved::NotEthernet(interface.name.clone())),
        Some(_) if !interface.up => Err(Unresolved::Down(interface.name.clone())),
        Some(_) if !interface.carrier => Err(Unresolved::NoCarrier(interface.name.clone())),
        Some(mac) => Ok(mac),
    }
}

#[cfg(test)]
mod tests;

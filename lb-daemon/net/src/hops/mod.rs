//! What is known of the network, and what follows for the wanted addresses. Does no work of its own.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Bonds, ForeignVlan, Interface, NextHopChange, Unresolved,
    events::Event,
    neighbour::{Neighbour, NeighbourKey, Phase, Sighting},
    neighbour_requests::NeighbourRequests,
    route::Route,
};
use lb_model::next_hop::NextHop;

/// How long a neighbour that failed is not given up yet: its deletion would be told at once, and if it
/// is there it answers by then. The kernel took seconds to find that it does not.
const LAST_CHANCE: Duration = Duration::from_millis(20);

/// Interfaces, neighbours, and the wanted addresses with their routes.
///
/// Whatever comes in marks what it touches; [`Hops::settle`] works out the touched.
#[derive(Debug, Default)]
pub(super) struct Hops {
    /// Interfaces that have the packet program: what they are a VLAN of does not matter, for the kernel takes
    /// tags off and puts them on where the program runs in the stack.
    attached: BTreeSet<u32>,
    interfaces: HashMap<u32, Interface>,
    neighbours: HashMap<NeighbourKey, Neighbour>,
    wanted: BTreeMap<IpAddr, Wanted>,
    /// Which addresses a neighbour carries: a thousand behind one gateway are one neighbour.
    carried: HashMap<NeighbourKey, BTreeSet<IpAddr>>,
    asks: NeighbourRequests,
    /// When which neighbours that fail are given up.
    last_chances: BTreeSet<(Instant, NeighbourKey)>,
    touched: BTreeSet<IpAddr>,
    touched_neighbours: BTreeSet<NeighbourKey>,
    /// What was told last of bonds.
    told_bonds: Option<Bonds>,
}

#[derive(Debug, Default)]
struct Wanted {
    route: Option<Result<Route, Unresolved>>,
    /// Its interface went down, and the route has not been looked up since: the kernel may have another one.
    in_doubt: bool,
    told: Option<Result<NextHop, Unresolved>>,
}

impl Hops {
    /// A book of a host whose packet program is on these interfaces.
    pub(super) fn new(attached: BTreeSet<u32>) -> Self {
        Self { attached, ..Self::default() }
    }

    /// Takes the set of wanted addresses; gives those that are new, whose routes are not known. What
    /// is known of the others is told again: one that went and came back between two sets looks as
    /// if it had stayed, but whoever wants it has forgotten.
    pub(super) fn want(&mut self, addresses: &BTreeSet<IpAddr>) -> BTreeSet<IpAddr> {
        let unwanted: Vec<_> =
            self.wanted.keys().filter(|known| !addresses.contains(known)).copied().collect();
        for address in unwanted {
            self.set_route(address, None);
            self.wanted.remove(&address);
        }
        self.wanted.values_mut().for_each(|wanted| wanted.told = None);
        self.touched.extend(self.wanted.keys());
        let new: BTreeSet<_> =
            addresses.iter().filter(|a| !self.wanted.contains_key(a)).copied().collect();
        self.wanted.extend(new.iter().map(|address| (*address, Wanted::default())));
        new
    }

    /// All wanted addresses.
    pub(super) fn wanted(&self) -> BTreeSet<IpAddr> {
        self.wanted.keys().copied().collect()
    }

    /// Takes an address's route, or the reason why there is none.
    pub(super) fn routed(&mut self, address: IpAddr, route: Result<Route, Unresolved>) {
        self.set_route(address, Some(route));
    }

    fn set_route(&mut self, address: IpAddr, route: Option<Result<Route, Unresolved>>) {
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
        if let Some(carries) = former.and_then(|key| self.carried.get_mut(&key)) {
            carries.remove(&address);
        }
        if let Some(key) = current {
            self.carried.entry(key).or_default().insert(address);
        }
        self.touched_neighbours.extend(former.into_iter().chain(current));
        self.touched.insert(address);
    }

    /// Takes what the kernel tells; what is not of interfaces or neighbours is not for here.
    pub(super) fn observe(&mut self, event: Event, now: Instant) {
        match event {
            Event::Neighbour(seen) => {
                let before = self.neighbours.get(&seen.key).copied();
                let after = Neighbour::after(before, seen);
                let failing = |n: Option<Neighbour>| n.is_some_and(|n| n.phase == Phase::Failing);
                if failing(after) && !failing(before) {
                    self.last_chances.insert((now + LAST_CHANCE, seen.key));
                }
                self.set_neighbour(seen.key, after);
            }
            Event::NeighbourGone(seen) => {
                let left = self.neighbours.get(&seen.key).and_then(|before| before.removed());
                // Of one that carries nothing there is nothing to keep.
                self.set_neighbour(seen.key, left.filter(|_| self.carried.contains_key(&seen.key)));
            }
            Event::Link(interface) => self.set_interface(interface.index, Some(interface)),
            Event::LinkGone(index) => self.set_interface(index, None),
            Event::Routing | Event::Lost => {}
        }
    }

    /// Takes all there is, in place of events that were lost.
    pub(super) fn replace(&mut self, interfaces: Vec<Interface>, neighbours: Vec<Sighting>) {
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
            self.set_neighbour(key, left.filter(|_| self.carried.contains_key(&key)));
        }
        for seen in neighbours {
            let before = self.neighbours.get(&seen.key).copied();
            // What has failed and is in the table is not being deleted.
            let after = Neighbour::after(before, seen).map(Neighbour::given_up);
            self.set_neighbour(seen.key, after);
        }
    }

    /// Takes how asking for a neighbour went: the kernel's reason if it would not.
    pub(super) fn asked(&mut self, key: NeighbourKey, refused: Option<String>) {
        if self.asks.asked(key, refused) {
            self.touched_neighbours.insert(key);
        }
    }

    /// Whom to ask for at `now`.
    pub(super) fn take_asks(&mut self, now: Instant) -> Vec<NeighbourKey> {
        self.asks.take_due(now)
    }

    /// When there is something to settle or to ask, though nothing happens.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let chance = self.last_chances.first().map(|(end, _)| *end);
        self.asks.next_due().into_iter().chain(chance).min()
    }

    /// What all that came in since the last call changes.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<NextHopChange> {
        while let Some((end, key)) = self.last_chances.first().copied().filter(|(e, _)| *e <= now) {
            self.last_chances.remove(&(end, key));
            let given_up = self.neighbours.get(&key).map(|neighbour| neighbour.given_up());
            self.set_neighbour(key, given_up);
        }
        for key in std::mem::take(&mut self.touched_neighbours) {
            self.settle_neighbour(key, now);
        }
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().filter_map(|address| self.news(address)).collect()
    }

    /// Which interfaces are ports of bonds, if that is not what was told last.
    pub(super) fn settle_bonds(&mut self) -> Option<Bonds> {
        let ports = self.interfaces.values();
        let bonds: Bonds = ports.filter_map(|port| Some((port.index, port.bond?))).collect();
        if self.told_bonds.as_ref() == Some(&bonds) {
            return None;
        }
        self.told_bonds = Some(bonds.clone());
        Some(bonds)
    }

    fn settle_neighbour(&mut self, key: NeighbourKey, now: Instant) {
        let carries = self.carried.get(&key).filter(|carries| !carries.is_empty());
        let Some(carries) = carries else {
            self.carried.remove(&key);
            self.asks.end(key);
            return;
        };
        self.touched.extend(carries);
        let interface = self.interfaces.get(&key.interface);
        let can_ask = interface.is_some_and(|i| i.is_usable() && i.mac.is_some() && !i.noarp);
        let known = self.neighbours.get(&key);
        match can_ask && known.is_none_or(|neighbour| neighbour.needs_asking()) {
            true => self.asks.begin(key, now),
            false => self.asks.end(key),
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
        if neighbour.is_some_and(|n| matches!(n.phase, Phase::Failing | Phase::Removed)) {
            // Asked for at once, even if it has just been.
            self.asks.end(key);
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
            // Whoever is there when it comes up again need not be whoever was there.
            self.neighbours.retain(|key, neighbour| {
                key.interface != index || neighbour.phase == Phase::Permanent
            });
        }
        let of_interface = self.carried.keys().filter(|key| key.interface == index);
        self.touched_neighbours.extend(of_interface);
        for key in self.carried.keys().filter(|key| !usable && key.interface == index) {
            for address in &self.carried[key] {
                self.wanted.entry(*address).and_modify(|wanted| wanted.in_doubt = true);
            }
        }
    }

    /// The change to tell of an address, if there is one.
    fn news(&mut self, address: IpAddr) -> Option<NextHopChange> {
        let hop = self.resolve(address)?;
        let wanted = self.wanted.get_mut(&address)?;
        // Packets that leave by nothing are sent again; connections that move to another host are lost.
        let is_early = wanted.in_doubt && hop.is_err();
        if is_early || wanted.told.as_ref() == Some(&hop) {
            return None;
        }
        wanted.told = Some(hop.clone());
        Some(NextHopChange { address, hop })
    }

    /// What is known of the way to an address; `None` while that is being found out.
    fn resolve(&self, address: IpAddr) -> Option<Result<NextHop, Unresolved>> {
        let route = match self.wanted.get(&address)?.route.as_ref()? {
            Ok(route) => route,
            Err(unresolved) => return Some(Err(unresolved.clone())),
        };
        let key = route.neighbour;
        let Some(interface) = self.interfaces.get(&key.interface) else {
            return Some(Err(Unresolved::Gone(key.interface)));
        };
        if let Some(cause) = self.foreign_vlan(interface) {
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
        }))
    }

    /// Why frames cannot get the tags that an interface puts on.
    fn foreign_vlan(&self, interface: &Interface) -> Option<ForeignVlan> {
        let is_vlan = |beneath: &&Interface| beneath.vlan.is_some() || beneath.foreign.is_some();
        let beneath = || self.interfaces.get(&interface.vlan?.beneath).filter(is_vlan);
        let upon = || beneath().map(|beneath| ForeignVlan::Upon(beneath.name.clone()));
        let foreign = interface.foreign.clone().or_else(upon);
        foreign.filter(|_| !self.attached.contains(&interface.index))
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
        if let Some(cause) = self.asks.refused(key) {
            let cause = cause.to_owned();
            return Some(Err(Unresolved::Unaskable { gateway, interface: name, cause }));
        }
        let silent = neighbour.is_some_and(|neighbour| neighbour.phase == Phase::Silent);
        silent.then_some(Err(Unresolved::Silent { gateway, interface: name }))
    }
}

/// The MAC that frames leave an interface with.
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

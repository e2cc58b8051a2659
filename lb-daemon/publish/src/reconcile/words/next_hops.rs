use std::net::IpAddr;

use lb_common::abi::{
    limits::MAX_INTERFACES,
    next_hop::{AWAITED, InterfaceWord, NextHopWord},
};

use super::{MemberWords, next_hop_table::Gateway};
use crate::reconcile::ReconcileError;
use lb_model::next_hop::NextHop;

/// Until its MTU is known, a route is assumed to carry outer packets of this size, bytes.
const USUAL_MTU: u16 = 1500;

impl MemberWords {
    /// Points a backend to a next hop. A gateway's new MAC is one write for all backends behind it.
    ///
    /// The interface does not need the program attached, but its driver must then be able to send redirected frames
    /// without it.
    pub(super) fn point_to(&mut self, backend: IpAddr, hop: NextHop) -> Result<(), ReconcileError> {
        let interface = u16::try_from(hop.interface)
            .ok()
            .filter(|index| u32::from(*index) < MAX_INTERFACES)
            .ok_or(ReconcileError::InterfaceIndex(hop.interface))?;
        // Frames of a VLAN interface leave by the interface beneath, and nothing else adds their tag. If the
        // program runs on the VLAN interface itself, its frames have no tag.
        let by = hop.vlan.filter(|_| !self.settings.interfaces.attached.contains(&hop.interface));
        let set = self.settings.interfaces.vlans.get(&hop.interface).copied();
        let vlan = set.or(by.map(|vlan| vlan.id)).unwrap_or(0);
        let own = InterfaceWord::new(hop.interface_mac).with_vlan(vlan);
        let device = by.map_or(hop.interface, |vlan| vlan.beneath);
        self.allow_interface(hop.interface, own, device)?;
        let word = NextHopWord::new(hop.mac, interface);
        let NextHop { gateway: address, interface, source, .. } = hop;
        let gateway = Gateway { address, interface, source };
        let entry = gateway.entry(word);
        let before = self.next_hops.index_of(&backend);
        let to = self.next_hops.assign(backend, gateway, entry)?;
        if to.write {
            self.maps.set_next_hop(to.index, &entry);
        }
        // Before members point there: without a tunnel a packet goes directly or not at all.
        self.next_hops.set_route(backend, &hop);
        self.write_route(&backend);
        if to.index != before {
            self.point_members(&backend, to.index);
        }
        Ok(())
    }

    /// Takes a backend's next hop away until it has one again; returns whether it awaits one.
    pub(super) fn lose_next_hop(&mut self, backend: &IpAddr) -> bool {
        if self.next_hops.lose(backend) {
            self.point_members(backend, AWAITED.into());
        }
        self.next_hops.awaits(backend)
    }

    pub(super) fn forget_next_hop(&mut self, backend: &IpAddr) {
        if self.next_hops.remove(backend) {
            self.point_members(backend, 0);
        }
    }

    fn allow_interface(
        &mut self,
        interface: u32,
        word: InterfaceWord,
        device: u32,
    ) -> Result<(), ReconcileError> {
        // The kernel forgets a device that leaves, and the device may come back unchanged.
        if self.next_hops.is_new_interface(interface, word) || !self.maps.is_device(interface)? {
            self.maps.add_interface(interface, word, device)?;
            self.next_hops.learn_interface(interface, word);
        }
        Ok(())
    }

    /// Points a backend and its members at a next-hop word. If the backend becomes unreachable, the groups'
    /// limits are lowered first; if it becomes reachable, they are raised last.
    fn point_members(&mut self, backend: &IpAddr, index: u32) {
        let locations = self.locations.get(backend).to_vec();
        let is_unreachable = index == 0 || index == u32::from(AWAITED);
        if is_unreachable {
            locations.iter().for_each(|location| self.update_limit(location.group));
        } else {
            self.write_backend_state(backend);
        }
        for location in &locations {
            if let Some(word) = self.maps.member(location.word) {
                self.maps.set_member(location.word, word.with_next_hop(index as u16));
                self.update_standbys_after(location.group, &[location.rank]);
            }
        }
        if is_unreachable {
            self.write_backend_state(backend);
        } else {
            locations.iter().for_each(|location| self.update_limit(location.group));
        }
    }

    /// Largest outer packet towards a backend, by configuration and route. Until a sensor reports the route,
    /// the value found in the maps, `before`, counts.
    pub(super) fn mtu_of(
        &self,
        address: &IpAddr,
        configured: Option<u16>,
        before: Option<u16>,
    ) -> u16 {
        let route = self.next_hops.mtu(address).or(before);
        match (configured, route) {
            (Some(configured), Some(route)) => configured.min(route),
            (configured, route) => configured.or(route).unwrap_or(USUAL_MTU),
        }
    }

    fn write_route(&self, address: &IpAddr) {
        let Some(planned) = self.backends.get(address) else { return };
        let Some(mut backend) = self.maps.backend(planned.id.index) else { return };
        let before = backend;
        backend.mtu = self.mtu_of(address, planned.mtu, None);
        backend.on_link = self.next_hops.on_link(address).unwrap_or(backend.on_link);
        if backend != before {
            self.maps.set_backend_mtu(planned.id.index, &backend);
        }
    }
}

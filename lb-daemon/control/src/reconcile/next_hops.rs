use std::net::IpAddr;

use lb_common::abi::{
    limits::MAX_INTERFACES,
    next_hop::{InterfaceWord, NextHopWord},
};

use super::{ReconcileError, Reconciler, hops::Gateway};
use lb_model::next_hop::NextHop;
use lb_net::Bonds;

impl Reconciler {
    /// Says where a backend's packets leave, or that nobody knows: then it takes none, whatever its
    /// state. A new MAC of a gateway is one write for all backends behind it.
    ///
    /// The interface need not be one that has the program attached; then its driver must be able to
    /// send redirected frames without.
    ///
    /// # Errors
    /// The interface cannot be named or sent out of, or there is no room: nothing changed.
    pub fn set_next_hop(
        &mut self,
        backend: IpAddr,
        hop: Option<NextHop>,
    ) -> Result<(), ReconcileError> {
        let Some(hop) = hop else {
            if self.hops.remove(&backend) {
                self.point(&backend, 0);
            }
            return Ok(());
        };
        let interface = u16::try_from(hop.interface)
            .ok()
            .filter(|index| u32::from(*index) < MAX_INTERFACES)
            .ok_or(ReconcileError::InterfaceIndex(hop.interface))?;
        // Frames of an interface that is a VLAN leave by the one beneath it, with a tag that nobody else puts on.
        // Where the program runs on that interface itself, its frames come and go without.
        let by = hop.vlan.filter(|_| !self.settings.attached.contains(&hop.interface));
        let set = self.settings.vlans.get(&hop.interface).copied();
        let vlan = set.or(by.map(|vlan| vlan.id)).unwrap_or(0);
        let own = InterfaceWord::new(hop.interface_mac).with_vlan(vlan);
        let device = by.map_or(hop.interface, |vlan| vlan.beneath);
        self.let_out(hop.interface, own, device)?;
        let word = NextHopWord::new(hop.mac, interface);
        let gateway = Gateway { address: hop.gateway, interface: hop.interface };
        let before = self.hops.of_backend(&backend);
        let to = match self.hops.put(backend, gateway, word) {
            Err(_) if self.hops.is_leaving() => {
                self.maps.wait_for_readers()?;
                self.hops.release();
                self.hops.put(backend, gateway, word)?
            }
            to => to?,
        };
        if to.write {
            self.maps.set_next_hop(to.index, word);
        }
        // Before anybody is pointed there: without a tunnel a packet goes by it or not at all.
        self.hops.learn_way(backend, &hop);
        self.write_way(&backend);
        if to.index != before {
            self.point(&backend, to.index);
        }
        Ok(())
    }

    /// Says which interfaces are ports of which bonds: what comes by one has come by its bond. Others are of none,
    /// whatever an earlier daemon knew. A port whose index is beyond 65535 is left out.
    pub fn set_bonds(&self, bonds: &Bonds) {
        self.maps.set_bonds(bonds);
    }

    fn let_out(
        &mut self,
        interface: u32,
        word: InterfaceWord,
        device: u32,
    ) -> Result<(), ReconcileError> {
        // The kernel forgets a device that leaves, and it may come back as it was.
        if self.hops.is_new_interface(interface, word) || !self.maps.is_device(interface)? {
            self.maps.add_interface(interface, word, device)?;
            self.hops.learn_interface(interface, word);
        }
        Ok(())
    }

    /// Points a backend's host and members at a next-hop word. Who cannot be reached any more takes
    /// his capacity along first, who can be brings it last.
    fn point(&mut self, backend: &IpAddr, index: u32) {
        let places = self.places.of_backend(backend).to_vec();
        if index == 0 {
            places.iter().for_each(|place| self.relimit(place.group));
        } else {
            self.write_backend_state(backend);
        }
        for place in &places {
            if let Some(word) = self.maps.member(place.word) {
                self.maps.set_member(place.word, word.with_next_hop(index as u16));
                self.repoint(place.group, place.rank);
            }
        }
        if index == 0 {
            self.write_backend_state(backend);
        } else {
            places.iter().for_each(|place| self.relimit(place.group));
        }
    }

    fn write_way(&self, address: &IpAddr) {
        let Some(planned) = self.backends.get(address) else { return };
        let Some(mut backend) = self.maps.backend(planned.id.index) else { return };
        let before = backend;
        backend.mtu = self.mtu_of(address, planned.mtu, None);
        backend.on_link = self.hops.on_link(address).unwrap_or(backend.on_link);
        if backend != before {
            self.maps.set_backend_mtu(planned.id.index, &backend);
        }
    }
}

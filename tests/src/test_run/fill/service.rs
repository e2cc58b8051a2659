//! Services, and the index that packets find them by.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use lb_common::{
    abi::{
        arrays::Array,
        service::{Service, ServiceKey},
    },
    service_index::{self, HEAD, IndexEntry, IndexHead, area_bits, area_start, area_words},
};
use lb_maps::{Arrays, MappingMut};

/// Port 80 of an address, TCP and UDP, as the service with an index.
pub(super) fn both(address: IpAddr, index: u32, pool: u32, flags: u32) -> [Service; 2] {
    [6, 17].map(|protocol| {
        let key = ServiceKey::new(address, 80, protocol);
        Service { key, index, pool, flags }
    })
}

/// Publishes services, and no others, with as large an index as the daemon would make.
pub(super) fn publish(arrays: &Arrays<MappingMut>, services: &[Service]) -> Result<()> {
    let keys = services.len() as u32;
    let head = IndexHead::new(area_start(keys, false), area_bits(keys), 0);
    let mut words = vec![0; area_words(head.bits()) as usize];
    for (record, service) in (1..).zip(services) {
        arrays.view(Array::Services).set(record, service);
        let tag = service_index::tag(&service.key, head.seed());
        let first = (head.first(tag) - head.start()) as usize;
        let free = words[first..].iter().position(|word| *word == 0).context("no entry is free")?;
        words[first + free] = IndexEntry::new(tag, record).0;
    }
    for (at, word) in (head.start()..).zip(words) {
        arrays.view(Array::ServiceIndex).set(at, &word);
    }
    arrays.view(Array::ServiceIndex).set(HEAD, &head.0);
    Ok(())
}

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

/// What counts as one source of connections: an IPv4 address, or an IPv6 /64, in which a host chooses the lower bits
/// itself.
pub fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 => v4,
    }
}

/// A limit of something in total and for each source, so that one source cannot use up all of it. Clones share the
/// counts.
#[derive(Debug)]
pub struct Quota<K>(Arc<QuotaInner<K>>);

#[derive(Debug)]
struct QuotaInner<K> {
    limit: usize,
    limit_of_one: usize,
    usage: Mutex<QuotaUsage<K>>,
}

#[derive(Debug)]
struct QuotaUsage<K> {
    total: usize,
    by_source: HashMap<K, usize>,
}

/// One unit of a quota, returned on drop.
#[derive(Debug)]
pub struct Lease<K: Eq + Hash> {
    quota: Quota<K>,
    source: K,
}

/// The limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaExceeded {
    /// Of all sources.
    All(usize),
    /// Of this source.
    OfOne(usize),
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(limit) => write!(f, "{limit} of all clients, which is the limit"),
            Self::OfOne(limit) => write!(f, "{limit} of this client, which is the limit"),
        }
    }
}

impl<K> Clone for Quota<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Eq + Hash + Clone> Quota<K> {
    pub fn new(limit: usize, limit_of_one: usize) -> Self {
        let usage = Mutex::new(QuotaUsage { total: 0, by_source: HashMap::new() });
        Self(Arc::new(QuotaInner { limit, limit_of_one, usage }))
    }

    /// Takes one unit for a source.
    pub fn take(&self, source: K) -> Result<Lease<K>, QuotaExceeded> {
        let mut usage = self.0.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = usage.by_source.get(&source).copied().unwrap_or(0);
        if of_one >= self.0.limit_of_one {
            return Err(QuotaExceeded::OfOne(self.0.limit_of_one));
        }
        if usage.total >= self.0.limit {
            return Err(QuotaExceeded::All(self.0.limit));
        }
        usage.total += 1;
        usage.by_source.insert(source.clone(), of_one + 1);
        Ok(Lease { quota: self.clone(), source })
    }

    #[cfg(test)]
    pub(crate) fn sources(&self) -> usize {
        self.0.usage.lock().unwrap().by_source.len()
    }
}

impl<K: Eq + Hash> Drop for Lease<K> {
    fn drop(&mut self) {
        let mut usage = self.quota.0.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.total -= 1;
        match usage.by_source.get_mut(&self.source) {
            Some(number) if *number > 1 => *number -= 1,
            _ => drop(usage.by_source.remove(&self.source)),
        }
    }
}

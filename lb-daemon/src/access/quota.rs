use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

/// How many of something there may be at a time: in all, and of one source, so that one cannot keep the
/// others out. Clones count together.
#[derive(Debug)]
pub(crate) struct Quota<K>(Arc<Inner<K>>);

#[derive(Debug)]
struct Inner<K> {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    by_source: HashMap<K, usize>,
}

/// One of them, which is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Lease<K: Eq + Hash> {
    quota: Quota<K>,
    source: K,
}

/// There are as many as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// So many of all sources.
    All(usize),
    /// So many of this source.
    OfOne(usize),
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(most) => write!(f, "{most} of all clients, which is the limit"),
            Self::OfOne(most) => write!(f, "{most} of this client, which is the limit"),
        }
    }
}

impl<K> Clone for Quota<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Eq + Hash + Clone> Quota<K> {
    /// So many in all, and so many of one source.
    pub(crate) fn new(most: usize, most_of_one: usize) -> Self {
        let taken = Mutex::new(Taken { all: 0, by_source: HashMap::new() });
        Self(Arc::new(Inner { most, most_of_one, taken }))
    }

    /// One more of a source.
    ///
    /// # Errors
    /// There are as many as there may be.
    pub(crate) fn take(&self, source: K) -> Result<Lease<K>, Exceeded> {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = taken.by_source.get(&source).copied().unwrap_or(0);
        if of_one >= self.0.most_of_one {
            return Err(Exceeded::OfOne(self.0.most_of_one));
        }
        if taken.all >= self.0.most {
            return Err(Exceeded::All(self.0.most));
        }
        taken.all += 1;
        taken.by_source.insert(source.clone(), of_one + 1);
        Ok(Lease { quota: self.clone(), source })
    }

    #[cfg(test)]
    pub(crate) fn sources(&self) -> usize {
        self.0.taken.lock().unwrap().by_source.len()
    }
}

impl<K: Eq + Hash> Drop for Lease<K> {
    fn drop(&mut self) {
        let mut taken = self.quota.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        match taken.by_source.get_mut(&self.source) {
            Some(number) if *number > 1 => *number -= 1,
            _ => drop(taken.by_source.remove(&self.source)),
        }
    }
}

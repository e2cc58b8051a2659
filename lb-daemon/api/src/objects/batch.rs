//! Calls about many backends at once: one generation has all of the change, or none.

use std::collections::{BTreeMap, HashMap, HashSet};

use spillway_proto::v1;

use super::{
    Id, Needs, Object, ObjectChange, ObjectRefused, Objects, Options, Place, Sender, Sent, Update,
    check_etag, mask,
    object::{answered, forget_empty_groups, users_of_last},
};

use lb_base::Quoted;

/// Most backends of a call.
const MOST: usize = 10_000;

type BatchResult = Result<(Vec<v1::Backend>, Option<v1::ApplyResult>), ObjectRefused>;

impl Objects {
    pub(super) async fn batch_create(
        &self,
        backends: Vec<v1::Backend>,
        sender: Sender,
        options: Options,
    ) -> BatchResult {
        let batch = Batch::new(backends)?;
        let edit = |configuration: &mut v1::Configuration, daemon| {
            sender.check_schema(daemon, false)?;
            batch.put(configuration, |_, sent| Ok(sent.object.clone()))
        };
        let same = |before: &v1::Configuration, after: &v1::Configuration| {
            let (old, new) = (Index::new(before, &batch), Index::new(after, &batch));
            let differs = |id: &&Id| old.get(id).is_some() && old.get(id) != new.get(id);
            match batch.ids().find(differs) {
                Some(id) => Err(ObjectRefused::Exists(id.clone())),
                None => Ok(()),
            }
        };
        let change = batch.change("creation", &options);
        let (result, after) = self.apply(&change, edit, ObjectRefused::Invalid, same).await?;
        Ok((batch.answer(&after), Some(result)))
    }

    pub(super) async fn batch_update(
        &self,
        backends: Vec<v1::Backend>,
        update: Update<'_>,
        sender: Sender,
        options: Options,
    ) -> BatchResult {
        let batch = Batch::new(backends)?;
        let edit = |configuration: &mut v1::Configuration, daemon| {
            let mut replaces = false;
            for sent in &batch.0 {
                replaces |= mask::replaces(&sent.object, update.mask)?;
            }
            sender.check_schema(daemon, replaces)?;
            batch.put(configuration, |old, sent| update.of(old, sent))
        };
        let change = batch.change("update", &options);
        let judge = |_: &_, _: &_| Ok(());
        let (result, after) = self.apply(&change, edit, ObjectRefused::Invalid, judge).await?;
        Ok((batch.answer(&after), Some(result)))
    }

    pub(super) async fn batch_delete(
        &self,
        backends: Vec<v1::Backend>,
        allow_missing: bool,
        options: Options,
    ) -> Result<Option<v1::ApplyResult>, ObjectRefused> {
        let batch = Batch::new(backends)?;
        let edit = |configuration: &mut v1::Configuration, _| {
            batch.remove(configuration, allow_missing)?;
            Ok(Vec::new())
        };
        let change = batch.change("deletion", &options);
        let judge = |_: &_, _: &_| Ok(());
        let (result, _) = self.apply(&change, edit, ObjectRefused::AllNeeded, judge).await?;
        Ok(Some(result))
    }
}

/// The backends of a request.
struct Batch(Vec<Sent<v1::Backend>>);

impl Batch {
    /// # Errors
    /// There are none or too many, one does not say which one it is, or one is there twice.
    fn new(backends: Vec<v1::Backend>) -> Result<Self, ObjectRefused> {
        match backends.len() {
            0 => return Err(ObjectRefused::wrong("backends", "must be set")),
            1..=MOST => {}
            count => {
                let cause = format!("has {count} entries; at most {MOST} are allowed");
                return Err(ObjectRefused::wrong("backends", cause));
            }
        }
        let mut first = HashMap::new();
        let mut all = Vec::with_capacity(backends.len());
        for (at, backend) in backends.into_iter().enumerate() {
            let sent = Sent::new(Some(backend), &format!("backends[{at}]"))?;
            if let Some(first) = first.insert((sent.id.pool.clone(), sent.id.name.clone()), at) {
                let cause = format!("is the same backend as backends[{first}]");
                return Err(ObjectRefused::wrong(format!("backends[{at}]"), cause));
            }
            all.push(sent);
        }
        Ok(Self(all))
    }

    fn ids(&self) -> impl Iterator<Item = &Id> {
        self.0.iter().map(|sent| &sent.id)
    }

    fn change<'a>(&'a self, verb: &str, options: &'a Options) -> ObjectChange<'a> {
        let first = self.0.first().and_then(|sent| sent.id.pool.as_deref());
        let (needs, whose) = match self.ids().all(|id| id.pool.as_deref() == first) {
            true => (Needs::Pool(first), format!(" of pool {}", Quoted(first.unwrap_or_default()))),
            false => (Needs::All, String::new()),
        };
        let request = match &*self.0 {
            [one] => format!("{verb} of {}", one.id),
            all => format!("{verb} of {} backends{whose}", all.len()),
        };
        ObjectChange { request, kind: v1::Backend::KIND, needs, options }
    }

    /// Replaces or adds each backend by what `make` makes of the one in force and the one that was sent.
    fn put(
        &self,
        configuration: &mut v1::Configuration,
        make: impl Fn(Option<&v1::Backend>, &Sent<v1::Backend>) -> Result<v1::Backend, ObjectRefused>,
    ) -> Result<Vec<Place>, ObjectRefused> {
        let mut places = places(configuration, self);
        let mut paths = Vec::with_capacity(self.0.len());
        for (at, sent) in self.0.iter().enumerate() {
            let pool = sent.id.pool.as_deref().unwrap_or_default();
            let (pool_at, members) =
                places.get_mut(pool).ok_or_else(|| ObjectRefused::Missing(sent.id.outer()))?;
            let list = &mut configuration.pools[*pool_at].backends;
            let next = list.len();
            let place = *members.entry(sent.id.name.clone()).or_insert(next);
            let backend = make(list.get(place), sent)?;
            match list.get_mut(place) {
                Some(old) => *old = backend,
                None => list.push(backend),
            }
            let path = vec![(v1::Pool::LIST, *pool_at), (v1::Backend::LIST, place)];
            paths.push(Place { path, field: format!("backends[{at}]") });
        }
        Ok(paths)
    }

    fn remove(
        &self,
        configuration: &mut v1::Configuration,
        allow_missing: bool,
    ) -> Result<(), ObjectRefused> {
        let places = places(configuration, self);
        let mut removed: BTreeMap<usize, BTreeMap<usize, &Id>> = BTreeMap::new();
        for Sent { id, etag, .. } in &self.0 {
            let pool = places.get(id.pool.as_deref().unwrap_or_default());
            let place = pool.and_then(|(pool, members)| Some((*pool, *members.get(&id.name)?)));
            match place {
                Some((pool, place)) => {
                    check_etag(&configuration.pools[pool].backends[place], id, etag)?;
                    removed.entry(pool).or_default().insert(place, id);
                }
                None if allow_missing => {}
                None if pool.is_none() => return Err(ObjectRefused::Missing(id.outer())),
                None => return Err(ObjectRefused::Missing(id.clone())),
            }
        }
        for (pool_at, gone) in removed {
            let pool = &mut configuration.pools[pool_at];
            let kept = |at: usize| !gone.contains_key(&at);
            let members = pool.backends.iter().enumerate();
            let left: HashSet<_> =
                members.filter(|(at, _)| kept(*at)).map(|(_, it)| &*it.region).collect();
            for (at, id) in &gone {
                let region = &*pool.backends[*at].region;
                if left.contains(region) {
                    continue;
                }
                match users_of_last(pool, region) {
                    users if users.is_empty() => {}
                    users => return Err(ObjectRefused::InUse((*id).clone(), users)),
                }
            }
            let mut at = 0..;
            pool.backends.retain(|_| at.next().is_some_and(&kept));
            forget_empty_groups(pool);
        }
        Ok(())
    }

    /// The backends as they are in a configuration.
    fn answer(&self, configuration: &v1::Configuration) -> Vec<v1::Backend> {
        let index = Index::new(configuration, self);
        self.ids().filter_map(|id| Some(answered(index.get(id)?, id))).collect()
    }
}

/// Where the pools of a batch and their backends are, by names and addresses.
fn places(
    configuration: &v1::Configuration,
    batch: &Batch,
) -> HashMap<String, (usize, HashMap<String, usize>)> {
    let named: HashSet<_> = batch.ids().filter_map(|id| id.pool.as_deref()).collect();
    let pools = configuration.pools.iter().enumerate();
    let pools = pools.filter(|(_, pool)| named.contains(&*pool.name));
    pools
        .map(|(at, pool)| {
            let members = pool.backends.iter().enumerate();
            let members = members.map(|(place, it)| (it.address.clone(), place)).collect();
            (pool.name.clone(), (at, members))
        })
        .collect()
}

/// The backends of a batch's pools by pool and address, of which there may be many.
struct Index<'a>(HashMap<(&'a str, &'a str), &'a v1::Backend>);

impl<'a> Index<'a> {
    fn new(configuration: &'a v1::Configuration, batch: &Batch) -> Self {
        let named: HashSet<_> = batch.ids().filter_map(|id| id.pool.as_deref()).collect();
        let pools = configuration.pools.iter().filter(|pool| named.contains(&*pool.name));
        let backends =
            pools.flat_map(|pool| pool.backends.iter().map(|it| ((&*pool.name, &*it.address), it)));
        Self(backends.collect())
    }

    fn get(&self, id: &Id) -> Option<&'a v1::Backend> {
        self.0.get(&(id.pool.as_deref()?, &*id.name)).copied()
    }
}

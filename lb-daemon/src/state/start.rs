use std::time::Instant;

use tokio::sync::broadcast;

use super::{
    Demand, EVENTS, HomeKeeper, Members, Narrow, Overflows, PacketPath, Sensors, Settings, State,
};
use crate::{
    command::Refusal,
    homes::Absences,
    ids::{Ids, Named, Rests},
    plan,
    store::Store,
};

impl<P: PacketPath> State<P> {
    /// Takes up where the last daemon stopped: the packet path is brought to the generation in the
    /// store, and the states that are pinned there stand until the first check of each backend. A
    /// store without generation leaves the packet path as it is until the first apply.
    ///
    /// # Errors
    /// The stored generation has no plan.
    pub fn start(
        settings: Settings,
        store: Store,
        path: P,
        sensors: Sensors,
    ) -> Result<Self, Refusal> {
        let named = path.named();
        let ids = match store.generation() {
            Some(generation) => generation.ids.clone(),
            None => Ids::reserving(&named),
        };
        let (events, _) = broadcast::channel(EVENTS);
        let mut state = Self {
            settings,
            store,
            path,
            sensors,
            ids,
            rests: Rests::default(),
            plan: None,
            behind: None,
            members: Members::default(),
            hops: Default::default(),
            demand: Demand::default(),
            offers: None,
            overflows: Overflows::default(),
            homes: HomeKeeper::default(),
            narrow: Narrow::default(),
            events,
            started: Instant::now(),
        };
        if state.generation() == 0 {
            if named != Named::default() {
                tracing::warn!(
                    "the store is empty, but the packet path serves what an earlier daemon left: \
                     it stands until the first apply"
                );
            }
            return Ok(state);
        }
        let configuration = state.configuration().clone();
        let own = state.settings.region.as_ref();
        state.homes = HomeKeeper::found(&configuration, own, &state.ids, &state.path.homes());
        state.plan = Some(state.plan_of(&configuration, &state.ids, &state.homes.absences)?);
        tracing::info!(generation = state.generation(), "taking up the stored configuration");
        state.write_directory();
        if let Err(error) = state.bring_along() {
            tracing::error!(error = crate::causes::of(&error), "the packet path is behind");
        }
        state.configured(&configuration);
        Ok(state)
    }

    pub(super) fn plan_of(
        &self,
        configuration: &crate::model::Configuration,
        ids: &Ids,
        absences: &Absences,
    ) -> Result<plan::Plan, plan::PlanError> {
        let Settings { region, sources, .. } = &self.settings;
        let (region, hash_key, out) = (region.as_ref(), self.store.hash_key(), absences.out());
        plan::build(configuration, region, ids, hash_key, *sources, &out)
    }
}

//! What this balancer writes to etcd of the shares: steps of epochs, and which start of it this is.

use std::{sync::Arc, time::Duration};

use lb_base::conditions::FLEET_SHARES;
use lb_fleet::documents::FleetMember;
use lb_sharing::epoch::{EpochStep, Forgotten};
use tokio::{sync::watch, time::sleep};

use super::{
    Member,
    sharing::{EpochRequest, PROGRAM_VERSION},
    versions,
};

/// Before something is tried again that etcd did not take.
const RETRY: Duration = Duration::from_millis(500);

/// Writes the steps that the epochs need of this balancer.
pub(super) async fn write_steps(
    member: Arc<Member>,
    mut requests: watch::Receiver<Option<EpochRequest>>,
) {
    while requests.changed().await.is_ok() {
        let Some(request) = requests.borrow_and_update().clone() else {
            // Another balancer has written what this one could not, so nothing is left to do.
            member.conditions().end(&FLEET_SHARES);
            continue;
        };
        let fleet = member.etcd().fleet.borrow().clone();
        let Some((fleet, snapshot)) = fleet.zip(member.view().snapshot) else { continue };
        // It was decided on another state than the one whose revisions would be compared.
        let is_same = snapshot.membership() == request.membership
            && snapshot.epoch.as_deref() == request.epoch.as_ref();
        if !is_same || !request.is_current() || member.check_lineage(&snapshot).is_err() {
            continue;
        }
        match fleet.write_epoch_step(&request.step, &snapshot).await {
            // If it was not written, another balancer was first: what that one wrote comes by the view.
            Ok(is_written) => {
                member.conditions().end(&FLEET_SHARES);
                if is_written {
                    tracing::info!("shares: {}", describe(&request.step));
                }
            }
            Err(error) => {
                member.conditions().begin(&FLEET_SHARES, &error.to_string());
                sleep(RETRY).await;
            }
        }
    }
}

/// Keeps this balancer's key in etcd at its program, its incarnation, and the epoch in which it gave up what it owned.
pub(super) async fn record_incarnation(member: Arc<Member>) {
    let (mut status, mut view) = (member.sharing().status(), member.etcd().view.clone());
    loop {
        let written = write_if_needed(&member).await;
        // Also after a success: two balancers of one name would write for ever.
        if written != Ok(false) {
            sleep(RETRY).await;
        }
        if written.is_err() {
            continue;
        }
        tokio::select! {
            changed = status.changed() => if changed.is_err() { return },
            changed = view.changed() => if changed.is_err() { return },
        }
    }
}

/// Returns whether something was written.
async fn write_if_needed(member: &Member) -> Result<bool, ()> {
    let (incarnation, epoch) = {
        let status = member.sharing().status();
        let status = status.borrow();
        (status.incarnation, status.epoch)
    };
    let fleet = member.etcd().fleet.borrow().clone();
    let Some((fleet, snapshot)) = fleet.zip(member.view().snapshot) else { return Ok(false) };
    let name = &member.settings().name;
    let Some(there) = snapshot.members.get(name) else { return Ok(false) };
    let was_forgotten = snapshot.epoch.as_ref().is_some_and(|it| it.forgotten.contains(name));
    let before = &there.document.body;
    let next = FleetMember {
        incarnation: incarnation.max(before.incarnation),
        epoch: if was_forgotten { epoch.max(before.epoch) } else { before.epoch },
        address: member.settings().address,
        region: member.settings().region.clone(),
        version: PROGRAM_VERSION.into(),
        schema: versions::own_schema(),
    };
    if before.incarnation > incarnation {
        // The fleet knows a later start: the ledger is that of an earlier one.
        member.sharing().set_ledger_is_old();
    }
    if next == *before || member.check_lineage(&snapshot).is_err() {
        return Ok(false);
    }
    let written = fleet.write_member(&there.document.replaced_by(next), there.mod_revision).await;
    written.map(|_| true).map_err(|error| tracing::debug!("members/{name} is not written: {error}"))
}

fn describe(step: &EpochStep) -> String {
    let names = |forgotten: &Forgotten| {
        let names: Vec<_> = forgotten.names().iter().map(ToString::to_string).collect();
        names.join(", ")
    };
    match step {
        EpochStep::Open { number, forgotten } => format!(
            "epoch {number} is opened: what {} owned is shared among the others",
            names(forgotten)
        ),
        EpochStep::Forget(forgotten) => {
            format!("what {} owned is shared among the others too", names(forgotten))
        }
        EpochStep::Contribute(_) => "this balancer has said what it owns".into(),
        EpochStep::Close => "all have said what they own: the epoch is closed".into(),
    }
}

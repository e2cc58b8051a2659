//! The calls about the history: what it has, what is different between two generations, and the way back to one.

use spillway_proto::v1;
use tonic::Status;

use super::{
    access::{caller, may_change, working},
    convert::{self, OrStatus},
    service::{Api, reason},
};
use lb_base::error_chain;
use lb_control::command::Apply;
use lb_store::Revision;

impl Api {
    pub(super) async fn generations(&self) -> Result<v1::ListGenerationsResponse, Status> {
        let _at_work = working().await;
        Ok(convert::generations(&self.changes.generations().await.or_status()?))
    }

    pub(super) async fn difference(
        &self,
        request: v1::DiffGenerationsRequest,
    ) -> Result<v1::DiffGenerationsResponse, Status> {
        let v1::DiffGenerationsRequest { from, to } = request;
        let _at_work = working().await;
        let difference = self.commands.difference(from, to).await.or_status()?.or_status()?;
        Ok(convert::difference(&difference))
    }

    /// Applies the configuration of an earlier generation. A generation never changes, so it may be read before the apply
    /// has its turn.
    pub(super) async fn roll_back(
        &self,
        request: v1::RollbackRequest,
    ) -> Result<v1::RollbackResponse, Status> {
        let v1::RollbackRequest {
            generation,
            expected_generation,
            validate_only: dry_run,
            any_schema,
            force,
            ..
        } = request;
        may_change(dry_run)?;
        let (reason, actor) = (reason(&request.reason)?, caller().actor);
        let request = format!("rollback to generation {generation}");
        let _at_work = working().await;
        let read = self.changes.generation(generation).await.or_status()?;
        let configuration = read.inspect_err(|refusal| {
            if !dry_run {
                self.audit.refused(&actor, &request, &error_chain::message(refusal));
            }
        });
        let apply = Apply {
            configuration: (*configuration.or_status()?).clone().into(),
            dry_run,
            expected_generation,
            schema: Revision::CURRENT,
            any_schema,
            actor,
            request,
            reason,
            rollback_to: Some(generation),
            force,
            ..Apply::default()
        };
        let applied = self.audit.apply(&self.changes, apply).await.or_status()?.or_status()?;
        let applied = self.changes.with_balancers(applied, dry_run).await;
        Ok(v1::RollbackResponse { result: Some(convert::applied(&applied)) })
    }
}

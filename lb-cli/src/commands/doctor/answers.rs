//! What the daemons of this host answer. A daemon that does not answer is a fact.

use std::time::Duration;

use lb_base::receiver_socket::Request;
use lb_doctor::{
    Answers, DaemonState, InstalledComponent, PinOwner, ReceiverState, VipProbe, VipProbes,
};
use lb_maps::Component;
use spillway_proto::v1::{ProbeVipsRequest, RegionsRequest, probe_vips_response::Event};
use tokio::time::timeout;

use crate::{
    arguments::Options,
    client::{DaemonClient, ReceiverClient},
    failure::Failure,
};

/// Longest wait for a receiver's answer.
const RECEIVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest wait between two results, a few times as long as a probe that searches for the MTU.
const RESULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Asks the daemons of the components, and has the balancer's probe all backends with packets of up to `probe_size`
/// bytes.
pub(super) async fn ask(
    options: &Options,
    components: &[InstalledComponent],
    probe_size: Option<u32>,
) -> Answers {
    let installed = |component| components.iter().find(|it| it.component == component);
    let mut answers = Answers::default();
    if installed(Component::Balancer).is_some() {
        let daemon = ask_daemon(options).await;
        let daemon = daemon.unwrap_or_else(|failure| DaemonState::Silent(failure.message));
        if let (DaemonState::Answers { .. }, Some(size)) = (&daemon, probe_size) {
            let probes = run_probes(options, size).await;
            answers.vip_probes =
                Some(probes.unwrap_or_else(|failure| VipProbes::NotRun(failure.message)));
        }
        answers.daemon = Some(daemon);
    }
    if let Some(owner) = installed(Component::Receiver).and_then(|it| it.owner.as_ref()) {
        answers.receiver = Some(ask_receiver(owner).await);
    }
    answers
}

async fn ask_daemon(options: &Options) -> Result<DaemonState, Failure> {
    let mut daemon = DaemonClient::connect(options).await?;
    let status = daemon.status().await?;
    // An unreadable stored configuration fails here; the status reports it.
    let exported = daemon.export().await.ok();
    // This fails if the daemon cannot read its maps; it answers nevertheless.
    let regions = daemon.regions(RegionsRequest::default()).await.ok().map(|it| it.regions);
    Ok(DaemonState::new(status, exported.as_ref(), regions.as_deref()))
}

/// Asks the receiver that holds the pins.
async fn ask_receiver(owner: &PinOwner) -> ReceiverState {
    let receiver = ReceiverClient::from_process(Some(owner.pid), &owner.command);
    match receiver.ask(Request::Status, RECEIVER_TIMEOUT).await {
        Ok(answer) => ReceiverState::Answers(answer),
        Err(failure) => ReceiverState::Silent(failure.message, failure.hint.unwrap_or_default()),
    }
}

async fn run_probes(options: &Options, packet_size: u32) -> Result<VipProbes, Failure> {
    let mut daemon = DaemonClient::connect(options).await?;
    let request = ProbeVipsRequest { packet_size, ..ProbeVipsRequest::default() };
    let mut events = daemon.probe_vips(request).await?;
    let mut probes = Vec::new();
    loop {
        let message = timeout(RESULT_TIMEOUT, events.message()).await;
        let message =
            message.map_err(|_| daemon.lost("the daemon stopped sending probe results"))?;
        let message = message.map_err(|status| daemon.failure(&status))?;
        let message = message.ok_or_else(|| daemon.lost("the daemon ended the probe"))?;
        match message.event {
            Some(Event::Way(probe)) => probes.extend(VipProbe::from_message(&probe)),
            Some(Event::Summary(summary)) => return Ok(VipProbes::new(probes, summary.left_out)),
            // An event that only a newer daemon knows.
            None => {}
        }
    }
}

//! What can be wrong with the settings of a balancer that wants to join, seen before anything changes.

use std::net::TcpListener;

use lb_base::error_chain;
use lb_fleet::{EtcdError, Fleet, FleetSettings, reader::Snapshot, settings::EtcdTls};
use lb_model::Name;

use super::{MembershipError, member::tls_files, sharing};
use lb_secure::tls::TlsError;

/// Whether the files can be used, the certificate is this balancer's, and its address is one of this host's.
///
/// # Errors
/// The sentence says what is wrong.
pub(super) fn check_settings(settings: &FleetSettings) -> Result<(), MembershipError> {
    if let Some(tls) = &settings.tls {
        check_certificate(&settings.name, tls)?;
    }
    // Free until the member listens there.
    TcpListener::bind(settings.address).map(drop).map_err(|error| {
        let cause = error_chain::message(&error);
        MembershipError::Settings(format!(
            "{}: this host cannot listen for the other balancers there: {cause}",
            settings.address
        ))
    })
}

fn check_certificate(name: &Name, tls: &EtcdTls) -> Result<(), MembershipError> {
    let wrong = |error: &TlsError| MembershipError::Settings(error_chain::message(error));
    let files = tls_files(tls);
    let contents = files.read().map_err(|error| wrong(&error))?;
    files.client(&contents).map_err(|error| wrong(&error))?;
    let chain = files.verify_own(&contents).map_err(|error| {
        let (cause, authorities) = (error_chain::message(&error), tls.authorities.display());
        MembershipError::Settings(format!("{cause}, by the authorities in {authorities}"))
    })?;
    let names = sharing::balancers(Some(&chain));
    if names.contains(name) {
        return Ok(());
    }
    let (path, owner) = (tls.certificate.display(), sharing::owner(&names));
    let text = format!("{path}: the certificate is {owner}, but this balancer is {name}");
    Err(MembershipError::Settings(text))
}

/// Whether etcd lets it show that it is alive. A right for the other keys of its own is needed to join at all.
///
/// # Errors
/// The sentence names the key. `Ok(Err)`: etcd does not answer, and why.
pub(super) async fn check_rights(fleet: &Fleet) -> Result<Result<(), String>, MembershipError> {
    match fleet.check_alive_right().await {
        Err(EtcdError::Denied(cause)) => {
            let key = fleet.keys().alive(fleet.name());
            let text = format!("etcd does not let this balancer write {key}: {cause}");
            Err(MembershipError::Settings(text))
        }
        checked => Ok(checked.map_err(|error| error.to_string())),
    }
}

/// Whether the others can reach its address, as far as that can be told.
///
/// # Errors
/// The sentence says why they cannot.
pub(super) fn check_address(
    settings: &FleetSettings,
    snapshot: &Snapshot,
) -> Result<(), MembershipError> {
    let address = settings.address;
    let others = snapshot.members.iter().filter(|(name, _)| **name != settings.name);
    for (name, member) in others {
        let theirs = member.document.body.address;
        let cause = if theirs == address {
            format!("is the address of {name}")
        } else if address.ip().is_loopback() && !theirs.ip().is_loopback() {
            format!("{name} cannot reach this host there")
        } else {
            continue;
        };
        return Err(MembershipError::Settings(format!("{address}: {cause}")));
    }
    Ok(())
}

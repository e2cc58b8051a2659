//! What can be wrong with the settings of a balancer that wants to join, seen before anything changes.

use std::net::TcpListener;

use lb_base::error_chain;
use lb_fleet::{FleetSettings, reader::Snapshot};

use super::{MembershipError, sharing};
use crate::tls::{CertificateFiles, TlsFiles};

/// Whether the files can be used, the certificate is this balancer's, and its address is one of this host's.
///
/// # Errors
/// The sentence says what is wrong.
pub(super) fn check_settings(settings: &FleetSettings) -> Result<(), MembershipError> {
    if let Some(tls) = &settings.tls {
        let own = CertificateFiles { certificate: tls.certificate.clone(), key: tls.key.clone() };
        let files = TlsFiles { own, authorities: tls.authorities.clone() };
        let wrong = |error| MembershipError::Settings(error_chain::message(&error));
        let contents = files.read().map_err(wrong)?;
        files.client(&contents).map_err(wrong)?;
        files.verify_own(&contents).map_err(|error| {
            let (cause, authorities) = (error_chain::message(&error), tls.authorities.display());
            MembershipError::Settings(format!("{cause}, by the authorities in {authorities}"))
        })?;
        let chain = files.own.read().and_then(|own| files.own.parse(&own)).map_err(wrong)?.chain;
        let names = sharing::balancers(Some(&chain));
        if !names.contains(&settings.name) {
            let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
            let of = if names.is_empty() { "no balancer".to_owned() } else { names.join(" or ") };
            let (path, name) = (tls.certificate.display(), &settings.name);
            return Err(MembershipError::Settings(format!(
                "{path}: the certificate is of {of}, but this balancer is {name}"
            )));
        }
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

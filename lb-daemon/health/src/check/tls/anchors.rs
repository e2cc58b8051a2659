//! Trusted certificates as those that sign others. The library takes them whatever they say: expired ones, and those of
//! no CA.

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, TrustAnchor, UnixTime},
};
use x509_parser::{
    certificate::X509Certificate,
    parse_x509_certificate,
    x509::{X509Name, X509Version},
};

/// Trusted certificates that may sign others, at some time or never.
#[derive(Debug)]
pub(super) struct Anchors {
    all: Vec<Anchor>,
    valid: Mutex<Valid>,
}

#[derive(Debug)]
struct Anchor {
    der: CertificateDer<'static>,
    anchor: TrustAnchor<'static>,
    /// When it may sign others, in seconds since 1970. Empty: it is of no CA.
    times: Range<i64>,
}

/// Those that may sign others during a time.
#[derive(Debug)]
struct Valid {
    store: Arc<RootCertStore>,
    during: Range<i64>,
}

impl Anchors {
    /// Those of these certificates that can be read; a bundle may have some with unsupported algorithms.
    pub(super) fn new(certificates: &[CertificateDer<'static>]) -> Self {
        let none = Valid { store: Arc::new(RootCertStore::empty()), during: 0..0 };
        Self { all: certificates.iter().filter_map(Anchor::new).collect(), valid: Mutex::new(none) }
    }

    /// Whether none can be read.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those that may sign others at this time.
    pub(super) fn at(&self, now: UnixTime) -> Arc<RootCertStore> {
        let now = seconds(now);
        // No code panics while it holds the lock.
        let mut valid = self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        if !valid.during.contains(&now) {
            *valid = self.valid_at(now);
        }
        Arc::clone(&valid.store)
    }

    fn valid_at(&self, now: i64) -> Valid {
        let valid = self.all.iter().filter(|it| it.times.contains(&now));
        let roots = valid.map(|it| it.anchor.clone()).collect();
        let changes = || self.all.iter().flat_map(|it| [it.times.start, it.times.end]);
        let since = changes().filter(|time| *time <= now).max().unwrap_or(i64::MIN);
        let until = changes().filter(|time| *time > now).min().unwrap_or(i64::MAX);
        Valid { store: Arc::new(RootCertStore { roots }), during: since..until }
    }

    /// Those with this name, whether or not they may sign others.
    pub(super) fn named(&self, name: &X509Name<'_>) -> Vec<X509Certificate<'_>> {
        // An anchor's name is without the header of the sequence.
        let may_be = self.all.iter().filter(|it| name.as_raw().ends_with(&it.anchor.subject));
        let parsed = may_be.filter_map(|it| Some(parse_x509_certificate(&it.der).ok()?.1));
        parsed.filter(|it| it.subject() == name).collect()
    }
}

impl Anchor {
    fn new(der: &CertificateDer<'static>) -> Option<Self> {
        let anchor = webpki::anchor_from_trusted_cert(der).ok()?.to_owned();
        let (_, certificate) = parse_x509_certificate(der).ok()?;
        let validity = certificate.validity();
        let (begin, end) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        let times = if is_ca(&certificate) { begin..end.saturating_add(1) } else { 0..0 };
        Some(Self { der: der.clone(), anchor, times })
    }
}

/// Whether a certificate is that of a CA, as openssl decides it (`X509_check_ca`): old ones do not say so.
pub(super) fn is_ca(certificate: &X509Certificate<'_>) -> bool {
    let (Ok(usage), Ok(constraints)) = (certificate.key_usage(), certificate.basic_constraints())
    else {
        return false;
    };
    let signs = usage.map(|usage| usage.value.key_cert_sign());
    let is_old_root = || {
        certificate.version() == X509Version::V1 && certificate.issuer() == certificate.subject()
    };
    match (signs, constraints) {
        (Some(false), _) => false,
        (_, Some(constraints)) => constraints.value.ca,
        (Some(true), None) => true,
        (None, None) => is_old_root(),
    }
}

/// Seconds since 1970.
pub(super) fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    fn ca(from: i32, until: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    /// The same store is used until one becomes valid or expires.
    #[test]
    fn those_of_each_time_are_found() {
        // 2000-01-01, 2010-01-01 and 2020-01-01, by `date --date=… +%s`; the last second counts (RFC 5280, 4.1.2.5).
        let [y2000, y2010, y2020] = [946_684_800, 1_262_304_000, 1_577_836_800];
        let anchors = Anchors::new(&[ca(2000, 2020), ca(2010, 2020)]);
        let at = |seconds| anchors.at(UnixTime::since_unix_epoch(Duration::from_secs(seconds)));
        for (time, number) in [
            (y2000 - 1, 0),
            (y2000, 1),
            (y2010 - 1, 1),
            (y2010, 2),
            (y2020, 2),
            (y2020 + 1, 0),
            (y2020 * 10, 0),
            (y2010, 2),
            (0, 0),
        ] {
            assert_eq!(at(time).len(), number, "{time}");
            assert!(Arc::ptr_eq(&at(time), &at(time)), "{time}");
        }
        assert!(Arc::ptr_eq(&at(y2010), &at(y2020)));
    }
}

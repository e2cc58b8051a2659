//! When the certificates in force expire, as a condition in time to renew them and as metrics.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::{parse_x509_certificate, time::ASN1Time};

use super::TlsFiles;
use lb_base::conditions::{AUTHORITIES, CERTIFICATE, Conditions, HTTP_CERTIFICATE, Subject};

/// How long before its end a certificate should have been renewed. Of one that is valid for a shorter time it is the last
/// third.
const RENEW_BEFORE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// From when to when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub not_before: SystemTime,
    pub not_after: SystemTime,
}

/// What is known of the certificates in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validities {
    /// Of the daemon's certificate or an intermediate certificate beside it, whichever expires first.
    pub server: Option<Validity>,
    /// Of the authority of clients that expires last. Once it has, no client can connect.
    pub authority: Option<Validity>,
    /// As `server`, of the HTTP listener.
    pub http: Option<Validity>,
}

/// The certificates in force. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CertificateExpiry(Arc<Mutex<Validities>>);

impl Validity {
    /// `None` if the certificate cannot be read.
    fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = parse_x509_certificate(certificate).ok()?;
        let validity = certificate.validity();
        Some(Self { not_before: at(validity.not_before)?, not_after: at(validity.not_after)? })
    }

    /// What is wrong with it, if anything.
    fn judge(&self, now: SystemTime) -> Option<String> {
        let lifetime = self.not_after.duration_since(self.not_before).unwrap_or_default();
        let soon = RENEW_BEFORE.min(lifetime / 3);
        let end = prost_types::Timestamp::from(self.not_after);
        match self.not_after.duration_since(now) {
            Ok(left) if left < soon => Some(format!("expires at {end}")),
            Ok(_) => None,
            Err(_) => Some(format!("expired at {end}")),
        }
    }
}

impl Validities {
    pub(super) fn read(chain: &[CertificateDer<'_>], authorities: &[CertificateDer<'_>]) -> Self {
        let authority = authorities.iter().filter_map(Validity::of);
        let authority = authority.max_by_key(|validity| validity.not_after);
        Self { server: first_to_end(chain), authority, http: None }
    }

    /// Begins and ends the conditions that certificates of the API expire.
    fn report(&self, files: &TlsFiles, conditions: &Conditions, now: SystemTime) {
        report(&CERTIFICATE, &files.own.certificate, self.server, RENEW, conditions, now);
        let add = "without an authority no client can connect over TLS";
        report(&AUTHORITIES, &files.authorities, self.authority, add, conditions, now);
    }
}

/// Times before 1970 count as its begin.
fn at(time: ASN1Time) -> Option<SystemTime> {
    let seconds = u64::try_from(time.timestamp()).unwrap_or(0);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

const RENEW: &str = "clients do not accept an expired one";

/// Begins or ends the condition that a certificate which is shown to peers and to etcd expires.
pub fn report_fleet(
    subject: &Subject,
    path: &Path,
    validity: Option<Validity>,
    conditions: &Conditions,
) {
    let consequence = "etcd and the other balancers do not accept an expired one";
    report(subject, path, validity, consequence, conditions, SystemTime::now());
}

/// When a certificate of a PEM file expired, if one has.
pub fn expired(pem: &[u8]) -> Option<String> {
    let chain: Result<Vec<CertificateDer<'_>>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let not_after = first_to_end(&chain.ok()?)?.not_after;
    let is_over = not_after <= SystemTime::now();
    is_over.then(|| format!("expired at {}", prost_types::Timestamp::from(not_after)))
}

/// The validity of the certificate of a chain that expires first.
fn first_to_end(chain: &[CertificateDer<'_>]) -> Option<Validity> {
    chain.iter().filter_map(Validity::of).min_by_key(|validity| validity.not_after)
}

/// Begins or ends the condition that what is in a file expires.
fn report(
    subject: &Subject,
    path: &Path,
    validity: Option<Validity>,
    consequence: &str,
    conditions: &Conditions,
    now: SystemTime,
) {
    match validity.and_then(|validity| validity.judge(now)) {
        Some(cause) => {
            conditions.begin(subject, &format!("{}: {cause}; {consequence}", path.display()));
        }
        None => conditions.end(subject),
    }
}

impl CertificateExpiry {
    pub fn now(&self) -> Validities {
        *self.lock()
    }

    /// Takes those of the API, and keeps that of the HTTP listener.
    pub(super) fn set(&self, Validities { server, authority, .. }: Validities) {
        let mut now = self.lock();
        (now.server, now.authority) = (server, authority);
    }

    /// Takes that of the HTTP listener.
    pub fn set_http(&self, chain: &[CertificateDer<'_>]) {
        self.lock().http = first_to_end(chain);
    }

    /// As [`Self::report`], for the HTTP listener's certificate.
    pub fn report_http(&self, path: &Path, conditions: &Conditions) {
        let http = self.now().http;
        report(&HTTP_CERTIFICATE, path, http, RENEW, conditions, SystemTime::now());
    }

    /// Reports by the wall clock, which also decides whether a connection is accepted.
    pub(super) fn report(&self, files: &TlsFiles, conditions: &Conditions) {
        self.now().report(files, conditions, SystemTime::now());
    }

    fn lock(&self) -> MutexGuard<'_, Validities> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair};

    use super::*;
    use crate::tls::CertificateFiles;

    /// 2030-01-01T00:00:00Z, by `date --date=2030-01-01 +%s`.
    const NEW_YEAR: u64 = 1_893_456_000;

    fn day(number: i64) -> SystemTime {
        let since = NEW_YEAR.checked_add_signed(number * 86_400).unwrap();
        SystemTime::UNIX_EPOCH + Duration::from_secs(since)
    }

    /// Valid between two days, counted from the new year of 2030.
    fn certificate(
        from: i64,
        to: i64,
        change: fn(&mut CertificateParams),
    ) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["lb.example".into()]).unwrap();
        (params.not_before, params.not_after) = (day(from).into(), day(to).into());
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn the_validity_is_read_whatever_the_certificate_is_for() {
        let expected = Some(Validity { not_before: day(-10), not_after: day(90) });
        let kinds: [fn(&mut CertificateParams); 4] = [
            |_| {},
            |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth],
            |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained),
        ];
        for (number, kind) in kinds.into_iter().enumerate() {
            assert_eq!(Validity::of(&certificate(-10, 90, kind)), expected, "kind {number}");
        }
        // Years from 2050 are written in another form (RFC 5280, 4.1.2.5).
        let late = Validity::of(&certificate(0, 80 * 365, |_| {})).unwrap();
        assert_eq!(late.not_after, day(80 * 365));
        assert_eq!(Validity::of(&CertificateDer::from(vec![0x30, 0x03, 0x02, 0x01, 0x00])), None);
    }

    /// Made by `openssl x509 -req -signkey`, which writes version 1; the times are what `openssl x509 -dates` says.
    #[test]
    fn the_validity_of_version_1_is_read() {
        let pem = "-----BEGIN CERTIFICATE-----\n\
            MIIBGzCBwQIUD5L2lGn30QRQP/9TCLG/vMY8owIwCgYIKoZIzj0EAwIwDzENMAsG\n\
            A1UEAwwEbGItMTAgFw0yNjExMjgxNjUyMTZaGA8yMTI2MTEwNDE2NTIxNlowDzEN\n\
            MAsGA1UEAwwEbGItMTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNjfzkvhj+CB\n\
            k3ac40POaWpFt+JbjhylWgXmaihhAr0s2zc7OY5g7ymrQLGr6tDAkpT28TU5XTBw\n\
            mdKPxre0wf4wCgYIKoZIzj0EAwIDSQAwRgIhAJdlj/5X04w9/ZP47jSA9NH3/T6Y\n\
            FAz43B/g8MhLKgwZAiEA1QOOKGllyyAKteLzFYZxQDf46hbl0RsuhyOdaEg2NUA=\n\
            -----END CERTIFICATE-----\n";
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let expected = Validity { not_before: at(1_795_884_736), not_after: at(4_949_484_736) };
        assert_eq!(Validity::of(&certificate), Some(expected));
    }

    #[test]
    fn the_first_of_a_chain_and_the_last_of_the_authorities_count() {
        let [short, long] = [30, 300].map(|to| certificate(0, to, |_| {}));
        let read = Validities::read(&[long.clone(), short.clone()], &[long, short]);
        let ends = [read.server, read.authority].map(|validity| validity.unwrap().not_after);
        assert_eq!(ends, [day(30), day(300)]);
        assert_eq!(Validities::read(&[], &[]), Validities::default());
    }

    #[test]
    fn an_expired_file_says_since_when() {
        let pem = |from, to| {
            let mut params = CertificateParams::new(vec!["lb-1".into()]).unwrap();
            (params.not_before, params.not_after) = (day(from).into(), day(to).into());
            params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
        };
        let old = pem(-3654, -3653);
        assert_eq!(expired(old.as_bytes()).unwrap(), "expired at 2020-01-01T00:00:00Z");
        let both = pem(-3653, 36500) + &old;
        assert_eq!(expired(both.as_bytes()).unwrap(), "expired at 2020-01-01T00:00:00Z");
        assert_eq!(expired(pem(-3653, 36500).as_bytes()), None);
        assert_eq!(expired(b"nothing"), None);
    }

    #[test]
    fn a_condition_lasts_from_two_weeks_before_the_end_until_it_is_renewed() {
        let conditions = Conditions::default();
        let own = CertificateFiles { certificate: "/tls/lb.pem".into(), key: "/tls/lb.key".into() };
        let files = TlsFiles { own, authorities: "/tls/ca.pem".into() };
        let certificate = |not_after| Some(Validity { not_before: day(-90), not_after });
        let at = |validities: &Validities, now| {
            validities.report(&files, &conditions, now);
            let now = conditions.now().into_iter();
            now.map(|it| format!("{}: {}", it.subject, it.cause)).collect::<Vec<_>>()
        };
        let both = Validities {
            server: certificate(day(30)),
            authority: certificate(day(300)),
            http: None,
        };
        assert_eq!(at(&both, day(15)), [""; 0]);
        let soon = at(&both, day(17));
        let renew = "clients do not accept an expired one";
        let expected = "TLS certificate: /tls/lb.pem: expires at 2030-01-31T00:00:00Z";
        assert_eq!(soon, [format!("{expected}; {renew}")]);
        let expired = at(&both, day(31));
        let expected = "TLS certificate: /tls/lb.pem: expired at 2030-01-31T00:00:00Z";
        assert_eq!(expired, [format!("{expected}; {renew}")]);
        let renewed = Validities { server: certificate(day(90)), ..both };
        assert_eq!(at(&renewed, day(31)), [""; 0]);
        let late = at(&renewed, day(301));
        assert!(late.len() == 2 && late[0].starts_with("TLS authorities: /tls/ca.pem: expired"));
        assert_eq!(at(&Validities::default(), day(301)), [""; 0]);
    }

    #[test]
    fn a_certificate_of_a_day_is_not_reported_all_the_time() {
        let hour = |number: u64| day(0) + Duration::from_secs(number * 3600);
        let daily = Validity { not_before: hour(0), not_after: hour(24) };
        assert_eq!(daily.judge(hour(1)), None);
        assert_eq!(daily.judge(hour(16)), None);
        assert!(daily.judge(hour(17)).unwrap().starts_with("expires at 2030-01-02T00:00:00Z"));
        assert!(daily.judge(hour(25)).unwrap().starts_with("expired at"));
    }
}

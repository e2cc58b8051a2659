//! Conditions: problems that last while the daemon continues, such as a file that it cannot read. The code that
//! detects one begins and ends it here; `spillway status` shows those that have begun.

use std::{borrow::Cow, collections::BTreeMap, fmt, time::SystemTime};

use tokio::sync::watch;

/// Subject of the condition that the packet path is not at the generation in force.
pub const PACKET_PATH: Subject = Subject::new(ConditionReason::PacketPath, "packet path");

/// Subject of the condition that the stored configuration cannot be used.
pub const STORED: Subject =
    Subject::new(ConditionReason::StoredConfiguration, "stored configuration");

/// Subject of the condition that the store cannot be written.
pub const STORE: Subject = Subject::new(ConditionReason::Store, "store");

/// Subject of the condition that overrides are in memory only, or that those from before the start are lost.
pub const OVERRIDES: Subject = Subject::new(ConditionReason::Overrides, "overrides");

/// Subject of the condition that settings of sizes wait, because the pinned maps have others.
pub const MAP_SIZES: Subject = Subject::new(ConditionReason::MapSizes, "map sizes");

/// Subject of the condition that the API's own certificate expires soon, or has expired.
pub const CERTIFICATE: Subject =
    Subject::new(ConditionReason::CertificateExpires, "TLS certificate");

/// Subject of the condition that all authorities of clients of the API expire soon, or have expired.
pub const AUTHORITIES: Subject =
    Subject::new(ConditionReason::AuthoritiesExpire, "TLS authorities");

/// Subject of the condition that the HTTP listener's certificate expires soon, or has expired.
pub const HTTP_CERTIFICATE: Subject =
    Subject::new(ConditionReason::CertificateExpires, "HTTP certificate");

/// Subject of the condition that the certificate for etcd and the other balancers expires soon, or has expired.
pub const FLEET_CERTIFICATE: Subject =
    Subject::new(ConditionReason::CertificateExpires, "fleet certificate");

/// Subject of the condition that etcd does not answer, or takes no changes.
pub const ETCD: Subject = Subject::new(ConditionReason::Etcd, "etcd");

/// Subject of the condition that what etcd has does not follow from what this balancer has in force.
pub const FLEET_CONFLICT: Subject = Subject::new(ConditionReason::FleetConflict, "fleet");

/// Subject of the condition that what the fleet has in force cannot be put in force here.
pub const FLEET_CONFIGURATION: Subject =
    Subject::new(ConditionReason::FleetConfiguration, "fleet configuration");

/// Subject of the condition that the portions of capacities cannot be shared as they should be.
pub const FLEET_SHARES: Subject = Subject::new(ConditionReason::FleetShares, "fleet shares");

/// Subject of the condition that the fleet goes without certificates.
pub const FLEET_INSECURE: Subject =
    Subject::new(ConditionReason::FleetInsecure, "fleet certificates");

/// The kinds of problems that last. Programs tell conditions apart by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionReason {
    PacketPath,
    Store,
    StoredConfiguration,
    Overrides,
    OverrideWeights,
    /// The configuration file.
    File,
    Settings,
    MapSizes,
    /// The API's own, or that of the HTTP listener.
    CertificateExpires,
    /// Those of clients of the API.
    AuthoritiesExpire,
    /// Files of the API's certificate, key and authorities.
    TlsFiles,
    /// Files of the HTTP listener's certificate, key and tokens.
    HttpFiles,
    Audit,
    Log,
    HealthState,
    Names,
    SourceAddress,
    SourcePrefix,
    HashKey,
    Slots,
    Region,
    NarrowPath,
    DisplacedBudget,
    /// The packet program is not on an interface.
    Interface,
    /// This host does not have an address that settings name.
    HostAddress,
    /// etcd does not answer, or takes no changes.
    Etcd,
    /// What etcd has does not follow from what this balancer has in force.
    FleetConflict,
    /// What the fleet has in force cannot be put in force here.
    FleetConfiguration,
    /// The portions of capacities cannot be shared as they should be.
    FleetShares,
    /// The fleet goes without certificates, as its settings ask for.
    FleetInsecure,
}

/// What a condition is about. A subject has one condition at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    reason: ConditionReason,
    /// The pool that it is about.
    pool: Option<String>,
    /// As people read it.
    text: Cow<'static, str>,
}

impl Subject {
    /// A subject of which there is only one.
    pub const fn new(reason: ConditionReason, text: &'static str) -> Self {
        Self { reason, pool: None, text: Cow::Borrowed(text) }
    }

    /// One of several, such as the path of a file.
    pub fn named(reason: ConditionReason, text: impl Into<String>) -> Self {
        Self { reason, pool: None, text: Cow::Owned(text.into()) }
    }

    /// One of each pool.
    pub fn of_pool(reason: ConditionReason, pool: &str, text: String) -> Self {
        Self { reason, pool: Some(pool.into()), text: Cow::Owned(text) }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub reason: ConditionReason,
    /// The pool that it is about.
    pub pool: Option<String>,
    /// What is affected, such as the path of a file.
    pub subject: String,
    /// What is wrong.
    pub cause: String,
    /// When it began; a new cause does not change it.
    pub since: SystemTime,
}

/// The current conditions. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Conditions(watch::Sender<BTreeMap<String, Condition>>);

impl Conditions {
    /// Begins the condition of a subject, or replaces its cause.
    pub fn begin(&self, subject: &Subject, cause: &str) {
        let Subject { reason, pool, text: subject } = subject;
        let subject: &str = subject;
        let same = |was: &Condition| was.cause == cause;
        if self.0.borrow().get(subject).is_some_and(same) {
            return;
        }
        tracing::error!(subject, "{subject}: {cause}");
        self.0.send_modify(|conditions| {
            let since = conditions.get(subject).map_or_else(SystemTime::now, |was| was.since);
            let (reason, pool, cause) = (*reason, pool.clone(), cause.into());
            let condition = Condition { reason, pool, subject: subject.into(), cause, since };
            conditions.insert(subject.into(), condition);
        });
    }

    /// Ends the condition of a subject, if there is one.
    pub fn end(&self, subject: &Subject) {
        let subject = subject.text();
        if self.0.send_if_modified(|conditions| conditions.remove(subject).is_some()) {
            tracing::info!(subject, "{subject}: resolved");
        }
    }

    /// The current conditions, sorted by subject.
    pub fn now(&self) -> Vec<Condition> {
        self.0.borrow().values().cloned().collect()
    }

    /// Notified whenever a condition begins, changes or ends.
    pub fn changes(&self) -> watch::Receiver<BTreeMap<String, Condition>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn causes(conditions: &Conditions) -> Vec<(String, String)> {
        conditions.now().into_iter().map(|t| (t.subject, t.cause)).collect()
    }

    #[test]
    fn a_condition_lasts_from_its_first_cause_to_its_end() {
        let conditions = Conditions::default();
        let mut changes = conditions.changes();
        let [a, b, c] = ["a", "b", "c"].map(|text| Subject::new(ConditionReason::File, text));
        conditions.begin(&b, "broken");
        let since = conditions.now()[0].since;
        conditions.begin(&a, "gone");
        conditions.begin(&b, "still broken");
        assert_eq!(
            causes(&conditions),
            [("a".into(), "gone".into()), ("b".into(), "still broken".into())]
        );
        assert_eq!(conditions.now()[1].since, since);

        changes.mark_unchanged();
        conditions.end(&c);
        assert!(!changes.has_changed().unwrap());
        conditions.end(&b);
        assert!(changes.has_changed().unwrap());
        assert_eq!(causes(&conditions), [("a".into(), "gone".into())]);
    }
}

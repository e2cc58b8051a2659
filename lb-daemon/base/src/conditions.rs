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
    FlowTableFull,
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
    /// Begins the condition of a subject, or replaces its cause. A cause with other figures alone is no line of the log: some
    /// change all the time.
    pub fn begin(&self, subject: &Subject, cause: &str) {
        let Subject { reason, pool, text: subject } = subject;
        let subject: &str = subject;
        let before = self.0.borrow().get(subject).map(|was| was.cause.clone());
        if before.as_deref() == Some(cause) {
            return;
        }
        if !before.is_some_and(|before| differ_in_figures_alone(&before, cause)) {
            tracing::error!(subject, "{subject}: {cause}");
        }
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

/// Whether two texts are the same but for numbers, such as `3.2 s` or `12 %`. Names and addresses with digits are no numbers.
pub fn differ_in_figures_alone(one: &str, other: &str) -> bool {
    let (mut words, mut others) = (one.split_whitespace(), other.split_whitespace());
    loop {
        match (words.next(), others.next()) {
            (None, None) => return true,
            (Some(word), Some(other)) if word == other => {}
            (Some(word), Some(other)) => match (unit_of(word), unit_of(other)) {
                (Some(unit), Some(other)) if unit == other => {}
                _ => return false,
            },
            _ => return false,
        }
    }
}

/// What follows a number in the same word, such as `ms,` in `250ms,`. `None`: the word is no number.
fn unit_of(word: &str) -> Option<&str> {
    let word = word.trim_start_matches(['(', '-', '+']);
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',');
    let number = word.strip_suffix(unit)?.trim_end_matches(['.', ',']);
    let parts = number.split(['.', ',']);
    let is_unit = |c: char| c == '/' || !c.is_ascii_digit() && !c.is_ascii_punctuation();
    let is_number = !number.is_empty() && parts.clone().count() <= 2;
    let unit_is_one = unit.trim_end_matches([')', ',', ';', ':', '.', '%']).chars().all(is_unit);
    (is_number && unit_is_one && parts.clone().all(|part| !part.is_empty())).then_some(unit)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tracing::{Event, Metadata, Subscriber, span};

    use super::*;

    /// Counts lines of the log.
    struct Counted(Arc<AtomicUsize>);

    impl Subscriber for Counted {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    fn causes(conditions: &Conditions) -> Vec<(String, String)> {
        conditions.now().into_iter().map(|t| (t.subject, t.cause)).collect()
    }

    #[test]
    fn numbers_are_figures_and_names_with_digits_are_not() {
        let differ = |one: &str, other: &str| differ_in_figures_alone(one, other);
        for (one, other) in [
            ("3.2 s behind", "13 s behind"),
            ("12 % of pool web", "9 % of pool web"),
            ("after 250ms, again", "after 90ms, again"),
            ("(5 more), 1 of 7.", "(6 more), 2 of 8."),
            ("is -3 s off", "is 4 s off"),
            ("1,000/s are lost", "7/s are lost"),
            ("the same", "the same"),
        ] {
            assert!(differ(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("lb-1 is gone", "lb-2 is gone"),
            ("10.0.0.1 does not answer", "10.0.0.2 does not answer"),
            ("2001:db8::1 is gone", "2001:db8::2 is gone"),
            ("10.0.0.1:80 is gone", "10.0.0.1:81 is gone"),
            ("eth0 is down", "eth1 is down"),
            ("3 s behind", "3 s ahead"),
            ("3 s", "3 s behind"),
            ("3 s behind", "3 ms behind"),
            ("/run/1 is missing", "/run/2 is missing"),
        ] {
            assert!(!differ(one, other), "{one} {other}");
        }
    }

    /// How many lines with a condition the log gets.
    fn lines(begun: &[&str]) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Counted(Arc::clone(&count));
        tracing::subscriber::with_default(counted, || {
            let (conditions, subject) = (Conditions::default(), FLEET_SHARES);
            begun.iter().for_each(|cause| conditions.begin(&subject, cause));
            let shown = causes(&conditions).pop().map(|(_, cause)| cause);
            assert_eq!(shown.as_deref(), begun.last().copied(), "the newest text is shown");
        });
        count.load(Ordering::Relaxed)
    }

    #[test]
    fn other_figures_are_no_other_line_of_the_log() {
        let [first, second, other] = ["3 s behind", "4 s behind", "lost"];
        assert_eq!(lines(&[first, first]), 1);
        assert_eq!(lines(&[first, second, first]), 1);
        assert_eq!(lines(&[first, other, second]), 3);
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

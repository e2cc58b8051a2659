/// Which packets to take down, and how many. A packet must meet every condition that is set.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CaptureRequest {
    /// Source address of the packet as it came, or a prefix of it: "198.51.100.7", "2001:db8::/32".
    /// Unset: any.
    #[prost(string, tag = "1")]
    pub client: ::prost::alloc::string::String,
    /// Destination address of the packet as it came, of the same IP version as client. Unset: any.
    #[prost(string, tag = "2")]
    pub vip: ::prost::alloc::string::String,
    /// Destination port of the packet as it came, of TCP or UDP, 1 to 65535; none is looked for behind IPv6
    /// extension headers. Unset: any, and packets without ports.
    #[prost(uint32, tag = "3")]
    pub port: u32,
    /// Address of the backend that was chosen. Unset: any, and packets for which none was.
    #[prost(string, tag = "4")]
    pub backend: ::prost::alloc::string::String,
    /// Verdicts, by their names: of a balancer's packets, and with dropped those that drop. Unset: all.
    #[prost(string, repeated, tag = "5")]
    pub verdicts: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Only packets that are dropped, whatever the verdict. Unset: false.
    #[prost(bool, tag = "6")]
    pub dropped: bool,
    /// Most bytes of a frame to take down, as it came and as it left each, 1 to 2000. Unset: 256.
    #[prost(uint32, tag = "7")]
    pub snap_length: u32,
    /// Packets after which the capture ends, at most 1000000. Unset: 1000.
    #[prost(uint32, tag = "8")]
    pub packets: u32,
    /// Time after which the capture ends, above zero and at most an hour. Unset: 30 s.
    #[prost(message, optional, tag = "9")]
    pub duration: ::core::option::Option<::prost_types::Duration>,
    /// Most packets a second that are taken down, after a burst of a tenth of that, at least 10, at most
    /// 1000000; others are counted and left out. Unset: no limit.
    #[prost(uint32, tag = "10")]
    pub packets_per_second: u32,
}
/// What a capture says.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CaptureResponse {
    /// One of these; others may come, and may be left alone.
    #[prost(oneof = "capture_response::Event", tags = "1, 2")]
    pub event: ::core::option::Option<capture_response::Event>,
}
/// Nested message and enum types in `CaptureResponse`.
pub mod capture_response {
    /// One of these; others may come, and may be left alone.
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Event {
        /// Packets, in the order in which they were decided about, except for those of different CPUs.
        #[prost(message, tag = "1")]
        Packets(super::CapturedPackets),
        /// The capture has ended; nothing follows.
        #[prost(message, tag = "2")]
        Summary(super::CaptureSummary),
    }
}
/// Some packets.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CapturedPackets {
    /// At least one.
    #[prost(message, repeated, tag = "1")]
    pub packets: ::prost::alloc::vec::Vec<CapturedPacket>,
}
/// A packet.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CapturedPacket {
    /// Counts the packets of the capture from 1.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// When it came, to the nanosecond.
    #[prost(message, optional, tag = "2")]
    pub at: ::core::option::Option<::prost_types::Timestamp>,
    /// Interface it came in on; where it is not there any more, its index.
    #[prost(string, tag = "3")]
    pub interface: ::prost::alloc::string::String,
    /// The frame's first bytes as it came, from the Ethernet header on.
    #[prost(bytes = "vec", tag = "4")]
    pub frame: ::prost::alloc::vec::Vec<u8>,
    /// Its length, bytes.
    #[prost(uint32, tag = "5")]
    pub length: u32,
    /// What became of it, as `spillway verdicts` lists them.
    #[prost(string, tag = "6")]
    pub verdict: ::prost::alloc::string::String,
    /// What the verdict does with a packet: "pass", "drop", "transmit" or "redirect".
    #[prost(string, tag = "7")]
    pub action: ::prost::alloc::string::String,
    /// Address of the backend that was chosen. Empty: none was.
    #[prost(string, tag = "8")]
    pub backend: ::prost::alloc::string::String,
    /// How it left. Unset: it was dropped, or passed to the host.
    #[prost(message, optional, tag = "9")]
    pub left: ::core::option::Option<LeavingFrame>,
}
/// A frame that left.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LeavingFrame {
    /// Interface it left by. Empty: not known any more.
    #[prost(string, tag = "1")]
    pub interface: ::prost::alloc::string::String,
    /// The frame's first bytes, from the Ethernet header on.
    #[prost(bytes = "vec", tag = "2")]
    pub frame: ::prost::alloc::vec::Vec<u8>,
    /// Its length, bytes.
    #[prost(uint32, tag = "3")]
    pub length: u32,
}
/// What a capture came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CaptureSummary {
    /// Why it ended.
    #[prost(enumeration = "capture_summary::Reason", tag = "1")]
    pub reason: i32,
    /// Packets that met all conditions while it was on. Those that are neither written, nor left out, nor lost
    /// came when it had as many as were asked for, before it was off.
    #[prost(uint64, tag = "2")]
    pub matched: u64,
    /// Of them, those that were sent.
    #[prost(uint64, tag = "3")]
    pub written: u64,
    /// Of them, those that were left out because there were more than packets_per_second.
    #[prost(uint64, tag = "4")]
    pub left_out: u64,
    /// Of them, those that were lost, because they came faster than they were read.
    #[prost(uint64, tag = "5")]
    pub lost: u64,
}
/// Nested message and enum types in `CaptureSummary`.
pub mod capture_summary {
    /// Why a capture ended.
    #[derive(
        Clone,
        Copy,
        Debug,
        PartialEq,
        Eq,
        Hash,
        PartialOrd,
        Ord,
        ::prost::Enumeration
    )]
    #[repr(i32)]
    pub enum Reason {
        /// Never sent.
        Unspecified = 0,
        /// It has as many packets as were asked for.
        Packets = 1,
        /// Its time is over.
        Duration = 2,
    }
    impl Reason {
        /// String value of the enum field names used in the ProtoBuf definition.
        ///
        /// The values are not transformed in any way and thus are considered stable
        /// (if the ProtoBuf definition does not change) and safe for programmatic use.
        pub fn as_str_name(&self) -> &'static str {
            match self {
                Self::Unspecified => "REASON_UNSPECIFIED",
                Self::Packets => "REASON_PACKETS",
                Self::Duration => "REASON_DURATION",
            }
        }
        /// Creates an enum from field names used in the ProtoBuf definition.
        pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
            match value {
                "REASON_UNSPECIFIED" => Some(Self::Unspecified),
                "REASON_PACKETS" => Some(Self::Packets),
                "REASON_DURATION" => Some(Self::Duration),
                _ => None,
            }
        }
    }
}
/// What a call made of the configuration, or would.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ApplyResult {
    /// The generation now in force; under validate_only the one that is in force unchanged.
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    /// What changed, or would change. Empty: nothing; the generation then stays.
    #[prost(message, repeated, tag = "2")]
    pub changes: ::prost::alloc::vec::Vec<Change>,
    /// Kernel memory that the maps take with it, or would. Unset: nothing changes.
    #[prost(message, optional, tag = "3")]
    pub memory: ::core::option::Option<MapMemory>,
    /// What becomes of open connections, or would. Objects whose connections all stay are left out. Empty: no open
    /// connection moves, or it is not known (movements_unknown).
    #[prost(message, repeated, tag = "4")]
    pub movements: ::prost::alloc::vec::Vec<Movement>,
    /// What whoever called should know of it, or of what it would be. Empty: nothing.
    #[prost(message, repeated, tag = "5")]
    pub warnings: ::prost::alloc::vec::Vec<Warning>,
    /// Whether it is not known which open connections move: the configuration in force before could not be used.
    #[prost(bool, tag = "6")]
    pub movements_unknown: bool,
    /// The generation that each live balancer of the fleet had in force when the call was answered, by name. Empty: the balancer
    /// is no member of a fleet, or nothing changed.
    #[prost(message, repeated, tag = "7")]
    pub balancers: ::prost::alloc::vec::Vec<BalancerGeneration>,
}
/// What a balancer of a fleet has in force.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BalancerGeneration {
    /// Its name.
    #[prost(string, tag = "1")]
    pub balancer: ::prost::alloc::string::String,
    /// The generation. 0: none.
    #[prost(uint64, tag = "2")]
    pub generation: u64,
}
/// One object that differs.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Change {
    /// What happened.
    #[prost(enumeration = "change::Kind", tag = "1")]
    pub kind: i32,
    /// The object. A pool that comes or goes speaks for its backends. Always set.
    #[prost(message, optional, tag = "2")]
    pub object: ::core::option::Option<ObjectReference>,
    /// Fields that differ. Empty unless KIND_CHANGED.
    #[prost(message, repeated, tag = "3")]
    pub fields: ::prost::alloc::vec::Vec<FieldChange>,
    /// Slots whose owner differs, over the tables of a pool that changed; those of a table that goes
    /// count, those of one that comes do not.
    #[prost(uint64, tag = "4")]
    pub slots_moved: u64,
    /// The object in words: "service web", "pool web: backend 10.0.0.1", "region eu", "hash key", "balancers".
    #[prost(string, tag = "5")]
    pub text: ::prost::alloc::string::String,
}
/// Nested message and enum types in `Change`.
pub mod change {
    /// What happened to it.
    #[derive(
        Clone,
        Copy,
        Debug,
        PartialEq,
        Eq,
        Hash,
        PartialOrd,
        Ord,
        ::prost::Enumeration
    )]
    #[repr(i32)]
    pub enum Kind {
        /// Never sent.
        Unspecified = 0,
        /// It is new.
        Added = 1,
        /// It is gone.
        Removed = 2,
        /// Some of its fields differ.
        Changed = 3,
    }
    impl Kind {
        /// String value of the enum field names used in the ProtoBuf definition.
        ///
        /// The values are not transformed in any way and thus are considered stable
        /// (if the ProtoBuf definition does not change) and safe for programmatic use.
        pub fn as_str_name(&self) -> &'static str {
            match self {
                Self::Unspecified => "KIND_UNSPECIFIED",
                Self::Added => "KIND_ADDED",
                Self::Removed => "KIND_REMOVED",
                Self::Changed => "KIND_CHANGED",
            }
        }
        /// Creates an enum from field names used in the ProtoBuf definition.
        pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
            match value {
                "KIND_UNSPECIFIED" => Some(Self::Unspecified),
                "KIND_ADDED" => Some(Self::Added),
                "KIND_REMOVED" => Some(Self::Removed),
                "KIND_CHANGED" => Some(Self::Changed),
                _ => None,
            }
        }
    }
}
/// A field that differs.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct FieldChange {
    /// Its name, that of the configuration file if it has one there: "weight", "http.path", "capacity", or "kind" of a health
    /// check; "backends" of a group where its members or their weights differ, with their numbers as values.
    #[prost(string, tag = "1")]
    pub field: ::prost::alloc::string::String,
    /// Its value before, for people: "3", "1s", "none", "yes"; "unset": it had none. Of hash_key only whether it was given.
    #[prost(string, tag = "2")]
    pub old: ::prost::alloc::string::String,
    /// Its value now.
    #[prost(string, tag = "3")]
    pub new: ::prost::alloc::string::String,
    /// Region of the group that it is of. Empty: it is the object's own.
    #[prost(string, tag = "4")]
    pub region: ::prost::alloc::string::String,
    /// All of it in words: "weight: 1 -> 3", "backends in eu: 2 -> 3 (1 new)".
    #[prost(string, tag = "5")]
    pub text: ::prost::alloc::string::String,
}
/// What becomes of open connections, by the tables alone: health is ignored. How many are open is not
/// known, as the packet path keeps nothing of those at home.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Movement {
    /// Whose. Always set.
    #[prost(message, optional, tag = "1")]
    pub object: ::core::option::Option<ObjectReference>,
    /// What becomes of them.
    #[prost(enumeration = "movement::Effect", tag = "2")]
    pub effect: i32,
    /// Share of its open connections at home that it is, 0 to 1.
    #[prost(double, tag = "3")]
    pub share: f64,
    /// The object in words: "service web", "pool web", "pool web: backend 10.0.0.1".
    #[prost(string, tag = "4")]
    pub text: ::prost::alloc::string::String,
}
/// Nested message and enum types in `Movement`.
pub mod movement {
    /// What becomes of them.
    #[derive(
        Clone,
        Copy,
        Debug,
        PartialEq,
        Eq,
        Hash,
        PartialOrd,
        Ord,
        ::prost::Enumeration
    )]
    #[repr(i32)]
    pub enum Effect {
        /// Never sent.
        Unspecified = 0,
        /// They stay for the settle time of the pool; those that send nothing in its last third may be reset
        /// then.
        Settle = 1,
        /// They go to another backend at once, which resets TCP.
        AtOnce = 2,
        /// They are not balanced any more.
        End = 3,
    }
    impl Effect {
        /// String value of the enum field names used in the ProtoBuf definition.
        ///
        /// The values are not transformed in any way and thus are considered stable
        /// (if the ProtoBuf definition does not change) and safe for programmatic use.
        pub fn as_str_name(&self) -> &'static str {
            match self {
                Self::Unspecified => "EFFECT_UNSPECIFIED",
                Self::Settle => "EFFECT_SETTLE",
                Self::AtOnce => "EFFECT_AT_ONCE",
                Self::End => "EFFECT_END",
            }
        }
        /// Creates an enum from field names used in the ProtoBuf definition.
        pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
            match value {
                "EFFECT_UNSPECIFIED" => Some(Self::Unspecified),
                "EFFECT_SETTLE" => Some(Self::Settle),
                "EFFECT_AT_ONCE" => Some(Self::AtOnce),
                "EFFECT_END" => Some(Self::End),
                _ => None,
            }
        }
    }
}
/// Kernel memory of the packet path's maps, bytes. All but the tables is as it was made at the daemon's
/// first start, whatever is configured.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MapMemory {
    /// All maps, once what was before has gone.
    #[prost(uint64, tag = "1")]
    pub needed_bytes: u64,
    /// All maps until then: tables from before the change are there as well, as long as it settles.
    #[prost(uint64, tag = "2")]
    pub peak_bytes: u64,
    /// Most that they may take; more is refused with RESOURCE_EXHAUSTED. Unset: no limit.
    #[prost(uint64, optional, tag = "3")]
    pub limit_bytes: ::core::option::Option<u64>,
    /// Each map, with the tables of the configuration.
    #[prost(message, repeated, tag = "4")]
    pub maps: ::prost::alloc::vec::Vec<MapBytes>,
}
/// A map's memory.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct MapBytes {
    /// Name.
    #[prost(string, tag = "1")]
    pub map: ::prost::alloc::string::String,
    /// Its bytes.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
}
/// A consequence of a call that its author may not have intended.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Warning {
    /// Which one.
    #[prost(enumeration = "WarningReason", tag = "1")]
    pub reason: i32,
    /// What it is about. Unset: nothing of the configuration.
    #[prost(message, optional, tag = "2")]
    pub object: ::core::option::Option<ObjectReference>,
    /// It as a sentence: "pool web has no backend left for new connections".
    #[prost(string, tag = "3")]
    pub text: ::prost::alloc::string::String,
}
/// An object that a message is about.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ObjectReference {
    /// What it is.
    #[prost(enumeration = "object_reference::Kind", tag = "1")]
    pub kind: i32,
    /// Its name: of a group that of its region, of a backend its address. Empty: it is the configuration.
    #[prost(string, tag = "2")]
    pub name: ::prost::alloc::string::String,
    /// Pool of a backend or group. Empty: it has none, or is a backend in all pools that have it.
    #[prost(string, tag = "3")]
    pub pool: ::prost::alloc::string::String,
}
/// Nested message and enum types in `ObjectReference`.
pub mod object_reference {
    /// Kinds of objects.
    #[derive(
        Clone,
        Copy,
        Debug,
        PartialEq,
        Eq,
        Hash,
        PartialOrd,
        Ord,
        ::prost::Enumeration
    )]
    #[repr(i32)]
    pub enum Kind {
        /// Never sent.
        Unspecified = 0,
        /// The configuration itself: what is no object's, as hash_key.
        Configuration = 1,
        /// A region.
        Region = 2,
        /// A health check.
        HealthCheck = 3,
        /// A pool.
        Pool = 4,
        /// A pool's backends in a region.
        Group = 5,
        /// A backend.
        Backend = 6,
        /// A service.
        Service = 7,
    }
    impl Kind {
        /// String value of the enum field names used in the ProtoBuf definition.
        ///
        /// The values are not transformed in any way and thus are considered stable
        /// (if the ProtoBuf definition does not change) and safe for programmatic use.
        pub fn as_str_name(&self) -> &'static str {
            match self {
                Self::Unspecified => "KIND_UNSPECIFIED",
                Self::Configuration => "KIND_CONFIGURATION",
                Self::Region => "KIND_REGION",
                Self::HealthCheck => "KIND_HEALTH_CHECK",
                Self::Pool => "KIND_POOL",
                Self::Group => "KIND_GROUP",
                Self::Backend => "KIND_BACKEND",
                Self::Service => "KIND_SERVICE",
            }
        }
        /// Creates an enum from field names used in the ProtoBuf definition.
        pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
            match value {
                "KIND_UNSPECIFIED" => Some(Self::Unspecified),
                "KIND_CONFIGURATION" => Some(Self::Configuration),
                "KIND_REGION" => Some(Self::Region),
                "KIND_HEALTH_CHECK" => Some(Self::HealthCheck),
                "KIND_POOL" => Some(Self::Pool),
                "KIND_GROUP" => Some(Self::Group),
                "KIND_BACKEND" => Some(Self::Backend),
                "KIND_SERVICE" => Some(Self::Service),
                _ => None,
            }
        }
    }
}
/// Why a call warns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum WarningReason {
    /// Never sent.
    Unspecified = 0,
    /// A pool with services has no backend left for new connections.
    PoolUnserved = 1,
    /// A pool with services has no backends at all, so their packets are dropped.
    PoolEmpty = 2,
    /// A pool uses direct return, and backends of it are behind a gateway.
    BehindGateway = 3,
    /// The call sets what an override is about, which stays in force beside it.
    Overridden = 4,
    /// The packet path is not at the generation in force.
    PacketPathBehind = 5,
    /// The configuration file says something else, and reverts the change at the next reload or start.
    FileDiffers = 6,
    /// Schema revisions differ, so fields may have been lost, or would be.
    Schema = 7,
    /// The configuration in force before could not be used.
    UnusableBefore = 8,
    /// An override has no effect, or less than it asks for.
    OverrideLimited = 9,
    /// The configuration or another override still asks for what the removed override asked.
    StillStopped = 10,
    /// Only under validate_only: the change removes so much that it is refused without force.
    ForceRequired = 11,
}
impl WarningReason {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "WARNING_REASON_UNSPECIFIED",
            Self::PoolUnserved => "WARNING_REASON_POOL_UNSERVED",
            Self::PoolEmpty => "WARNING_REASON_POOL_EMPTY",
            Self::BehindGateway => "WARNING_REASON_BEHIND_GATEWAY",
            Self::Overridden => "WARNING_REASON_OVERRIDDEN",
            Self::PacketPathBehind => "WARNING_REASON_PACKET_PATH_BEHIND",
            Self::FileDiffers => "WARNING_REASON_FILE_DIFFERS",
            Self::Schema => "WARNING_REASON_SCHEMA",
            Self::UnusableBefore => "WARNING_REASON_UNUSABLE_BEFORE",
            Self::OverrideLimited => "WARNING_REASON_OVERRIDE_LIMITED",
            Self::StillStopped => "WARNING_REASON_STILL_STOPPED",
            Self::ForceRequired => "WARNING_REASON_FORCE_REQUIRED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "WARNING_REASON_UNSPECIFIED" => Some(Self::Unspecified),
            "WARNING_REASON_POOL_UNSERVED" => Some(Self::PoolUnserved),
            "WARNING_REASON_POOL_EMPTY" => Some(Self::PoolEmpty),
            "WARNING_REASON_BEHIND_GATEWAY" => Some(Self::BehindGateway),
            "WARNING_REASON_OVERRIDDEN" => Some(Self::Overridden),
            "WARNING_REASON_PACKET_PATH_BEHIND" => Some(Self::PacketPathBehind),
            "WARNING_REASON_FILE_DIFFERS" => Some(Self::FileDiffers),
            "WARNING_REASON_SCHEMA" => Some(Self::Schema),
            "WARNING_REASON_UNUSABLE_BEFORE" => Some(Self::UnusableBefore),
            "WARNING_REASON_OVERRIDE_LIMITED" => Some(Self::OverrideLimited),
            "WARNING_REASON_STILL_STOPPED" => Some(Self::StillStopped),
            "WARNING_REASON_FORCE_REQUIRED" => Some(Self::ForceRequired),
            _ => None,
        }
    }
}
/// What a balancer should do, whole. Names are the ids: 1 to 63 of a-z, 0-9 and '-', the first and
/// the last no '-', unique among their kind.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Configuration {
    /// Regions, in any order. Unset: none.
    #[prost(message, repeated, tag = "1")]
    pub regions: ::prost::alloc::vec::Vec<Region>,
    /// Health checks. Unset: none.
    #[prost(message, repeated, tag = "2")]
    pub health_checks: ::prost::alloc::vec::Vec<HealthCheck>,
    /// Pools of backends. Unset: none.
    #[prost(message, repeated, tag = "3")]
    pub pools: ::prost::alloc::vec::Vec<Pool>,
    /// Services. Unset: none.
    #[prost(message, repeated, tag = "4")]
    pub services: ::prost::alloc::vec::Vec<Service>,
    /// Key of the flow hash: 32 hexadecimal digits. All balancers of a fleet must have the same.
    /// Unset: this daemon's own random key, made once and kept in its store,
    /// which serves one balancer alone: with several it must be set.
    #[prost(string, tag = "5")]
    pub hash_key: ::prost::alloc::string::String,
    /// Balancers, of all regions, that share the capacities: each admits capacity / balancers, which
    /// must be one connection a minute or more. 1 to 1000. Unset: 1.
    #[prost(uint32, tag = "6")]
    pub balancers: u32,
}
/// A place where backends are.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Region {
    /// Name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Names of the regions that take over what this one cannot serve, nearest first. At most 7, and
    /// never in a circle. Unset: none.
    #[prost(string, repeated, tag = "2")]
    pub overflow_to: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Digest of the object's content in force, 16 hexadecimal digits, in answers of Objects. An update, or a batch that
    /// deletes, succeeds only while the object has this etag; a create ignores it. Unset: any. Must be unset in a Configuration
    /// and in the backends of a Pool.
    #[prost(string, tag = "3")]
    pub etag: ::prost::alloc::string::String,
}
/// How a backend's health is asked for.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct HealthCheck {
    /// Name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Port on the backend, or of the VIP through the tunnel, 1 to 65535. Must be set.
    #[prost(uint32, tag = "4")]
    pub port: u32,
    /// Time from the start of one check to the start of the next, 10 ms to 1 h. Unset: 1 s.
    #[prost(message, optional, tag = "5")]
    pub interval: ::core::option::Option<::prost_types::Duration>,
    /// Time a check may take, 1 ms to the interval. Unset: the interval, at most 1 s.
    #[prost(message, optional, tag = "6")]
    pub timeout: ::core::option::Option<::prost_types::Duration>,
    /// Successes in a row that bring a failed backend back, 1 to 100. Unset: 2. The very first
    /// success of a backend suffices alone.
    #[prost(uint32, tag = "7")]
    pub rise: u32,
    /// Failures in a row that take a backend out, 1 to 100. Its open connections stay, unless nothing at
    /// all came from its host in as many checks in a row. Unset: 3.
    #[prost(uint32, tag = "8")]
    pub fall: u32,
    /// How far each interval may be shortened or lengthened at random, in percent, 0 to 50. Unset: 10.
    #[prost(uint32, optional, tag = "9")]
    pub jitter_percent: ::core::option::Option<u32>,
    /// TLS on the connection before anything is asked; of tcp the handshake is then all. Not for udp.
    /// Unset: none.
    #[prost(message, optional, tag = "12")]
    pub tls: ::core::option::Option<CheckTls>,
    /// Interval while the backend is between two states: it fails and is not out yet, passes and is not
    /// back yet, or its host is silent and not dead yet. 10 ms to the interval; a check that takes longer
    /// is waited for. Unset: the interval.
    #[prost(message, optional, tag = "13")]
    pub fast_interval: ::core::option::Option<::prost_types::Duration>,
    /// Which way it goes. Unset: to the backend's own address.
    #[prost(enumeration = "Via", tag = "15")]
    pub via: i32,
    /// How a host is asked that does not answer the check, so that a lost host is told from a failed application.
    /// Unset: auto.
    #[prost(enumeration = "HostProbe", tag = "16")]
    pub host_probe: i32,
    /// TCP port that a host is asked at, 1 to 65535, on which nothing should listen: a refusal is an answer. Unset: 1.
    #[prost(uint32, tag = "17")]
    pub host_probe_port: u32,
    /// Digest of the object's content in force, 16 hexadecimal digits, in answers of Objects. An update, or a batch that
    /// deletes, succeeds only while the object has this etag; a create ignores it. Unset: any. Must be unset in a Configuration
    /// and in the backends of a Pool.
    #[prost(string, tag = "18")]
    pub etag: ::prost::alloc::string::String,
    /// What is asked. Must be set.
    #[prost(oneof = "health_check::Kind", tags = "2, 3, 10, 11, 14")]
    pub kind: ::core::option::Option<health_check::Kind>,
}
/// Nested message and enum types in `HealthCheck`.
pub mod health_check {
    /// What is asked. Must be set.
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Oneof)]
    pub enum Kind {
        /// A TCP connection is opened and closed.
        #[prost(message, tag = "2")]
        Tcp(super::TcpCheck),
        /// An HTTP/1.1 request is sent on a connection of its own.
        #[prost(message, tag = "3")]
        Http(super::HttpCheck),
        /// The standard gRPC health service is asked, over HTTP/2.
        #[prost(message, tag = "10")]
        Grpc(super::GrpcCheck),
        /// A datagram is sent and an answer awaited.
        #[prost(message, tag = "11")]
        Udp(super::UdpCheck),
        /// A connection is opened, and one line read of what the backend says of itself.
        #[prost(message, tag = "14")]
        Agent(super::AgentCheck),
    }
}
/// A TCP connect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TcpCheck {}
/// TLS, version 1.2 or 1.3.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CheckTls {
    /// Name that is asked for (SNI) and that the certificate is verified for: a DNS name. Unset: the host
    /// of the request where that is a name; else none is asked for, and the certificate is verified for
    /// the backend's address.
    #[prost(string, tag = "1")]
    pub server_name: ::prost::alloc::string::String,
    /// Whether the certificate is verified; where not, any will do, also one that has expired. Unset:
    /// true where ca_file is set, else false.
    #[prost(bool, optional, tag = "2")]
    pub verify: ::core::option::Option<bool>,
    /// File on the balancer's own host, an absolute path, with the certificates (PEM) of those who may
    /// have signed the backend's; a file that changes is read again. Unset: those that the balancer's host
    /// trusts.
    #[prost(string, tag = "3")]
    pub ca_file: ::prost::alloc::string::String,
}
/// An HTTP/1.1 request; a status in the expected range within the timeout is a success, where
/// body_contains is set together with that. Redirects are not followed: they are their status.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct HttpCheck {
    /// Path with its query, starting with '/'; printable ASCII without blanks. Unset: "/".
    #[prost(string, tag = "1")]
    pub path: ::prost::alloc::string::String,
    /// Host header. Unset: the backend's address and port.
    #[prost(string, tag = "2")]
    pub host: ::prost::alloc::string::String,
    /// Lowest status that is a success, 100 to 599. Unset: 200.
    #[prost(uint32, tag = "3")]
    pub status_min: u32,
    /// Highest status that is a success, status_min to 599. Unset: 299, or status_min where that is higher.
    #[prost(uint32, tag = "4")]
    pub status_max: u32,
    /// Method, 1 to 16 of A-Z and '-', not CONNECT; no body is sent. Unset: GET.
    #[prost(string, tag = "5")]
    pub method: ::prost::alloc::string::String,
    /// Text that the body must have in its first 65536 bytes, 1 to 1024 bytes; not with HEAD. Unset: the
    /// body is not looked at.
    #[prost(string, tag = "6")]
    pub body_contains: ::prost::alloc::string::String,
    /// Name of a header of the answer in which the backend says how it is, in the words of AgentCheck, as
    /// in "endpoint-load-metrics": a token of RFC 9110, at most 64 bytes. The status decides health as
    /// ever. Unset: none is read.
    #[prost(string, tag = "7")]
    pub agent_header: ::prost::alloc::string::String,
}
/// One line of what a backend says of itself, up to its line feed or the end of the connection, at most
/// 1024 bytes: words of HAProxy's agent protocol, separated by blanks or commas, upper or lower case.
/// "up" or "ready"; "drain" or "maint": no new connections; "down", "failed" or "stopped": the check has
/// failed; "75%": its share of its weight. "#" begins a reason up to the end of the line. Also metrics of
/// ORCA as text, "cpu_utilization=0.62" and "application_utilization=0.8": new connections are spread so
/// that utilisation becomes even in its region. What a line leaves out stands as it was said before. A
/// line that cannot be had or read fails nothing; after as many in a row as fall says, all that was said
/// is forgotten.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AgentCheck {
    /// What is sent when the connection is made, at most 1024 bytes. Unset: nothing.
    #[prost(bytes = "vec", tag = "1")]
    pub send: ::prost::alloc::vec::Vec<u8>,
}
/// A call of grpc.health.v1.Health/Check, over TLS or in the clear; the answer SERVING within the
/// timeout is a success.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GrpcCheck {
    /// Service that is asked for: at most 255 of printable ASCII without blanks. Unset: the server as a
    /// whole.
    #[prost(string, tag = "1")]
    pub service: ::prost::alloc::string::String,
    /// Whom the call is for (:authority). Unset: the name that TLS asks for; else the backend's address
    /// and port.
    #[prost(string, tag = "2")]
    pub authority: ::prost::alloc::string::String,
}
/// A datagram from a port of its own; the first answer within the timeout decides. A port that is
/// unreachable is a refusal. One lost on the way is a failed check: it is not sent again.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct UdpCheck {
    /// What is sent, at most 1232 bytes. Unset: an empty datagram.
    #[prost(bytes = "vec", tag = "1")]
    pub request: ::prost::alloc::vec::Vec<u8>,
    /// What the answer must begin with, at most 1024 bytes. Unset: anything.
    #[prost(bytes = "vec", tag = "2")]
    pub answer_prefix: ::prost::alloc::vec::Vec<u8>,
    /// What the answer must have in its first 4096 bytes, at most 1024 bytes. Unset: anything.
    #[prost(bytes = "vec", tag = "3")]
    pub answer_contains: ::prost::alloc::vec::Vec<u8>,
}
/// A named set of backends with its health checks.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Pool {
    /// Name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Backends, at least one of them with a weight, in at most 8 regions. Unset: none; packets of its
    /// services are then dropped and counted.
    #[prost(message, repeated, tag = "2")]
    pub backends: ::prost::alloc::vec::Vec<Backend>,
    /// Names of the health checks; all must pass. Unset: none, every active backend counts as healthy.
    #[prost(string, repeated, tag = "3")]
    pub health_checks: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Slots of the tables, a prime from 7 to 419423 and larger than the number of members of any
    /// one region; or 0: the number is chosen from the backends of this request, active or not. That is the
    /// least of 1009, 4093, 16381 and 65537 with which the backend with the least positive weight of each
    /// region has 100 slots, or 65537. The generation keeps the chosen number, and Export and Get return it.
    /// Unset: a pool that the generation in force has keeps its number; that of a new pool is chosen. If
    /// balancers is above 1, each pool needs a number here, so that all balancers have the same tables.
    #[prost(uint32, optional, tag = "4")]
    pub slots: ::core::option::Option<u32>,
    /// What is set of its groups (its backends in one region); at most one for each region in which it
    /// has backends. Unset: none.
    #[prost(message, repeated, tag = "5")]
    pub groups: ::prost::alloc::vec::Vec<Group>,
    /// When its new connections may leave the first region of its order. Unset: when that is full, and
    /// when nobody there can have them.
    #[prost(enumeration = "Isolation", tag = "6")]
    pub isolation: i32,
    /// Names of regions that are asked first, in this order, whatever is near. Unset: none.
    #[prost(string, repeated, tag = "7")]
    pub preferred_regions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// As a last resort, where no region has a healthy backend for a packet: it may go to one whose
    /// checks fail while less than this share of the pool's active backends is healthy, in percent, 1
    /// to 100. Unset: never.
    #[prost(uint32, tag = "8")]
    pub panic_threshold_percent: u32,
    /// How long open connections stay where they are after a change of what their home is (backends,
    /// weights, order of regions, slots, hash key), 1 s to 24 h; a later change begins it anew, up to
    /// three times as long in all. In its last third those that are in use are remembered one by one; one
    /// that sends nothing in that third may be reset if its slot changed. Also how long a backend or a
    /// region must be out of service until it is marked out. Unset: 10 min.
    #[prost(message, optional, tag = "9")]
    pub settle_time: ::core::option::Option<::prost_types::Duration>,
    /// How long a backend that comes up takes until it has its whole share of new connections, 1 s to 1 h:
    /// its share grows evenly from a twentieth, and the others of its region take the rest. Those that come
    /// up together share as ever; at most half of a region's connections are moved. Unset: no time, its
    /// whole share at once.
    #[prost(message, optional, tag = "10")]
    pub slow_start: ::core::option::Option<::prost_types::Duration>,
    /// How packets get to its backends. It is the pool's own: pools that share a backend may differ, and a
    /// change takes effect at once and moves no connection, so the backend must take both meanwhile. Only
    /// where one of them goes direct all must. Unset: IP in IP.
    #[prost(enumeration = "Encapsulation", tag = "11")]
    pub encapsulation: i32,
    /// UDP port that GUE goes to, 1 to 65535. Only with GUE. Unset: 6080.
    #[prost(uint32, tag = "12")]
    pub gue_port: u32,
    /// How long a backend gets no new connections when it passes its checks again, if it went down within
    /// max_hold_down of its last return, 1 s to 24 h, or 0: it is never held down. Each further such failure in a
    /// row doubles the time. Its open connections stay meanwhile. Unset: 10 s.
    #[prost(message, optional, tag = "13")]
    pub hold_down: ::core::option::Option<::prost_types::Duration>,
    /// The most that a backend is held down, 1 s to 24 h and at least hold_down. A backend that is up for longer
    /// than this after a return starts afresh. Unset: 5 min, or hold_down if that is more.
    #[prost(message, optional, tag = "14")]
    pub max_hold_down: ::core::option::Option<::prost_types::Duration>,
    /// Digest of the object's content in force, 16 hexadecimal digits, in answers of Objects. An update, or a batch that
    /// deletes, succeeds only while the object has this etag; a create ignores it. Unset: any. Must be unset in a Configuration
    /// and in the backends of a Pool.
    #[prost(string, tag = "15")]
    pub etag: ::prost::alloc::string::String,
}
/// A group: a pool's backends in one region.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Group {
    /// Name of the region. Must be set; the pool has a backend there.
    #[prost(string, tag = "1")]
    pub region: ::prost::alloc::string::String,
    /// New connections it takes a second, over all balancers, 0.1 to 10000000. Not requests on
    /// connections that are open, and not how many are open at once. Unset: the sum over its healthy
    /// backends of max_connection_rate_per_second where every one with a weight has that, else no limit.
    #[prost(double, optional, tag = "2")]
    pub capacity_per_second: ::core::option::Option<f64>,
    /// Share of that capacity in use: 0, which drains the group (established connections stay), or 0.1
    /// to 1. One between 0 and 1 wants a capacity. Unset: 1.
    #[prost(double, optional, tag = "3")]
    pub scaler: ::core::option::Option<f64>,
    /// Whether it is drained whatever its scaler, which then is what it has when this ends. Unset: false.
    #[prost(bool, tag = "4")]
    pub drained: bool,
}
/// One real server. Pools may share an address: it is one host, so region and mtu must then agree.
/// No service may have it as its VIP.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Backend {
    /// IPv4 or IPv6 address the tunnel ends at, unicast. Must be set; unique in its pool.
    #[prost(string, tag = "1")]
    pub address: ::prost::alloc::string::String,
    /// Name of its region. Must be set.
    #[prost(string, tag = "2")]
    pub region: ::prost::alloc::string::String,
    /// Share of connections relative to the others of its region, 0 to 1000000; 0 takes none.
    /// Unset: 1.
    #[prost(uint32, optional, tag = "3")]
    pub weight: ::core::option::Option<u32>,
    /// What the operator asks for. Unset: active.
    #[prost(enumeration = "AdminState", tag = "4")]
    pub admin_state: i32,
    /// Largest outer IP packet towards it, bytes, 1280 to 65535. Unset: the MTU of the interface.
    #[prost(uint32, tag = "5")]
    pub mtu: u32,
    /// New connections it takes a second in this pool, over all balancers, 0.1 to 10000000. One that
    /// has its fill is passed over. Unset: no limit of its own.
    #[prost(double, optional, tag = "6")]
    pub max_connection_rate_per_second: ::core::option::Option<f64>,
    /// Name of its pool. Must be set in calls about backends. In the backends of a Pool: unset, or the name of that pool.
    #[prost(string, tag = "7")]
    pub pool: ::prost::alloc::string::String,
    /// Digest of the object's content in force, 16 hexadecimal digits, in answers of Objects. An update, or a batch that
    /// deletes, succeeds only while the object has this etag; a create ignores it. Unset: any. Must be unset in a Configuration
    /// and in the backends of a Pool.
    #[prost(string, tag = "8")]
    pub etag: ::prost::alloc::string::String,
}
/// A virtual address that clients connect to.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Service {
    /// Name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// The VIP: an IPv4 or IPv6 address, unicast. Must be set.
    #[prost(string, tag = "2")]
    pub address: ::prost::alloc::string::String,
    /// Port, 1 to 65535. Unset: `ports` or `any_port` say which; exactly one of the three must be set. A
    /// port of an address and protocol is of one service only.
    #[prost(uint32, tag = "3")]
    pub port: u32,
    /// Protocol. Must be set.
    #[prost(enumeration = "Protocol", tag = "4")]
    pub protocol: i32,
    /// Name of the pool that serves it. Must be set.
    #[prost(string, tag = "5")]
    pub pool: ::prost::alloc::string::String,
    /// What a connection is hashed by. Unset: address and port of the client and of the service.
    #[prost(enumeration = "Affinity", tag = "6")]
    pub affinity: i32,
    /// What becomes of a new connection when every region is full. Unset: the nearest serves it.
    #[prost(enumeration = "WhenFull", tag = "7")]
    pub when_full: i32,
    /// How packets of a UDP service find their backend. Unset: stateless. Only for UDP.
    #[prost(enumeration = "UdpMode", tag = "8")]
    pub udp: i32,
    /// How long a flow without packets is remembered, 1 s to 18 h. Only for tracked UDP. Unset: 60 s.
    #[prost(message, optional, tag = "9")]
    pub idle_timeout: ::core::option::Option<::prost_types::Duration>,
    /// Ports, single ones and ranges in any order. Each takes a place in the packet path's map, where there
    /// are as many as the daemon's setting `ports` says for all services. Unset: `port` or `any_port` say which.
    #[prost(message, repeated, tag = "10")]
    pub ports: ::prost::alloc::vec::Vec<PortRange>,
    /// All ports that no other service of the address and protocol has; one service of them may have it.
    /// Unset: false.
    #[prost(bool, tag = "11")]
    pub any_port: bool,
    /// What becomes of packets in fragments. Unset: they are dropped.
    #[prost(enumeration = "Fragments", tag = "12")]
    pub fragments: i32,
    /// Digest of the object's content in force, 16 hexadecimal digits, in answers of Objects. An update, or a batch that
    /// deletes, succeeds only while the object has this etag; a create ignores it. Unset: any. Must be unset in a Configuration
    /// and in the backends of a Pool.
    #[prost(string, tag = "13")]
    pub etag: ::prost::alloc::string::String,
}
/// Ports from one to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct PortRange {
    /// The first, 1 to 65535. Must be set.
    #[prost(uint32, tag = "1")]
    pub first: u32,
    /// The last, not below the first. Unset: the first alone.
    #[prost(uint32, tag = "2")]
    pub last: u32,
}
/// Which fields and values a Configuration can have: a program knows those of the highest revision that its copy
/// of this file lists. A test demands a new revision with each field or value that is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum SchemaRevision {
    /// As SCHEMA_REVISION_1.
    Unspecified = 0,
    /// What there was when revisions were introduced.
    SchemaRevision1 = 1,
}
impl SchemaRevision {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "SCHEMA_REVISION_UNSPECIFIED",
            Self::SchemaRevision1 => "SCHEMA_REVISION_1",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "SCHEMA_REVISION_UNSPECIFIED" => Some(Self::Unspecified),
            "SCHEMA_REVISION_1" => Some(Self::SchemaRevision1),
            _ => None,
        }
    }
}
/// How a host is asked that does not answer a check. Any answer proves that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum HostProbe {
    /// Auto.
    Unspecified = 0,
    /// By ARP or NDP if it is on a link of the balancer's and the kernel has its neighbour entry, else by an echo request.
    /// If the kernel does not let the daemon send those (net.ipv4.ping_group_range), by TCP.
    Auto = 1,
    /// By ARP or NDP only. A host behind a router cannot be asked: it counts as lost when its checks get no answer.
    Neighbour = 2,
    /// By an echo request only.
    Icmp = 3,
    /// As auto, and by a TCP SYN to host_probe_port at the same time: for hosts behind a router that answer no echo
    /// requests. Intrusion detection may report the SYN as a port scan.
    Tcp = 4,
}
impl HostProbe {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "HOST_PROBE_UNSPECIFIED",
            Self::Auto => "HOST_PROBE_AUTO",
            Self::Neighbour => "HOST_PROBE_NEIGHBOUR",
            Self::Icmp => "HOST_PROBE_ICMP",
            Self::Tcp => "HOST_PROBE_TCP",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "HOST_PROBE_UNSPECIFIED" => Some(Self::Unspecified),
            "HOST_PROBE_AUTO" => Some(Self::Auto),
            "HOST_PROBE_NEIGHBOUR" => Some(Self::Neighbour),
            "HOST_PROBE_ICMP" => Some(Self::Icmp),
            "HOST_PROBE_TCP" => Some(Self::Tcp),
            _ => None,
        }
    }
}
/// Which way a check goes to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Via {
    /// To the backend's own address.
    Unspecified = 0,
    /// To the backend's own address.
    Address = 1,
    /// To the VIP of each service that the pool serves, as clients' packets go: in the pool's tunnel. So what is
    /// checked is that the tunnel ends there, that the backend has the VIP, and that something serves it. The
    /// answer comes to the balancer's own address. While no service uses
    /// the pool, the check is passed.
    Tunnel = 2,
}
impl Via {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "VIA_UNSPECIFIED",
            Self::Address => "VIA_ADDRESS",
            Self::Tunnel => "VIA_TUNNEL",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "VIA_UNSPECIFIED" => Some(Self::Unspecified),
            "VIA_ADDRESS" => Some(Self::Address),
            "VIA_TUNNEL" => Some(Self::Tunnel),
            _ => None,
        }
    }
}
/// How packets get to a pool's backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Encapsulation {
    /// IP in IP.
    Unspecified = 0,
    /// In an IP header of the backend's version alone (RFC 2003, RFC 2473, RFC 4213): 20 or 40 bytes more.
    IpInIp = 1,
    /// In Generic UDP Encapsulation, variant 0 (draft-ietf-intarea-gue), without a UDP checksum: 32 or 52
    /// bytes more. The source port is of the flow's own hash, so that networks and cards spread a backend's
    /// packets.
    Gue = 2,
    /// None (direct return): the packet as it is, in a frame to the backend's own MAC. Only for backends on a
    /// link of the balancer's; one behind a gateway takes nothing. The backend has the VIP on its loopback.
    Direct = 3,
}
impl Encapsulation {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "ENCAPSULATION_UNSPECIFIED",
            Self::IpInIp => "ENCAPSULATION_IP_IN_IP",
            Self::Gue => "ENCAPSULATION_GUE",
            Self::Direct => "ENCAPSULATION_DIRECT",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ENCAPSULATION_UNSPECIFIED" => Some(Self::Unspecified),
            "ENCAPSULATION_IP_IN_IP" => Some(Self::IpInIp),
            "ENCAPSULATION_GUE" => Some(Self::Gue),
            "ENCAPSULATION_DIRECT" => Some(Self::Direct),
            _ => None,
        }
    }
}
/// When new connections may leave the first region of a pool's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Isolation {
    /// None.
    Unspecified = 0,
    /// When it is full, and when nobody there can have them.
    None = 1,
    /// When nobody there can have them; not when it is full.
    OnFailure = 2,
    /// Never.
    Strict = 3,
}
impl Isolation {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "ISOLATION_UNSPECIFIED",
            Self::None => "ISOLATION_NONE",
            Self::OnFailure => "ISOLATION_ON_FAILURE",
            Self::Strict => "ISOLATION_STRICT",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ISOLATION_UNSPECIFIED" => Some(Self::Unspecified),
            "ISOLATION_NONE" => Some(Self::None),
            "ISOLATION_ON_FAILURE" => Some(Self::OnFailure),
            "ISOLATION_STRICT" => Some(Self::Strict),
            _ => None,
        }
    }
}
/// What the operator asks of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum AdminState {
    /// Active.
    Unspecified = 0,
    /// Takes traffic while it is healthy.
    Active = 1,
    /// Takes nothing, whatever its health; its open connections move.
    Disabled = 2,
    /// Takes no new connections; its open ones stay while the host answers.
    Drain = 3,
}
impl AdminState {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "ADMIN_STATE_UNSPECIFIED",
            Self::Active => "ADMIN_STATE_ACTIVE",
            Self::Disabled => "ADMIN_STATE_DISABLED",
            Self::Drain => "ADMIN_STATE_DRAIN",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ADMIN_STATE_UNSPECIFIED" => Some(Self::Unspecified),
            "ADMIN_STATE_ACTIVE" => Some(Self::Active),
            "ADMIN_STATE_DISABLED" => Some(Self::Disabled),
            "ADMIN_STATE_DRAIN" => Some(Self::Drain),
            _ => None,
        }
    }
}
/// What becomes of packets in fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Fragments {
    /// Dropped.
    Unspecified = 0,
    /// The first fragment is dropped and counted. Later ones bear no ports: no service is found for them, and
    /// the host gets them.
    Dropped = 1,
    /// They go to the backend of their client, those without ports too. Only with affinity by client; one
    /// service of an address and protocol may have it, and it gets all that bear no ports.
    Served = 2,
}
impl Fragments {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "FRAGMENTS_UNSPECIFIED",
            Self::Dropped => "FRAGMENTS_DROPPED",
            Self::Served => "FRAGMENTS_SERVED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "FRAGMENTS_UNSPECIFIED" => Some(Self::Unspecified),
            "FRAGMENTS_DROPPED" => Some(Self::Dropped),
            "FRAGMENTS_SERVED" => Some(Self::Served),
            _ => None,
        }
    }
}
/// What becomes of a new connection when every region is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum WhenFull {
    /// Nearest.
    Unspecified = 0,
    /// It is served at its place in the nearest region, over the capacity, and counted.
    Nearest = 1,
    /// It is dropped and counted. Not for stateless UDP, which knows no connections.
    Reject = 2,
}
impl WhenFull {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "WHEN_FULL_UNSPECIFIED",
            Self::Nearest => "WHEN_FULL_NEAREST",
            Self::Reject => "WHEN_FULL_REJECT",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "WHEN_FULL_UNSPECIFIED" => Some(Self::Unspecified),
            "WHEN_FULL_NEAREST" => Some(Self::Nearest),
            "WHEN_FULL_REJECT" => Some(Self::Reject),
            _ => None,
        }
    }
}
/// How packets of a UDP service find their backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum UdpMode {
    /// Stateless.
    Unspecified = 0,
    /// Every packet by its slot alone: capacity does not count, and a change of health, of admin_state or of
    /// backends moves flows.
    Stateless = 1,
    /// Every flow is remembered until it is idle: a new one is admitted or goes to another region as a
    /// connection does, and stays where it went.
    Tracked = 2,
}
impl UdpMode {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "UDP_MODE_UNSPECIFIED",
            Self::Stateless => "UDP_MODE_STATELESS",
            Self::Tracked => "UDP_MODE_TRACKED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "UDP_MODE_UNSPECIFIED" => Some(Self::Unspecified),
            "UDP_MODE_STATELESS" => Some(Self::Stateless),
            "UDP_MODE_TRACKED" => Some(Self::Tracked),
            _ => None,
        }
    }
}
/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Protocol {
    /// Not allowed.
    Unspecified = 0,
    /// TCP.
    Tcp = 1,
    /// UDP.
    Udp = 2,
}
impl Protocol {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "PROTOCOL_UNSPECIFIED",
            Self::Tcp => "PROTOCOL_TCP",
            Self::Udp => "PROTOCOL_UDP",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "PROTOCOL_UNSPECIFIED" => Some(Self::Unspecified),
            "PROTOCOL_TCP" => Some(Self::Tcp),
            "PROTOCOL_UDP" => Some(Self::Udp),
            _ => None,
        }
    }
}
/// What keeps a client at one backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Affinity {
    /// The connection.
    Unspecified = 0,
    /// Address and port of the client: each connection on its own.
    Connection = 1,
    /// Address of the client: all its connections to an address at one backend of a pool, whatever the port.
    Client = 2,
    /// Port of the service, whoever asks, and whatever the address and the protocol: each port has one
    /// backend of a pool. Not for services of one port.
    Port = 3,
}
impl Affinity {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "AFFINITY_UNSPECIFIED",
            Self::Connection => "AFFINITY_CONNECTION",
            Self::Client => "AFFINITY_CLIENT",
            Self::Port => "AFFINITY_PORT",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "AFFINITY_UNSPECIFIED" => Some(Self::Unspecified),
            "AFFINITY_CONNECTION" => Some(Self::Connection),
            "AFFINITY_CLIENT" => Some(Self::Client),
            "AFFINITY_PORT" => Some(Self::Port),
            _ => None,
        }
    }
}
/// Why a call failed, for programs. Every error that the daemon itself answers has a google.rpc.ErrorInfo in its details
/// with the domain "spillway" and one of these as its reason, without "ERROR_REASON\_". Its metadata has what is named here.
/// Errors of gRPC itself have none, as those of a request that is too large or a call that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ErrorReason {
    /// Never sent.
    Unspecified = 0,
    /// A field of the request is wrong; google.rpc.BadRequest has its path.
    InvalidField = 1,
    /// The configuration breaks a rule, or would with the object; google.rpc.BadRequest has the mistakes, or the first ones and
    /// how many more there are.
    InvalidConfiguration = 2,
    /// Several balancers need a hash_key.
    HashKeyUnset = 3,
    /// Several balancers need the slots of a new pool.
    SlotsUnset = 4,
    /// Another generation is in force. "expected" and "current" are generations.
    GenerationConflict = 5,
    /// The object has another etag. "etag" is the one in force; "kind", "name" and "pool" as for OBJECT_NOT_FOUND.
    EtagConflict = 6,
    /// Others changed the configuration so often that the call gave up. The same call may succeed.
    Busy = 7,
    /// There is no such object. "kind" is that of ObjectReference without "KIND\_", "name" and "pool" are the object's.
    ObjectNotFound = 8,
    /// Another object than the one that was sent has the name. "kind", "name" and "pool" as above.
    ObjectExists = 9,
    /// Other objects use it. "kind", "name" and "pool" as above.
    ObjectInUse = 10,
    /// The others are invalid without it. "kind", "name" and "pool" as above, unless it is one of a batch.
    ObjectNeeded = 11,
    /// The history does not have the generation. "generation" is its number.
    GenerationNotFound = 12,
    /// The daemon cannot use the generation. "generation" is its number.
    GenerationUnusable = 13,
    /// The daemon cannot use the stored configuration.
    ConfigurationUnusable = 14,
    /// Fields that only one of caller, daemon and store knows would be lost.
    SchemaMismatch = 15,
    /// An address is of the prefix that this balancer's tunnels come from.
    SourcePrefixClash = 16,
    /// The maps of the packet path have no room. "setting" is the one that gives more; without it none does.
    MapsFull = 17,
    /// The maps would take more memory than they may.
    MemoryLimit = 18,
    /// Too many numbers are in use or in quarantine after other changes. The same call succeeds later.
    QuarantineFull = 19,
    /// There are as many overrides as there may be.
    TooManyOverrides = 20,
    /// The caller's role does not permit it.
    PermissionDenied = 21,
    /// A limit of the API, which the message names.
    ApiLimit = 22,
    /// The watch was read too slowly.
    WatchTooSlow = 23,
    /// There is another capture or probe, and there is only one at a time.
    InProgress = 24,
    /// A reload was refused, in part or whole; the message names each refused part.
    ReloadRefused = 25,
    /// The daemon stops.
    Stopping = 26,
    /// The maps or counters of the packet path cannot be read.
    MapsUnreadable = 27,
    /// The generation is in force, and the packet path is not there yet. "generation" is its number.
    PacketPathBehind = 28,
    /// The store cannot be read or written.
    StoreFailed = 29,
    /// The daemon or the kernel failed otherwise.
    Internal = 30,
    /// The balancer is a member of a fleet, or is not, and the call needs the other.
    FleetMembership = 31,
    /// etcd cannot be reached or takes no changes. Nothing changed.
    FleetUnavailable = 32,
    /// The outcome is unknown, because etcd did not answer. The same call may be repeated.
    FleetUnknown = 33,
    /// What etcd has does not follow from what this balancer has in force; an operator has to decide.
    FleetConflict = 34,
    /// The change was committed, and this balancer could not put it in force yet. "generation" is its number.
    FleetBehind = 35,
    /// The change removes so much that it needs force; nothing changed. Of the first removal that the message names, "kind", "name"
    /// and "pool" are as for OBJECT_NOT_FOUND, "removed" backends of "backends" would go.
    ForceRequired = 36,
}
impl ErrorReason {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "ERROR_REASON_UNSPECIFIED",
            Self::InvalidField => "ERROR_REASON_INVALID_FIELD",
            Self::InvalidConfiguration => "ERROR_REASON_INVALID_CONFIGURATION",
            Self::HashKeyUnset => "ERROR_REASON_HASH_KEY_UNSET",
            Self::SlotsUnset => "ERROR_REASON_SLOTS_UNSET",
            Self::GenerationConflict => "ERROR_REASON_GENERATION_CONFLICT",
            Self::EtagConflict => "ERROR_REASON_ETAG_CONFLICT",
            Self::Busy => "ERROR_REASON_BUSY",
            Self::ObjectNotFound => "ERROR_REASON_OBJECT_NOT_FOUND",
            Self::ObjectExists => "ERROR_REASON_OBJECT_EXISTS",
            Self::ObjectInUse => "ERROR_REASON_OBJECT_IN_USE",
            Self::ObjectNeeded => "ERROR_REASON_OBJECT_NEEDED",
            Self::GenerationNotFound => "ERROR_REASON_GENERATION_NOT_FOUND",
            Self::GenerationUnusable => "ERROR_REASON_GENERATION_UNUSABLE",
            Self::ConfigurationUnusable => "ERROR_REASON_CONFIGURATION_UNUSABLE",
            Self::SchemaMismatch => "ERROR_REASON_SCHEMA_MISMATCH",
            Self::SourcePrefixClash => "ERROR_REASON_SOURCE_PREFIX_CLASH",
            Self::MapsFull => "ERROR_REASON_MAPS_FULL",
            Self::MemoryLimit => "ERROR_REASON_MEMORY_LIMIT",
            Self::QuarantineFull => "ERROR_REASON_QUARANTINE_FULL",
            Self::TooManyOverrides => "ERROR_REASON_TOO_MANY_OVERRIDES",
            Self::PermissionDenied => "ERROR_REASON_PERMISSION_DENIED",
            Self::ApiLimit => "ERROR_REASON_API_LIMIT",
            Self::WatchTooSlow => "ERROR_REASON_WATCH_TOO_SLOW",
            Self::InProgress => "ERROR_REASON_IN_PROGRESS",
            Self::ReloadRefused => "ERROR_REASON_RELOAD_REFUSED",
            Self::Stopping => "ERROR_REASON_STOPPING",
            Self::MapsUnreadable => "ERROR_REASON_MAPS_UNREADABLE",
            Self::PacketPathBehind => "ERROR_REASON_PACKET_PATH_BEHIND",
            Self::StoreFailed => "ERROR_REASON_STORE_FAILED",
            Self::Internal => "ERROR_REASON_INTERNAL",
            Self::FleetMembership => "ERROR_REASON_FLEET_MEMBERSHIP",
            Self::FleetUnavailable => "ERROR_REASON_FLEET_UNAVAILABLE",
            Self::FleetUnknown => "ERROR_REASON_FLEET_UNKNOWN",
            Self::FleetConflict => "ERROR_REASON_FLEET_CONFLICT",
            Self::FleetBehind => "ERROR_REASON_FLEET_BEHIND",
            Self::ForceRequired => "ERROR_REASON_FORCE_REQUIRED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ERROR_REASON_UNSPECIFIED" => Some(Self::Unspecified),
            "ERROR_REASON_INVALID_FIELD" => Some(Self::InvalidField),
            "ERROR_REASON_INVALID_CONFIGURATION" => Some(Self::InvalidConfiguration),
            "ERROR_REASON_HASH_KEY_UNSET" => Some(Self::HashKeyUnset),
            "ERROR_REASON_SLOTS_UNSET" => Some(Self::SlotsUnset),
            "ERROR_REASON_GENERATION_CONFLICT" => Some(Self::GenerationConflict),
            "ERROR_REASON_ETAG_CONFLICT" => Some(Self::EtagConflict),
            "ERROR_REASON_BUSY" => Some(Self::Busy),
            "ERROR_REASON_OBJECT_NOT_FOUND" => Some(Self::ObjectNotFound),
            "ERROR_REASON_OBJECT_EXISTS" => Some(Self::ObjectExists),
            "ERROR_REASON_OBJECT_IN_USE" => Some(Self::ObjectInUse),
            "ERROR_REASON_OBJECT_NEEDED" => Some(Self::ObjectNeeded),
            "ERROR_REASON_GENERATION_NOT_FOUND" => Some(Self::GenerationNotFound),
            "ERROR_REASON_GENERATION_UNUSABLE" => Some(Self::GenerationUnusable),
            "ERROR_REASON_CONFIGURATION_UNUSABLE" => Some(Self::ConfigurationUnusable),
            "ERROR_REASON_SCHEMA_MISMATCH" => Some(Self::SchemaMismatch),
            "ERROR_REASON_SOURCE_PREFIX_CLASH" => Some(Self::SourcePrefixClash),
            "ERROR_REASON_MAPS_FULL" => Some(Self::MapsFull),
            "ERROR_REASON_MEMORY_LIMIT" => Some(Self::MemoryLimit),
            "ERROR_REASON_QUARANTINE_FULL" => Some(Self::QuarantineFull),
            "ERROR_REASON_TOO_MANY_OVERRIDES" => Some(Self::TooManyOverrides),
            "ERROR_REASON_PERMISSION_DENIED" => Some(Self::PermissionDenied),
            "ERROR_REASON_API_LIMIT" => Some(Self::ApiLimit),
            "ERROR_REASON_WATCH_TOO_SLOW" => Some(Self::WatchTooSlow),
            "ERROR_REASON_IN_PROGRESS" => Some(Self::InProgress),
            "ERROR_REASON_RELOAD_REFUSED" => Some(Self::ReloadRefused),
            "ERROR_REASON_STOPPING" => Some(Self::Stopping),
            "ERROR_REASON_MAPS_UNREADABLE" => Some(Self::MapsUnreadable),
            "ERROR_REASON_PACKET_PATH_BEHIND" => Some(Self::PacketPathBehind),
            "ERROR_REASON_STORE_FAILED" => Some(Self::StoreFailed),
            "ERROR_REASON_INTERNAL" => Some(Self::Internal),
            "ERROR_REASON_FLEET_MEMBERSHIP" => Some(Self::FleetMembership),
            "ERROR_REASON_FLEET_UNAVAILABLE" => Some(Self::FleetUnavailable),
            "ERROR_REASON_FLEET_UNKNOWN" => Some(Self::FleetUnknown),
            "ERROR_REASON_FLEET_CONFLICT" => Some(Self::FleetConflict),
            "ERROR_REASON_FLEET_BEHIND" => Some(Self::FleetBehind),
            "ERROR_REASON_FORCE_REQUIRED" => Some(Self::ForceRequired),
            _ => None,
        }
    }
}
/// A packet.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExplainRequest {
    /// Where it comes from, address and port: "198.51.100.7:40000", "\[2001:db8::7\]:40000". Must be set.
    #[prost(string, tag = "1")]
    pub client: ::prost::alloc::string::String,
    /// Where it goes to, address and port of a service, of the same IP version. Must be set.
    #[prost(string, tag = "2")]
    pub vip: ::prost::alloc::string::String,
    /// Protocol. Unset: TCP.
    #[prost(enumeration = "Protocol", tag = "3")]
    pub protocol: i32,
    /// A packet of an open connection instead of a SYN. Only for TCP. Unset: false.
    #[prost(bool, tag = "4")]
    pub open: bool,
}
/// What becomes of it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ExplainResponse {
    /// Generation of the names below; 0: nothing was applied yet. The maps may be on the way from one to
    /// the next.
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    /// What the packet is.
    #[prost(enumeration = "ExplainedPacket", tag = "2")]
    pub packet: i32,
    /// The service that it is of. Unset: no service has it.
    #[prost(message, optional, tag = "3")]
    pub service: ::core::option::Option<ExplainedService>,
    /// Hash of the flow, 16 hexadecimal digits. Empty: the pool has nobody.
    #[prost(string, tag = "4")]
    pub hash: ::prost::alloc::string::String,
    /// Slot of the flow in the first region. Unset: the pool has nobody.
    #[prost(message, optional, tag = "5")]
    pub slot: ::core::option::Option<ExplainedSlot>,
    /// Every entry that was asked, in order; then the rest of the slot's own list.
    #[prost(message, repeated, tag = "6")]
    pub steps: ::prost::alloc::vec::Vec<ExplainedStep>,
    /// The pool's regions in the order in which they are asked.
    #[prost(message, repeated, tag = "7")]
    pub regions: ::prost::alloc::vec::Vec<ExplainedRegion>,
    /// What the packet goes by instead of being placed anew.
    #[prost(enumeration = "ExplainedMemory", tag = "8")]
    pub memory: i32,
    /// Its verdict, by its name; "forwarded" where a backend has it.
    #[prost(string, tag = "9")]
    pub verdict: ::prost::alloc::string::String,
    /// Who has it. Unset: nobody, or the packet is dropped before.
    #[prost(message, optional, tag = "10")]
    pub choice: ::core::option::Option<ExplainedChoice>,
    /// Why, in a sentence for people.
    #[prost(string, tag = "11")]
    pub why: ::prost::alloc::string::String,
}
/// A service.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExplainedService {
    /// Name. Always set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Its pool. Always set.
    #[prost(string, tag = "2")]
    pub pool: ::prost::alloc::string::String,
    /// What its connections are hashed by. Always set.
    #[prost(enumeration = "Affinity", tag = "3")]
    pub affinity: i32,
}
/// A slot of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExplainedSlot {
    /// Its number, from 0.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Slots of the table.
    #[prost(uint32, tag = "2")]
    pub of: u32,
}
/// One entry of a list, and what was made of it.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExplainedStep {
    /// Region. Always set.
    #[prost(string, tag = "1")]
    pub region: ::prost::alloc::string::String,
    /// Slot whose list it is in. Unset: it is a standby of its region.
    #[prost(uint32, optional, tag = "2")]
    pub slot: ::core::option::Option<u32>,
    /// "owner", "alternate 1" to "alternate 3", "standby 0" to "standby 7".
    #[prost(string, tag = "3")]
    pub place: ::prost::alloc::string::String,
    /// Address. Always set.
    #[prost(string, tag = "4")]
    pub backend: ::prost::alloc::string::String,
    /// Packets that it accepts: "all", "open" (only those of open connections) or "nothing".
    #[prost(string, tag = "5")]
    pub accepts: ::prost::alloc::string::String,
    /// What was made of it.
    #[prost(enumeration = "ExplainedStepOutcome", tag = "6")]
    pub outcome: i32,
    /// The same in words.
    #[prost(string, tag = "7")]
    pub words: ::prost::alloc::string::String,
}
/// A region of the order, and what was made of it.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExplainedRegion {
    /// Name. Always set.
    #[prost(string, tag = "1")]
    pub region: ::prost::alloc::string::String,
    /// What was made of it.
    #[prost(enumeration = "ExplainedRegionOutcome", tag = "2")]
    pub outcome: i32,
}
/// Who has a packet.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExplainedChoice {
    /// Address. Always set.
    #[prost(string, tag = "1")]
    pub backend: ::prost::alloc::string::String,
    /// Region. Empty: it is in none that the pool asks now.
    #[prost(string, tag = "2")]
    pub region: ::prost::alloc::string::String,
    /// Packets that it accepts: "all", "open" (only those of open connections) or "nothing".
    #[prost(string, tag = "3")]
    pub accepts: ::prost::alloc::string::String,
    /// Whether it is where the table alone puts the connection.
    #[prost(bool, tag = "4")]
    pub owner: bool,
    /// MAC of the next hop, "02:00:00:00:00:01".
    #[prost(string, tag = "5")]
    pub next_hop: ::prost::alloc::string::String,
    /// Interface that the packet leaves by. Empty: there is none of this index any more.
    #[prost(string, tag = "6")]
    pub interface: ::prost::alloc::string::String,
    /// How the packet gets there. Always set.
    #[prost(enumeration = "Encapsulation", tag = "7")]
    pub encapsulation: i32,
    /// UDP port that it goes to. 0: none.
    #[prost(uint32, tag = "8")]
    pub gue_port: u32,
    /// Index of that interface in the network namespace of the daemon.
    #[prost(uint32, tag = "9")]
    pub interface_index: u32,
}
/// What a packet is to the packet path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ExplainedPacket {
    /// Never sent.
    Unspecified = 0,
    /// A SYN.
    NewConnection = 1,
    /// A packet of an open TCP connection.
    OpenConnection = 2,
    /// A UDP datagram.
    Datagram = 3,
}
impl ExplainedPacket {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "EXPLAINED_PACKET_UNSPECIFIED",
            Self::NewConnection => "EXPLAINED_PACKET_NEW_CONNECTION",
            Self::OpenConnection => "EXPLAINED_PACKET_OPEN_CONNECTION",
            Self::Datagram => "EXPLAINED_PACKET_DATAGRAM",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "EXPLAINED_PACKET_UNSPECIFIED" => Some(Self::Unspecified),
            "EXPLAINED_PACKET_NEW_CONNECTION" => Some(Self::NewConnection),
            "EXPLAINED_PACKET_OPEN_CONNECTION" => Some(Self::OpenConnection),
            "EXPLAINED_PACKET_DATAGRAM" => Some(Self::Datagram),
            _ => None,
        }
    }
}
/// What was made of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ExplainedStepOutcome {
    /// Never sent.
    Unspecified = 0,
    /// It has the packet.
    Chosen = 1,
    /// Its state does not allow it.
    State = 2,
    /// Its ramp leaves it this slot later.
    Ramp = 3,
    /// Its next hop has no MAC.
    NextHop = 4,
    /// It has all the new connections of its own limit.
    Full = 5,
    /// It was not asked: another had the packet before.
    NotAsked = 6,
}
impl ExplainedStepOutcome {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "EXPLAINED_STEP_OUTCOME_UNSPECIFIED",
            Self::Chosen => "EXPLAINED_STEP_OUTCOME_CHOSEN",
            Self::State => "EXPLAINED_STEP_OUTCOME_STATE",
            Self::Ramp => "EXPLAINED_STEP_OUTCOME_RAMP",
            Self::NextHop => "EXPLAINED_STEP_OUTCOME_NEXT_HOP",
            Self::Full => "EXPLAINED_STEP_OUTCOME_FULL",
            Self::NotAsked => "EXPLAINED_STEP_OUTCOME_NOT_ASKED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "EXPLAINED_STEP_OUTCOME_UNSPECIFIED" => Some(Self::Unspecified),
            "EXPLAINED_STEP_OUTCOME_CHOSEN" => Some(Self::Chosen),
            "EXPLAINED_STEP_OUTCOME_STATE" => Some(Self::State),
            "EXPLAINED_STEP_OUTCOME_RAMP" => Some(Self::Ramp),
            "EXPLAINED_STEP_OUTCOME_NEXT_HOP" => Some(Self::NextHop),
            "EXPLAINED_STEP_OUTCOME_FULL" => Some(Self::Full),
            "EXPLAINED_STEP_OUTCOME_NOT_ASKED" => Some(Self::NotAsked),
            _ => None,
        }
    }
}
/// What was made of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ExplainedRegionOutcome {
    /// Never sent.
    Unspecified = 0,
    /// It has the packet.
    Chosen = 1,
    /// It has the packet though it is full, as every region is.
    OverCapacity = 2,
    /// It has the packet though it is full: there is no budget for displaced connections.
    Held = 3,
    /// Its limit is reached.
    Full = 4,
    /// Its scaler is 0.
    Drained = 5,
    /// It has no capacity, because nobody there is healthy.
    Closed = 6,
    /// Nobody who was asked there may have the packet.
    NobodyUsable = 7,
    /// It was not asked.
    NotAsked = 8,
}
impl ExplainedRegionOutcome {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "EXPLAINED_REGION_OUTCOME_UNSPECIFIED",
            Self::Chosen => "EXPLAINED_REGION_OUTCOME_CHOSEN",
            Self::OverCapacity => "EXPLAINED_REGION_OUTCOME_OVER_CAPACITY",
            Self::Held => "EXPLAINED_REGION_OUTCOME_HELD",
            Self::Full => "EXPLAINED_REGION_OUTCOME_FULL",
            Self::Drained => "EXPLAINED_REGION_OUTCOME_DRAINED",
            Self::Closed => "EXPLAINED_REGION_OUTCOME_CLOSED",
            Self::NobodyUsable => "EXPLAINED_REGION_OUTCOME_NOBODY_USABLE",
            Self::NotAsked => "EXPLAINED_REGION_OUTCOME_NOT_ASKED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "EXPLAINED_REGION_OUTCOME_UNSPECIFIED" => Some(Self::Unspecified),
            "EXPLAINED_REGION_OUTCOME_CHOSEN" => Some(Self::Chosen),
            "EXPLAINED_REGION_OUTCOME_OVER_CAPACITY" => Some(Self::OverCapacity),
            "EXPLAINED_REGION_OUTCOME_HELD" => Some(Self::Held),
            "EXPLAINED_REGION_OUTCOME_FULL" => Some(Self::Full),
            "EXPLAINED_REGION_OUTCOME_DRAINED" => Some(Self::Drained),
            "EXPLAINED_REGION_OUTCOME_CLOSED" => Some(Self::Closed),
            "EXPLAINED_REGION_OUTCOME_NOBODY_USABLE" => Some(Self::NobodyUsable),
            "EXPLAINED_REGION_OUTCOME_NOT_ASKED" => Some(Self::NotAsked),
            _ => None,
        }
    }
}
/// What a packet goes by instead of being placed anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ExplainedMemory {
    /// Nothing: it is placed anew, or at home.
    Unspecified = 0,
    /// The handshake entry of its connection's SYN.
    Handshake = 1,
    /// The entry of a displaced connection.
    Displaced = 2,
    /// The entry of a tracked UDP flow.
    Tracked = 3,
    /// The table of its pool before a remap.
    PreviousHome = 4,
}
impl ExplainedMemory {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "EXPLAINED_MEMORY_UNSPECIFIED",
            Self::Handshake => "EXPLAINED_MEMORY_HANDSHAKE",
            Self::Displaced => "EXPLAINED_MEMORY_DISPLACED",
            Self::Tracked => "EXPLAINED_MEMORY_TRACKED",
            Self::PreviousHome => "EXPLAINED_MEMORY_PREVIOUS_HOME",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "EXPLAINED_MEMORY_UNSPECIFIED" => Some(Self::Unspecified),
            "EXPLAINED_MEMORY_HANDSHAKE" => Some(Self::Handshake),
            "EXPLAINED_MEMORY_DISPLACED" => Some(Self::Displaced),
            "EXPLAINED_MEMORY_TRACKED" => Some(Self::Tracked),
            "EXPLAINED_MEMORY_PREVIOUS_HOME" => Some(Self::PreviousHome),
            _ => None,
        }
    }
}
/// Empty: there is nothing to choose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetFleetStatusRequest {}
/// A fleet as one balancer sees it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FleetStatus {
    /// Name of the fleet in the settings. Empty: they name none.
    #[prost(string, tag = "1")]
    pub fleet: ::prost::alloc::string::String,
    /// Name of this balancer in the fleet. Empty: the settings name no fleet.
    #[prost(string, tag = "2")]
    pub balancer: ::prost::alloc::string::String,
    /// Whether this balancer is a member. The fields below are unset if it is not.
    #[prost(bool, tag = "3")]
    pub member: bool,
    /// What is wrong with etcd. Empty: it answers.
    #[prost(string, tag = "4")]
    pub etcd_problem: ::prost::alloc::string::String,
    /// Since when etcd_problem lasts. Unset: there is none.
    #[prost(message, optional, tag = "5")]
    pub etcd_problem_since: ::core::option::Option<::prost_types::Timestamp>,
    /// Why this balancer does not follow what etcd has, until a restore decides. Empty: it follows.
    #[prost(string, tag = "6")]
    pub conflict: ::prost::alloc::string::String,
    /// What etcd had when it was last read. It rises with each change of configuration or overrides of the fleet.
    #[prost(int64, tag = "7")]
    pub revision: i64,
    /// Generation that etcd had when it was last read.
    #[prost(uint64, tag = "8")]
    pub generation: u64,
    /// All members, by name.
    #[prost(message, repeated, tag = "9")]
    pub members: ::prost::alloc::vec::Vec<FleetMember>,
    /// Groups whose capacity is shared, by pool and region.
    #[prost(message, repeated, tag = "10")]
    pub groups: ::prost::alloc::vec::Vec<SharedGroup>,
    /// Epoch of the shares: it rises each time portions of a lost balancer are given to the others.
    #[prost(uint64, tag = "11")]
    pub epoch: u64,
    /// Members whose portions are being given to the others now.
    #[prost(string, repeated, tag = "12")]
    pub being_forgotten: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// The latest schema revision of configurations that all members understand: a change that needs a later one is refused.
    /// 0: unknown.
    #[prost(uint32, tag = "13")]
    pub schema_revision: u32,
    /// Whether the epoch is open: portions do not move until all members have said what they own.
    #[prost(bool, tag = "14")]
    pub epoch_open: bool,
    /// Revision that this balancer has in force. 0: none.
    #[prost(int64, tag = "15")]
    pub revision_in_force: i64,
}
/// A balancer of a fleet.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct FleetMember {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Where the others reach it, as "192.0.2.1:7946".
    #[prost(string, tag = "2")]
    pub address: ::prost::alloc::string::String,
    /// Region of its host. Empty: none.
    #[prost(string, tag = "3")]
    pub region: ::prost::alloc::string::String,
    /// Whether it renews its lease in etcd.
    #[prost(bool, tag = "4")]
    pub alive: bool,
    /// Version of its program. Empty: unknown.
    #[prost(string, tag = "5")]
    pub version: ::prost::alloc::string::String,
    /// Revision that it has in force. 0: unknown.
    #[prost(int64, tag = "6")]
    pub revision: i64,
    /// Generation that it has in force. 0: none, or unknown.
    #[prost(uint64, tag = "7")]
    pub generation: u64,
    /// Whether it has everything in force that it needs to take traffic.
    #[prost(bool, tag = "8")]
    pub ready: bool,
    /// Digest of its tables; equal digests send each connection to the same backend. Empty: unknown.
    #[prost(string, tag = "9")]
    pub tables: ::prost::alloc::string::String,
    /// Pools whose tables differ from those of compared_with, although both have the same revision in force. Empty although
    /// tables_agree is false: one of the two did not say, or its tables have changed meanwhile.
    #[prost(string, repeated, tag = "10")]
    pub differing_pools: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// What is wrong with it, in words.
    #[prost(string, repeated, tag = "11")]
    pub conditions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Milliseconds since its last message to this balancer. Unset: none came yet, or it is this balancer.
    #[prost(uint64, optional, tag = "12")]
    pub heard_ms_ago: ::core::option::Option<u64>,
    /// Why messages to it or from it are not taken. Empty: they are.
    #[prost(string, tag = "13")]
    pub peer_problem: ::prost::alloc::string::String,
    /// Latest schema revision of configurations that its program understands; that of its last start if it is not alive.
    /// Unset: unknown.
    #[prost(uint32, optional, tag = "14")]
    pub schema_revision: ::core::option::Option<u32>,
    /// Name of the balancer whose tables its own are compared with: this one in its region, and in any other region one that
    /// has the tables of most of the balancers there. Empty: they cannot be compared, as the revision is another one.
    #[prost(string, tag = "15")]
    pub compared_with: ::prost::alloc::string::String,
    /// Whether its tables are those of compared_with. Unset: they cannot be compared.
    #[prost(bool, optional, tag = "16")]
    pub tables_agree: ::core::option::Option<bool>,
    /// Why it is not ready, as it says itself. Empty: it is ready, or nothing is known.
    #[prost(string, tag = "17")]
    pub not_ready_cause: ::prost::alloc::string::String,
}
/// The capacity of a pool's backends in a region, as the fleet shares it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SharedGroup {
    /// Name of the pool.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Name of the region.
    #[prost(string, tag = "2")]
    pub region: ::prost::alloc::string::String,
    /// New connections a second of the whole fleet, as this balancer sees it. Unset: no limit, or capacity_unknown.
    #[prost(double, optional, tag = "3")]
    pub capacity_per_second: ::core::option::Option<f64>,
    /// What each balancer has of it, by name.
    #[prost(message, repeated, tag = "4")]
    pub shares: ::prost::alloc::vec::Vec<GroupShare>,
    /// The portion that this balancer gave to others, and that is not known to have arrived, 0 to 1.
    #[prost(double, tag = "5")]
    pub in_flight: f64,
    /// Whether this balancer does not know the capacity yet, as in its first moments.
    #[prost(bool, tag = "6")]
    pub capacity_unknown: bool,
}
/// What one balancer has of a capacity.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GroupShare {
    /// Name of the balancer.
    #[prost(string, tag = "1")]
    pub balancer: ::prost::alloc::string::String,
    /// The portion that it may admit, 0 to 1. The rest of one whole is on its way between balancers.
    #[prost(double, tag = "2")]
    pub portion: f64,
    /// New connections a second that it is offered.
    #[prost(double, tag = "3")]
    pub demand_per_second: f64,
}
/// How to join.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct JoinFleetRequest {
    /// Replace the configuration in force by that of the fleet although they differ. Unset: a difference is only reported.
    #[prost(bool, tag = "1")]
    pub replace_configuration: bool,
    /// Only check, and report what would change. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
    /// Found the fleet if it does not exist, although etcd has other fleets. Unset: that is refused, since the name may be
    /// misspelled.
    #[prost(bool, tag = "3")]
    pub new_fleet: bool,
}
/// What joining did, or would do.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct JoinFleetResponse {
    /// Whether the balancer is a member now.
    #[prost(bool, tag = "1")]
    pub joined: bool,
    /// Whether it is the first one, so that the fleet has its configuration.
    #[prost(bool, tag = "2")]
    pub founded: bool,
    /// Generation of the fleet. 0: it has none.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
    /// What the fleet's configuration changes at this balancer.
    #[prost(message, optional, tag = "4")]
    pub changes: ::core::option::Option<ApplyResult>,
}
/// How to leave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LeaveFleetRequest {
    /// Leave without giving portions to the others, as if it had died, and even if etcd does not answer. Unset: false.
    #[prost(bool, tag = "1")]
    pub abandon: bool,
    /// Only check. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
}
/// What leaving did, or would do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LeaveFleetResponse {
    /// Portions of capacities that the others must create again, because they were not given away.
    #[prost(bool, tag = "1")]
    pub abandoned: bool,
}
/// Which balancer to remove.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RemoveFleetMemberRequest {
    /// Name of the balancer. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Only check. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
}
/// Empty: it is removed, or could be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RemoveFleetMemberResponse {}
/// Which configuration is to count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RestoreFleetRequest {
    /// Only check, and report what would change. Unset: false.
    #[prost(bool, tag = "3")]
    pub validate_only: bool,
    /// Which configuration the fleet has from now on. Must be set.
    #[prost(oneof = "restore_fleet_request::Source", tags = "1, 2")]
    pub source: ::core::option::Option<restore_fleet_request::Source>,
}
/// Nested message and enum types in `RestoreFleetRequest`.
pub mod restore_fleet_request {
    /// Which configuration the fleet has from now on. Must be set.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Oneof)]
    pub enum Source {
        /// That of this balancer, as a new generation of the fleet.
        #[prost(bool, tag = "1")]
        ThisBalancer(bool),
        /// That of etcd, as a new generation of the fleet.
        #[prost(bool, tag = "2")]
        Etcd(bool),
    }
}
/// What the restore did, or would do.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RestoreFleetResponse {
    /// The new generation of the fleet.
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    /// What it changes at this balancer.
    #[prost(message, optional, tag = "2")]
    pub changes: ::core::option::Option<ApplyResult>,
}
/// Which backends.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CountBackendPacketsRequest {
    /// Addresses of backends; 1 to 10,000. Must be set.
    #[prost(string, repeated, tag = "1")]
    pub backends: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
/// What was counted.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CountBackendPacketsResponse {
    /// Packets that each balancer sent to each backend since its counter began, by balancer.
    #[prost(message, repeated, tag = "1")]
    pub balancers: ::prost::alloc::vec::Vec<BalancerPackets>,
    /// Live balancers that did not answer, with the cause. While there are any, a backend may have packets that are not counted.
    #[prost(string, repeated, tag = "2")]
    pub unanswered: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
/// What one balancer sent to backends.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BalancerPackets {
    /// Name of the balancer. Empty: it is no member of a fleet.
    #[prost(string, tag = "1")]
    pub balancer: ::prost::alloc::string::String,
    /// In the order of the request. A backend that it does not know has 0.
    #[prost(uint64, repeated, tag = "2")]
    pub packets: ::prost::alloc::vec::Vec<u64>,
}
/// Generated client implementations.
pub mod fleet_client {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    use tonic::codegen::http::Uri;
    /// A fleet: several balancers with one configuration and one set of capacities, which they share through etcd and among
    /// themselves. A balancer takes part once it has joined the fleet that its settings name.
    ///
    /// FAILED_PRECONDITION: the settings name no fleet, or the balancer is, or is not, a member of one. UNAVAILABLE: etcd cannot
    /// be reached, or takes no changes; the message says why. Nothing changed.
    #[derive(Debug, Clone)]
    pub struct FleetClient {
        inner: tonic::client::Grpc<tonic::transport::Channel>,
    }
    impl FleetClient {
        pub fn new(inner: tonic::transport::Channel) -> Self {
            let inner = tonic::client::Grpc::new(inner);
            Self { inner }
        }
        pub fn with_origin(inner: tonic::transport::Channel, origin: Uri) -> Self {
            let inner = tonic::client::Grpc::with_origin(inner, origin);
            Self { inner }
        }
        /// Compress requests with the given encoding.
        ///
        /// This requires the server to support it otherwise it might respond with an
        /// error.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.send_compressed(encoding);
            self
        }
        /// Enable decompressing responses.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.accept_compressed(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_decoding_message_size(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_encoding_message_size(limit);
            self
        }
        /// The fleet as this balancer sees it.
        pub fn get_fleet_status(
            &mut self,
            request: impl tonic::IntoRequest<super::GetFleetStatusRequest>,
        ) -> BoxFuture<tonic::Response<super::FleetStatus>, tonic::Status> {
            self.send_get_fleet_status(request.into_request())
        }
        /// Makes this balancer a member of the fleet. The fleet's configuration replaces its own; if the fleet has none yet, it
        /// gets that of this balancer.
        pub fn join_fleet(
            &mut self,
            request: impl tonic::IntoRequest<super::JoinFleetRequest>,
        ) -> BoxFuture<tonic::Response<super::JoinFleetResponse>, tonic::Status> {
            self.send_join_fleet(request.into_request())
        }
        /// Makes this balancer independent again, with the configuration that it has. It gives its portions of the capacities to
        /// the others first.
        pub fn leave_fleet(
            &mut self,
            request: impl tonic::IntoRequest<super::LeaveFleetRequest>,
        ) -> BoxFuture<tonic::Response<super::LeaveFleetResponse>, tonic::Status> {
            self.send_leave_fleet(request.into_request())
        }
        /// Removes another balancer, which is gone for good, from the fleet. The others share its portions of the capacities.
        pub fn remove_fleet_member(
            &mut self,
            request: impl tonic::IntoRequest<super::RemoveFleetMemberRequest>,
        ) -> BoxFuture<
            tonic::Response<super::RemoveFleetMemberResponse>,
            tonic::Status,
        > {
            self.send_remove_fleet_member(request.into_request())
        }
        /// Ends a conflict between what etcd has and what balancers have in force, as after a restore of etcd from a backup.
        pub fn restore_fleet(
            &mut self,
            request: impl tonic::IntoRequest<super::RestoreFleetRequest>,
        ) -> BoxFuture<tonic::Response<super::RestoreFleetResponse>, tonic::Status> {
            self.send_restore_fleet(request.into_request())
        }
        /// Packets that went to backends, over all live balancers of the fleet; of a balancer that is no member its own.
        pub fn count_backend_packets(
            &mut self,
            request: impl tonic::IntoRequest<super::CountBackendPacketsRequest>,
        ) -> BoxFuture<
            tonic::Response<super::CountBackendPacketsResponse>,
            tonic::Status,
        > {
            self.send_count_backend_packets(request.into_request())
        }
        fn send_get_fleet_status(
            &self,
            request: tonic::Request<super::GetFleetStatusRequest>,
        ) -> BoxFuture<tonic::Response<super::FleetStatus>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Fleet/GetFleetStatus",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Fleet", "GetFleetStatus"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_join_fleet(
            &self,
            request: tonic::Request<super::JoinFleetRequest>,
        ) -> BoxFuture<tonic::Response<super::JoinFleetResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Fleet/JoinFleet",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Fleet", "JoinFleet"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_leave_fleet(
            &self,
            request: tonic::Request<super::LeaveFleetRequest>,
        ) -> BoxFuture<tonic::Response<super::LeaveFleetResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Fleet/LeaveFleet",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Fleet", "LeaveFleet"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_remove_fleet_member(
            &self,
            request: tonic::Request<super::RemoveFleetMemberRequest>,
        ) -> BoxFuture<
            tonic::Response<super::RemoveFleetMemberResponse>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Fleet/RemoveFleetMember",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Fleet", "RemoveFleetMember"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_restore_fleet(
            &self,
            request: tonic::Request<super::RestoreFleetRequest>,
        ) -> BoxFuture<tonic::Response<super::RestoreFleetResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Fleet/RestoreFleet",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Fleet", "RestoreFleet"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_count_backend_packets(
            &self,
            request: tonic::Request<super::CountBackendPacketsRequest>,
        ) -> BoxFuture<
            tonic::Response<super::CountBackendPacketsResponse>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Fleet/CountBackendPackets",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Fleet", "CountBackendPackets"));
                inner.unary(req, path, codec).await
            })
        }
    }
}
/// Generated server implementations.
pub mod fleet_server {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    /// Generated trait containing gRPC methods that should be implemented for use with FleetServer.
    #[async_trait]
    pub trait Fleet: std::marker::Send + std::marker::Sync + 'static {
        /// The fleet as this balancer sees it.
        async fn get_fleet_status(
            &self,
            request: tonic::Request<super::GetFleetStatusRequest>,
        ) -> std::result::Result<tonic::Response<super::FleetStatus>, tonic::Status>;
        /// Makes this balancer a member of the fleet. The fleet's configuration replaces its own; if the fleet has none yet, it
        /// gets that of this balancer.
        async fn join_fleet(
            &self,
            request: tonic::Request<super::JoinFleetRequest>,
        ) -> std::result::Result<
            tonic::Response<super::JoinFleetResponse>,
            tonic::Status,
        >;
        /// Makes this balancer independent again, with the configuration that it has. It gives its portions of the capacities to
        /// the others first.
        async fn leave_fleet(
            &self,
            request: tonic::Request<super::LeaveFleetRequest>,
        ) -> std::result::Result<
            tonic::Response<super::LeaveFleetResponse>,
            tonic::Status,
        >;
        /// Removes another balancer, which is gone for good, from the fleet. The others share its portions of the capacities.
        async fn remove_fleet_member(
            &self,
            request: tonic::Request<super::RemoveFleetMemberRequest>,
        ) -> std::result::Result<
            tonic::Response<super::RemoveFleetMemberResponse>,
            tonic::Status,
        >;
        /// Ends a conflict between what etcd has and what balancers have in force, as after a restore of etcd from a backup.
        async fn restore_fleet(
            &self,
            request: tonic::Request<super::RestoreFleetRequest>,
        ) -> std::result::Result<
            tonic::Response<super::RestoreFleetResponse>,
            tonic::Status,
        >;
        /// Packets that went to backends, over all live balancers of the fleet; of a balancer that is no member its own.
        async fn count_backend_packets(
            &self,
            request: tonic::Request<super::CountBackendPacketsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::CountBackendPacketsResponse>,
            tonic::Status,
        >;
    }
    /// A fleet: several balancers with one configuration and one set of capacities, which they share through etcd and among
    /// themselves. A balancer takes part once it has joined the fleet that its settings name.
    ///
    /// FAILED_PRECONDITION: the settings name no fleet, or the balancer is, or is not, a member of one. UNAVAILABLE: etcd cannot
    /// be reached, or takes no changes; the message says why. Nothing changed.
    pub struct FleetServer {
        inner: Arc<dyn Fleet>,
        accept_compression_encodings: EnabledCompressionEncodings,
        send_compression_encodings: EnabledCompressionEncodings,
        max_decoding_message_size: Option<usize>,
        max_encoding_message_size: Option<usize>,
    }
    impl FleetServer {
        pub fn new(inner: impl Fleet) -> Self {
            Self::from_arc(Arc::new(inner))
        }
        pub fn from_arc(inner: Arc<dyn Fleet>) -> Self {
            Self {
                inner,
                accept_compression_encodings: Default::default(),
                send_compression_encodings: Default::default(),
                max_decoding_message_size: None,
                max_encoding_message_size: None,
            }
        }
        /// Enable decompressing requests with the given encoding.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.accept_compression_encodings.enable(encoding);
            self
        }
        /// Compress responses with the given encoding, if the client supports it.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.send_compression_encodings.enable(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.max_decoding_message_size = Some(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.max_encoding_message_size = Some(limit);
            self
        }
    }
    impl tonic::codegen::Service<http::Request<tonic::body::Body>> for FleetServer {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;
        fn poll_ready(
            &mut self,
            _cx: &mut Context<'_>,
        ) -> Poll<std::result::Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, req: http::Request<tonic::body::Body>) -> Self::Future {
            match req.uri().path() {
                "/spillway.v1.Fleet/GetFleetStatus" => {
                    #[allow(non_camel_case_types)]
                    struct GetFleetStatusSvc(pub Arc<dyn Fleet>);
                    impl tonic::server::UnaryService<super::GetFleetStatusRequest>
                    for GetFleetStatusSvc {
                        type Response = super::FleetStatus;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::GetFleetStatusRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Fleet as Fleet>::get_fleet_status(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GetFleetStatusSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Fleet/JoinFleet" => {
                    #[allow(non_camel_case_types)]
                    struct JoinFleetSvc(pub Arc<dyn Fleet>);
                    impl tonic::server::UnaryService<super::JoinFleetRequest>
                    for JoinFleetSvc {
                        type Response = super::JoinFleetResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::JoinFleetRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Fleet as Fleet>::join_fleet(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = JoinFleetSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Fleet/LeaveFleet" => {
                    #[allow(non_camel_case_types)]
                    struct LeaveFleetSvc(pub Arc<dyn Fleet>);
                    impl tonic::server::UnaryService<super::LeaveFleetRequest>
                    for LeaveFleetSvc {
                        type Response = super::LeaveFleetResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::LeaveFleetRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Fleet as Fleet>::leave_fleet(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = LeaveFleetSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Fleet/RemoveFleetMember" => {
                    #[allow(non_camel_case_types)]
                    struct RemoveFleetMemberSvc(pub Arc<dyn Fleet>);
                    impl tonic::server::UnaryService<super::RemoveFleetMemberRequest>
                    for RemoveFleetMemberSvc {
                        type Response = super::RemoveFleetMemberResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::RemoveFleetMemberRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Fleet as Fleet>::remove_fleet_member(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = RemoveFleetMemberSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Fleet/RestoreFleet" => {
                    #[allow(non_camel_case_types)]
                    struct RestoreFleetSvc(pub Arc<dyn Fleet>);
                    impl tonic::server::UnaryService<super::RestoreFleetRequest>
                    for RestoreFleetSvc {
                        type Response = super::RestoreFleetResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::RestoreFleetRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Fleet as Fleet>::restore_fleet(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = RestoreFleetSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Fleet/CountBackendPackets" => {
                    #[allow(non_camel_case_types)]
                    struct CountBackendPacketsSvc(pub Arc<dyn Fleet>);
                    impl tonic::server::UnaryService<super::CountBackendPacketsRequest>
                    for CountBackendPacketsSvc {
                        type Response = super::CountBackendPacketsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::CountBackendPacketsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Fleet as Fleet>::count_backend_packets(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CountBackendPacketsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                _ => {
                    Box::pin(async move {
                        let mut response = http::Response::new(
                            tonic::body::Body::default(),
                        );
                        let headers = response.headers_mut();
                        headers
                            .insert(
                                tonic::Status::GRPC_STATUS,
                                (tonic::Code::Unimplemented as i32).into(),
                            );
                        headers
                            .insert(
                                http::header::CONTENT_TYPE,
                                tonic::metadata::GRPC_CONTENT_TYPE,
                            );
                        Ok(response)
                    })
                }
            }
        }
    }
    impl Clone for FleetServer {
        fn clone(&self) -> Self {
            let inner = self.inner.clone();
            Self {
                inner,
                accept_compression_encodings: self.accept_compression_encodings,
                send_compression_encodings: self.send_compression_encodings,
                max_decoding_message_size: self.max_decoding_message_size,
                max_encoding_message_size: self.max_encoding_message_size,
            }
        }
    }
    /// Generated gRPC service name
    pub const SERVICE_NAME: &str = "spillway.v1.Fleet";
    impl tonic::server::NamedService for FleetServer {
        const NAME: &'static str = SERVICE_NAME;
    }
}
/// What is added.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CreateRegionRequest {
    /// The region. Must be set.
    #[prost(message, optional, tag = "1")]
    pub region: ::core::option::Option<Region>,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
    /// As in ApplyRequest; refused only where it is higher than the daemon's. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "3")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "4")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// The region that was added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateRegionResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub region: ::core::option::Option<Region>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// Which one.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetRegionRequest {
    /// Its name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
/// Which ones.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListRegionsRequest {
    /// Most objects of the answer, 1 to 10,000; it also has fewer where they would take more than 3 MiB. Unset: 1,000.
    #[prost(uint32, tag = "1")]
    pub page_size: u32,
    /// Where to go on: next_page_token of an answer to the same request. Unset: at the beginning.
    #[prost(string, tag = "2")]
    pub page_token: ::prost::alloc::string::String,
}
/// Regions.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListRegionsResponse {
    /// By name. Empty: there are none.
    #[prost(message, repeated, tag = "1")]
    pub regions: ::prost::alloc::vec::Vec<Region>,
    /// The page_token of the next page. Empty: there is none.
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
    /// The generation that they are of.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
}
/// What is changed.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct UpdateRegionRequest {
    /// The region; its name says which one. Must be set.
    #[prost(message, optional, tag = "1")]
    pub region: ::core::option::Option<Region>,
    /// Paths of the fields that are taken over, as "overflow_to". One that is unset in region
    /// becomes unset; a list is taken over whole. "\*": all. Unset: the fields that are set in region.
    #[prost(message, optional, tag = "2")]
    pub update_mask: ::core::option::Option<::prost_types::FieldMask>,
    /// Add it, with all that is set in it, where it is missing and no etag is given. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// As in ApplyRequest; one that is lower than the daemon's is refused only where a field that is a message, or
    /// a list of messages, is taken over whole. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "5")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "6")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "7")]
    pub reason: ::prost::alloc::string::String,
}
/// The region that was changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateRegionResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub region: ::core::option::Option<Region>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is taken away.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteRegionRequest {
    /// Its name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Take it away only while it has this etag. Unset: whatever it has.
    #[prost(string, tag = "2")]
    pub etag: ::prost::alloc::string::String,
    /// Answer OK where there is none. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// What is in force without it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteRegionResponse {
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "1")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is added.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CreateHealthCheckRequest {
    /// The health check. Must be set.
    #[prost(message, optional, tag = "1")]
    pub health_check: ::core::option::Option<HealthCheck>,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
    /// As in ApplyRequest; refused only where it is higher than the daemon's. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "3")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "4")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// The health check that was added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateHealthCheckResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub health_check: ::core::option::Option<HealthCheck>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// Which one.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetHealthCheckRequest {
    /// Its name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
/// Which ones.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListHealthChecksRequest {
    /// Most objects of the answer, 1 to 10,000; it also has fewer where they would take more than 3 MiB. Unset: 1,000.
    #[prost(uint32, tag = "1")]
    pub page_size: u32,
    /// Where to go on: next_page_token of an answer to the same request. Unset: at the beginning.
    #[prost(string, tag = "2")]
    pub page_token: ::prost::alloc::string::String,
}
/// Health checks.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListHealthChecksResponse {
    /// By name. Empty: there are none.
    #[prost(message, repeated, tag = "1")]
    pub health_checks: ::prost::alloc::vec::Vec<HealthCheck>,
    /// The page_token of the next page. Empty: there is none.
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
    /// The generation that they are of.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
}
/// What is changed.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct UpdateHealthCheckRequest {
    /// The health check; its name says which one. Must be set.
    #[prost(message, optional, tag = "1")]
    pub health_check: ::core::option::Option<HealthCheck>,
    /// Paths of the fields that are taken over, as "http.path". One that is unset in health_check
    /// becomes unset; a list is taken over whole. "\*": all. Unset: the fields that are set in health_check.
    #[prost(message, optional, tag = "2")]
    pub update_mask: ::core::option::Option<::prost_types::FieldMask>,
    /// Add it, with all that is set in it, where it is missing and no etag is given. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// As in ApplyRequest; one that is lower than the daemon's is refused only where a field that is a message, or
    /// a list of messages, is taken over whole. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "5")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "6")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "7")]
    pub reason: ::prost::alloc::string::String,
}
/// The health check that was changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateHealthCheckResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub health_check: ::core::option::Option<HealthCheck>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is taken away.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteHealthCheckRequest {
    /// Its name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Take it away only while it has this etag. Unset: whatever it has.
    #[prost(string, tag = "2")]
    pub etag: ::prost::alloc::string::String,
    /// Answer OK where there is none. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// What is in force without it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteHealthCheckResponse {
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "1")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreatePoolRequest {
    /// The pool. Must be set.
    #[prost(message, optional, tag = "1")]
    pub pool: ::core::option::Option<Pool>,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
    /// As in ApplyRequest; refused only where it is higher than the daemon's. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "3")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "4")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// The pool that was added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreatePoolResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub pool: ::core::option::Option<Pool>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// Which one.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetPoolRequest {
    /// Its name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
/// Which ones.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListPoolsRequest {
    /// Most objects of the answer, 1 to 10,000; it also has fewer where they would take more than 3 MiB. Unset: 1,000.
    #[prost(uint32, tag = "1")]
    pub page_size: u32,
    /// Where to go on: next_page_token of an answer to the same request. Unset: at the beginning.
    #[prost(string, tag = "2")]
    pub page_token: ::prost::alloc::string::String,
}
/// Pools.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListPoolsResponse {
    /// By name. Empty: there are none.
    #[prost(message, repeated, tag = "1")]
    pub pools: ::prost::alloc::vec::Vec<Pool>,
    /// The page_token of the next page. Empty: there is none.
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
    /// The generation that they are of.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
}
/// What is changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdatePoolRequest {
    /// The pool; its name says which one. Must be set.
    #[prost(message, optional, tag = "1")]
    pub pool: ::core::option::Option<Pool>,
    /// Paths of the fields that are taken over, as "health_checks". One that is unset in pool
    /// becomes unset; a list is taken over whole. "\*": all. Unset: the fields that are set in pool.
    #[prost(message, optional, tag = "2")]
    pub update_mask: ::core::option::Option<::prost_types::FieldMask>,
    /// Add it, with all that is set in it, where it is missing and no etag is given. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// As in ApplyRequest; one that is lower than the daemon's is refused only where a field that is a message, or
    /// a list of messages, is taken over whole. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "5")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "6")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "7")]
    pub reason: ::prost::alloc::string::String,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "8")]
    pub force: bool,
}
/// The pool that was changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdatePoolResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub pool: ::core::option::Option<Pool>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is taken away.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeletePoolRequest {
    /// Its name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Take it away only while it has this etag. Unset: whatever it has.
    #[prost(string, tag = "2")]
    pub etag: ::prost::alloc::string::String,
    /// Answer OK where there is none. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// What is in force without it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeletePoolResponse {
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "1")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateBackendRequest {
    /// The backend. Must be set, its pool too.
    #[prost(message, optional, tag = "1")]
    pub backend: ::core::option::Option<Backend>,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
    /// As in ApplyRequest; refused only where it is higher than the daemon's. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "3")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "4")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// The backend that was added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateBackendResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub backend: ::core::option::Option<Backend>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// Which one.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetBackendRequest {
    /// Name of its pool. Must be set.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Its address. Must be set.
    #[prost(string, tag = "2")]
    pub address: ::prost::alloc::string::String,
}
/// Which ones.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListBackendsRequest {
    /// Most objects of the answer, 1 to 10,000; it also has fewer where they would take more than 3 MiB. Unset: 1,000.
    #[prost(uint32, tag = "1")]
    pub page_size: u32,
    /// Where to go on: next_page_token of an answer to the same request. Unset: at the beginning.
    #[prost(string, tag = "2")]
    pub page_token: ::prost::alloc::string::String,
    /// Only those of this pool. Unset: of all pools.
    #[prost(string, tag = "3")]
    pub pool: ::prost::alloc::string::String,
    /// Only those in this region. Unset: in all regions.
    #[prost(string, tag = "4")]
    pub region: ::prost::alloc::string::String,
    /// Only those of which the configuration asks this. Unset: any.
    #[prost(enumeration = "AdminState", tag = "5")]
    pub admin_state: i32,
}
/// Backends.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListBackendsResponse {
    /// By pool and address. Empty: there are none.
    #[prost(message, repeated, tag = "1")]
    pub backends: ::prost::alloc::vec::Vec<Backend>,
    /// The page_token of the next page. Empty: there is none.
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
    /// The generation that they are of.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
}
/// What is changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateBackendRequest {
    /// The backend; its pool and address say which one. Must be set.
    #[prost(message, optional, tag = "1")]
    pub backend: ::core::option::Option<Backend>,
    /// Paths of the fields that are taken over, as "admin_state". One that is unset in backend
    /// becomes unset; a list is taken over whole. "\*": all. Unset: the fields that are set in backend.
    #[prost(message, optional, tag = "2")]
    pub update_mask: ::core::option::Option<::prost_types::FieldMask>,
    /// Add it, with all that is set in it, where it is missing and no etag is given. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// As in ApplyRequest; one that is lower than the daemon's is refused only where a field that is a message, or
    /// a list of messages, is taken over whole. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "5")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "6")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "7")]
    pub reason: ::prost::alloc::string::String,
}
/// The backend that was changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateBackendResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub backend: ::core::option::Option<Backend>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is taken away.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteBackendRequest {
    /// Name of its pool. Must be set.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Its address. Must be set.
    #[prost(string, tag = "2")]
    pub address: ::prost::alloc::string::String,
    /// Take it away only while it has this etag. Unset: whatever it has.
    #[prost(string, tag = "3")]
    pub etag: ::prost::alloc::string::String,
    /// Answer OK where there is none. Unset: false.
    #[prost(bool, tag = "4")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "5")]
    pub validate_only: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "6")]
    pub reason: ::prost::alloc::string::String,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "7")]
    pub force: bool,
}
/// What is in force without it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteBackendResponse {
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "1")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateServiceRequest {
    /// The service. Must be set.
    #[prost(message, optional, tag = "1")]
    pub service: ::core::option::Option<Service>,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
    /// As in ApplyRequest; refused only where it is higher than the daemon's. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "3")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "4")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// The service that was added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateServiceResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub service: ::core::option::Option<Service>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// Which one.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetServiceRequest {
    /// Its name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
/// Which ones.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListServicesRequest {
    /// Most objects of the answer, 1 to 10,000; it also has fewer where they would take more than 3 MiB. Unset: 1,000.
    #[prost(uint32, tag = "1")]
    pub page_size: u32,
    /// Where to go on: next_page_token of an answer to the same request. Unset: at the beginning.
    #[prost(string, tag = "2")]
    pub page_token: ::prost::alloc::string::String,
    /// Only those of this pool. Unset: of all pools.
    #[prost(string, tag = "3")]
    pub pool: ::prost::alloc::string::String,
}
/// Services.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListServicesResponse {
    /// By name. Empty: there are none.
    #[prost(message, repeated, tag = "1")]
    pub services: ::prost::alloc::vec::Vec<Service>,
    /// The page_token of the next page. Empty: there is none.
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
    /// The generation that they are of.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
}
/// What is changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateServiceRequest {
    /// The service; its name says which one. Must be set.
    #[prost(message, optional, tag = "1")]
    pub service: ::core::option::Option<Service>,
    /// Paths of the fields that are taken over, as "pool". One that is unset in service
    /// becomes unset; a list is taken over whole. "\*": all. Unset: the fields that are set in service.
    #[prost(message, optional, tag = "2")]
    pub update_mask: ::core::option::Option<::prost_types::FieldMask>,
    /// Add it, with all that is set in it, where it is missing and no etag is given. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// As in ApplyRequest; one that is lower than the daemon's is refused only where a field that is a message, or
    /// a list of messages, is taken over whole. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "5")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "6")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "7")]
    pub reason: ::prost::alloc::string::String,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "8")]
    pub force: bool,
}
/// The service that was changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateServiceResponse {
    /// It as it is in force, or would be. Always set.
    #[prost(message, optional, tag = "1")]
    pub service: ::core::option::Option<Service>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is taken away.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteServiceRequest {
    /// Its name. Must be set.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Take it away only while it has this etag. Unset: whatever it has.
    #[prost(string, tag = "2")]
    pub etag: ::prost::alloc::string::String,
    /// Answer OK where there is none. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// What is in force without it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteServiceResponse {
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "1")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BatchCreateBackendsRequest {
    /// The backends, 1 to 10,000, each once; of any pools. Must be set, their pools too.
    #[prost(message, repeated, tag = "1")]
    pub backends: ::prost::alloc::vec::Vec<Backend>,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
    /// As in ApplyRequest; refused only where it is higher than the daemon's. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "3")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "4")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
}
/// The backends that were added.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BatchCreateBackendsResponse {
    /// They as they are in force, or would be, in the order of the request.
    #[prost(message, repeated, tag = "1")]
    pub backends: ::prost::alloc::vec::Vec<Backend>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BatchUpdateBackendsRequest {
    /// The backends, 1 to 10,000, each once; their pools and addresses say which ones. Must be set.
    #[prost(message, repeated, tag = "1")]
    pub backends: ::prost::alloc::vec::Vec<Backend>,
    /// Paths of the fields that are taken over of each of them, as in UpdateBackendRequest. Unset: the fields that are set
    /// in the backend.
    #[prost(message, optional, tag = "2")]
    pub update_mask: ::core::option::Option<::prost_types::FieldMask>,
    /// As in UpdateBackendRequest. Unset: false.
    #[prost(bool, tag = "3")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "4")]
    pub validate_only: bool,
    /// As in UpdateBackendRequest. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "5")]
    pub schema_revision: i32,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "6")]
    pub any_schema: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "7")]
    pub reason: ::prost::alloc::string::String,
}
/// The backends that were changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BatchUpdateBackendsResponse {
    /// They as they are in force, or would be, in the order of the request.
    #[prost(message, repeated, tag = "1")]
    pub backends: ::prost::alloc::vec::Vec<Backend>,
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "2")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// What is taken away.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BatchDeleteBackendsRequest {
    /// The backends, 1 to 10,000, each once, of which pool, address and etag count: as in DeleteBackendRequest. Must be set.
    #[prost(message, repeated, tag = "1")]
    pub backends: ::prost::alloc::vec::Vec<Backend>,
    /// Leave out those that are not there. Unset: false.
    #[prost(bool, tag = "2")]
    pub allow_missing: bool,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "3")]
    pub validate_only: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "4")]
    pub reason: ::prost::alloc::string::String,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "5")]
    pub force: bool,
}
/// What is in force without them.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BatchDeleteBackendsResponse {
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "1")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// Generated client implementations.
pub mod objects_client {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    use tonic::codegen::http::Uri;
    /// The configuration in force, object by object. Names are the ids; a backend's is its pool and its
    /// address, however that is spelt. Each call that changes something makes a generation of its own,
    /// whole and checked as Apply does; nothing of what somebody else changes in the meantime is lost.
    ///
    /// Every object has an etag, a digest of its content with all defaults spelt out: it stays as long as
    /// the content does, also over restarts. A pool's content includes its backends. Objects of answers have
    /// every default spelt out.
    ///
    /// A list is read a page at a time. Each page is of the configuration then in force, so an object that
    /// comes or goes in the meantime may be missing; those that stay are all listed, and none twice.
    ///
    /// An update takes over what its mask names. A field that is not named and stands as it would be unset,
    /// whoever set it, follows the others: a check's timeout goes with its interval. A switch that is on stays.
    ///
    /// INVALID_ARGUMENT names the field and changes nothing; the trailer "spillway-field" has its path, as
    /// in "pool.backends\[1\].address", or "pools\[0\].groups\[1\].region" where another object than the one that
    /// was sent does not go with it. NOT_FOUND: there is no such object, or no such pool.
    /// ALREADY_EXISTS: another object than the one that was sent has the name. FAILED_PRECONDITION: the
    /// object is in use, or the others do not hold without it; the message names the user; or the change removes so much that it
    /// needs force. ABORTED: the etag
    /// is not that of the object in force, or others changed the configuration so often meanwhile that the
    /// call gave up. RESOURCE_EXHAUSTED and INTERNAL: as for Apply.
    #[derive(Debug, Clone)]
    pub struct ObjectsClient {
        inner: tonic::client::Grpc<tonic::transport::Channel>,
    }
    impl ObjectsClient {
        pub fn new(inner: tonic::transport::Channel) -> Self {
            let inner = tonic::client::Grpc::new(inner);
            Self { inner }
        }
        pub fn with_origin(inner: tonic::transport::Channel, origin: Uri) -> Self {
            let inner = tonic::client::Grpc::with_origin(inner, origin);
            Self { inner }
        }
        /// Compress requests with the given encoding.
        ///
        /// This requires the server to support it otherwise it might respond with an
        /// error.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.send_compressed(encoding);
            self
        }
        /// Enable decompressing responses.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.accept_compressed(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_decoding_message_size(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_encoding_message_size(limit);
            self
        }
        /// Adds a region. One that is there already and is equal: nothing changes.
        pub fn create_region(
            &mut self,
            request: impl tonic::IntoRequest<super::CreateRegionRequest>,
        ) -> BoxFuture<tonic::Response<super::CreateRegionResponse>, tonic::Status> {
            self.send_create_region(request.into_request())
        }
        /// The region of this name.
        pub fn get_region(
            &mut self,
            request: impl tonic::IntoRequest<super::GetRegionRequest>,
        ) -> BoxFuture<tonic::Response<super::Region>, tonic::Status> {
            self.send_get_region(request.into_request())
        }
        /// All of them, by name, a page at a time.
        pub fn list_regions(
            &mut self,
            request: impl tonic::IntoRequest<super::ListRegionsRequest>,
        ) -> BoxFuture<tonic::Response<super::ListRegionsResponse>, tonic::Status> {
            self.send_list_regions(request.into_request())
        }
        /// Changes the fields that the mask names.
        pub fn update_region(
            &mut self,
            request: impl tonic::IntoRequest<super::UpdateRegionRequest>,
        ) -> BoxFuture<tonic::Response<super::UpdateRegionResponse>, tonic::Status> {
            self.send_update_region(request.into_request())
        }
        /// Takes it away. FAILED_PRECONDITION: a pool has backends or settings there or prefers it, or another
        /// region overflows to it.
        pub fn delete_region(
            &mut self,
            request: impl tonic::IntoRequest<super::DeleteRegionRequest>,
        ) -> BoxFuture<tonic::Response<super::DeleteRegionResponse>, tonic::Status> {
            self.send_delete_region(request.into_request())
        }
        /// Adds a health check. One that is there already and is equal: nothing changes.
        pub fn create_health_check(
            &mut self,
            request: impl tonic::IntoRequest<super::CreateHealthCheckRequest>,
        ) -> BoxFuture<
            tonic::Response<super::CreateHealthCheckResponse>,
            tonic::Status,
        > {
            self.send_create_health_check(request.into_request())
        }
        /// The health check of this name.
        pub fn get_health_check(
            &mut self,
            request: impl tonic::IntoRequest<super::GetHealthCheckRequest>,
        ) -> BoxFuture<tonic::Response<super::HealthCheck>, tonic::Status> {
            self.send_get_health_check(request.into_request())
        }
        /// All of them, by name, a page at a time.
        pub fn list_health_checks(
            &mut self,
            request: impl tonic::IntoRequest<super::ListHealthChecksRequest>,
        ) -> BoxFuture<tonic::Response<super::ListHealthChecksResponse>, tonic::Status> {
            self.send_list_health_checks(request.into_request())
        }
        /// Changes the fields that the mask names.
        pub fn update_health_check(
            &mut self,
            request: impl tonic::IntoRequest<super::UpdateHealthCheckRequest>,
        ) -> BoxFuture<
            tonic::Response<super::UpdateHealthCheckResponse>,
            tonic::Status,
        > {
            self.send_update_health_check(request.into_request())
        }
        /// Takes it away. FAILED_PRECONDITION: a pool is checked by it.
        pub fn delete_health_check(
            &mut self,
            request: impl tonic::IntoRequest<super::DeleteHealthCheckRequest>,
        ) -> BoxFuture<
            tonic::Response<super::DeleteHealthCheckResponse>,
            tonic::Status,
        > {
            self.send_delete_health_check(request.into_request())
        }
        /// Adds a pool with its backends. One that is there already and is equal: nothing changes.
        pub fn create_pool(
            &mut self,
            request: impl tonic::IntoRequest<super::CreatePoolRequest>,
        ) -> BoxFuture<tonic::Response<super::CreatePoolResponse>, tonic::Status> {
            self.send_create_pool(request.into_request())
        }
        /// The pool of this name.
        pub fn get_pool(
            &mut self,
            request: impl tonic::IntoRequest<super::GetPoolRequest>,
        ) -> BoxFuture<tonic::Response<super::Pool>, tonic::Status> {
            self.send_get_pool(request.into_request())
        }
        /// All of them, by name, a page at a time.
        pub fn list_pools(
            &mut self,
            request: impl tonic::IntoRequest<super::ListPoolsRequest>,
        ) -> BoxFuture<tonic::Response<super::ListPoolsResponse>, tonic::Status> {
            self.send_list_pools(request.into_request())
        }
        /// Changes the fields that the mask names.
        pub fn update_pool(
            &mut self,
            request: impl tonic::IntoRequest<super::UpdatePoolRequest>,
        ) -> BoxFuture<tonic::Response<super::UpdatePoolResponse>, tonic::Status> {
            self.send_update_pool(request.into_request())
        }
        /// Takes it away. FAILED_PRECONDITION: a service is served by it.
        pub fn delete_pool(
            &mut self,
            request: impl tonic::IntoRequest<super::DeletePoolRequest>,
        ) -> BoxFuture<tonic::Response<super::DeletePoolResponse>, tonic::Status> {
            self.send_delete_pool(request.into_request())
        }
        /// Adds a backend of a pool. One that is there already and is equal: nothing changes.
        pub fn create_backend(
            &mut self,
            request: impl tonic::IntoRequest<super::CreateBackendRequest>,
        ) -> BoxFuture<tonic::Response<super::CreateBackendResponse>, tonic::Status> {
            self.send_create_backend(request.into_request())
        }
        /// The backend of this pool and address.
        pub fn get_backend(
            &mut self,
            request: impl tonic::IntoRequest<super::GetBackendRequest>,
        ) -> BoxFuture<tonic::Response<super::Backend>, tonic::Status> {
            self.send_get_backend(request.into_request())
        }
        /// By pool and address, a page at a time. NOT_FOUND: there is no such pool or region.
        pub fn list_backends(
            &mut self,
            request: impl tonic::IntoRequest<super::ListBackendsRequest>,
        ) -> BoxFuture<tonic::Response<super::ListBackendsResponse>, tonic::Status> {
            self.send_list_backends(request.into_request())
        }
        /// Changes the fields that the mask names.
        pub fn update_backend(
            &mut self,
            request: impl tonic::IntoRequest<super::UpdateBackendRequest>,
        ) -> BoxFuture<tonic::Response<super::UpdateBackendResponse>, tonic::Status> {
            self.send_update_backend(request.into_request())
        }
        /// Takes it away. FAILED_PRECONDITION: the pool has a capacity or a scaler for the region of which this
        /// is the last backend. That the region is drained ends with it.
        pub fn delete_backend(
            &mut self,
            request: impl tonic::IntoRequest<super::DeleteBackendRequest>,
        ) -> BoxFuture<tonic::Response<super::DeleteBackendResponse>, tonic::Status> {
            self.send_delete_backend(request.into_request())
        }
        /// Adds backends, all of them or none. Those that are there already and are equal: nothing changes.
        pub fn batch_create_backends(
            &mut self,
            request: impl tonic::IntoRequest<super::BatchCreateBackendsRequest>,
        ) -> BoxFuture<
            tonic::Response<super::BatchCreateBackendsResponse>,
            tonic::Status,
        > {
            self.send_batch_create_backends(request.into_request())
        }
        /// Changes the fields that the mask names, of all of them or none.
        pub fn batch_update_backends(
            &mut self,
            request: impl tonic::IntoRequest<super::BatchUpdateBackendsRequest>,
        ) -> BoxFuture<
            tonic::Response<super::BatchUpdateBackendsResponse>,
            tonic::Status,
        > {
            self.send_batch_update_backends(request.into_request())
        }
        /// Takes them away, all of them or none. FAILED_PRECONDITION: as for DeleteBackend.
        pub fn batch_delete_backends(
            &mut self,
            request: impl tonic::IntoRequest<super::BatchDeleteBackendsRequest>,
        ) -> BoxFuture<
            tonic::Response<super::BatchDeleteBackendsResponse>,
            tonic::Status,
        > {
            self.send_batch_delete_backends(request.into_request())
        }
        /// Adds a service. One that is there already and is equal: nothing changes.
        pub fn create_service(
            &mut self,
            request: impl tonic::IntoRequest<super::CreateServiceRequest>,
        ) -> BoxFuture<tonic::Response<super::CreateServiceResponse>, tonic::Status> {
            self.send_create_service(request.into_request())
        }
        /// The service of this name.
        pub fn get_service(
            &mut self,
            request: impl tonic::IntoRequest<super::GetServiceRequest>,
        ) -> BoxFuture<tonic::Response<super::Service>, tonic::Status> {
            self.send_get_service(request.into_request())
        }
        /// By name, a page at a time. NOT_FOUND: there is no such pool.
        pub fn list_services(
            &mut self,
            request: impl tonic::IntoRequest<super::ListServicesRequest>,
        ) -> BoxFuture<tonic::Response<super::ListServicesResponse>, tonic::Status> {
            self.send_list_services(request.into_request())
        }
        /// Changes the fields that the mask names.
        pub fn update_service(
            &mut self,
            request: impl tonic::IntoRequest<super::UpdateServiceRequest>,
        ) -> BoxFuture<tonic::Response<super::UpdateServiceResponse>, tonic::Status> {
            self.send_update_service(request.into_request())
        }
        /// Takes it away. Its connections are not balanced any more.
        pub fn delete_service(
            &mut self,
            request: impl tonic::IntoRequest<super::DeleteServiceRequest>,
        ) -> BoxFuture<tonic::Response<super::DeleteServiceResponse>, tonic::Status> {
            self.send_delete_service(request.into_request())
        }
        fn send_create_region(
            &self,
            request: tonic::Request<super::CreateRegionRequest>,
        ) -> BoxFuture<tonic::Response<super::CreateRegionResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/CreateRegion",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "CreateRegion"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_get_region(
            &self,
            request: tonic::Request<super::GetRegionRequest>,
        ) -> BoxFuture<tonic::Response<super::Region>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/GetRegion",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "GetRegion"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_list_regions(
            &self,
            request: tonic::Request<super::ListRegionsRequest>,
        ) -> BoxFuture<tonic::Response<super::ListRegionsResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/ListRegions",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "ListRegions"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_update_region(
            &self,
            request: tonic::Request<super::UpdateRegionRequest>,
        ) -> BoxFuture<tonic::Response<super::UpdateRegionResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/UpdateRegion",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "UpdateRegion"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_delete_region(
            &self,
            request: tonic::Request<super::DeleteRegionRequest>,
        ) -> BoxFuture<tonic::Response<super::DeleteRegionResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/DeleteRegion",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "DeleteRegion"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_create_health_check(
            &self,
            request: tonic::Request<super::CreateHealthCheckRequest>,
        ) -> BoxFuture<
            tonic::Response<super::CreateHealthCheckResponse>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/CreateHealthCheck",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "CreateHealthCheck"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_get_health_check(
            &self,
            request: tonic::Request<super::GetHealthCheckRequest>,
        ) -> BoxFuture<tonic::Response<super::HealthCheck>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/GetHealthCheck",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "GetHealthCheck"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_list_health_checks(
            &self,
            request: tonic::Request<super::ListHealthChecksRequest>,
        ) -> BoxFuture<tonic::Response<super::ListHealthChecksResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/ListHealthChecks",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "ListHealthChecks"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_update_health_check(
            &self,
            request: tonic::Request<super::UpdateHealthCheckRequest>,
        ) -> BoxFuture<
            tonic::Response<super::UpdateHealthCheckResponse>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/UpdateHealthCheck",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "UpdateHealthCheck"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_delete_health_check(
            &self,
            request: tonic::Request<super::DeleteHealthCheckRequest>,
        ) -> BoxFuture<
            tonic::Response<super::DeleteHealthCheckResponse>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/DeleteHealthCheck",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "DeleteHealthCheck"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_create_pool(
            &self,
            request: tonic::Request<super::CreatePoolRequest>,
        ) -> BoxFuture<tonic::Response<super::CreatePoolResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/CreatePool",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "CreatePool"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_get_pool(
            &self,
            request: tonic::Request<super::GetPoolRequest>,
        ) -> BoxFuture<tonic::Response<super::Pool>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/GetPool",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "GetPool"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_list_pools(
            &self,
            request: tonic::Request<super::ListPoolsRequest>,
        ) -> BoxFuture<tonic::Response<super::ListPoolsResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/ListPools",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "ListPools"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_update_pool(
            &self,
            request: tonic::Request<super::UpdatePoolRequest>,
        ) -> BoxFuture<tonic::Response<super::UpdatePoolResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/UpdatePool",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "UpdatePool"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_delete_pool(
            &self,
            request: tonic::Request<super::DeletePoolRequest>,
        ) -> BoxFuture<tonic::Response<super::DeletePoolResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/DeletePool",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "DeletePool"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_create_backend(
            &self,
            request: tonic::Request<super::CreateBackendRequest>,
        ) -> BoxFuture<tonic::Response<super::CreateBackendResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/CreateBackend",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "CreateBackend"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_get_backend(
            &self,
            request: tonic::Request<super::GetBackendRequest>,
        ) -> BoxFuture<tonic::Response<super::Backend>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/GetBackend",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "GetBackend"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_list_backends(
            &self,
            request: tonic::Request<super::ListBackendsRequest>,
        ) -> BoxFuture<tonic::Response<super::ListBackendsResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/ListBackends",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "ListBackends"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_update_backend(
            &self,
            request: tonic::Request<super::UpdateBackendRequest>,
        ) -> BoxFuture<tonic::Response<super::UpdateBackendResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/UpdateBackend",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "UpdateBackend"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_delete_backend(
            &self,
            request: tonic::Request<super::DeleteBackendRequest>,
        ) -> BoxFuture<tonic::Response<super::DeleteBackendResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/DeleteBackend",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "DeleteBackend"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_batch_create_backends(
            &self,
            request: tonic::Request<super::BatchCreateBackendsRequest>,
        ) -> BoxFuture<
            tonic::Response<super::BatchCreateBackendsResponse>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/BatchCreateBackends",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(
                        GrpcMethod::new("spillway.v1.Objects", "BatchCreateBackends"),
                    );
                inner.unary(req, path, codec).await
            })
        }
        fn send_batch_update_backends(
            &self,
            request: tonic::Request<super::BatchUpdateBackendsRequest>,
        ) -> BoxFuture<
            tonic::Response<super::BatchUpdateBackendsResponse>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/BatchUpdateBackends",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(
                        GrpcMethod::new("spillway.v1.Objects", "BatchUpdateBackends"),
                    );
                inner.unary(req, path, codec).await
            })
        }
        fn send_batch_delete_backends(
            &self,
            request: tonic::Request<super::BatchDeleteBackendsRequest>,
        ) -> BoxFuture<
            tonic::Response<super::BatchDeleteBackendsResponse>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/BatchDeleteBackends",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(
                        GrpcMethod::new("spillway.v1.Objects", "BatchDeleteBackends"),
                    );
                inner.unary(req, path, codec).await
            })
        }
        fn send_create_service(
            &self,
            request: tonic::Request<super::CreateServiceRequest>,
        ) -> BoxFuture<tonic::Response<super::CreateServiceResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/CreateService",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "CreateService"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_get_service(
            &self,
            request: tonic::Request<super::GetServiceRequest>,
        ) -> BoxFuture<tonic::Response<super::Service>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/GetService",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "GetService"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_list_services(
            &self,
            request: tonic::Request<super::ListServicesRequest>,
        ) -> BoxFuture<tonic::Response<super::ListServicesResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/ListServices",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "ListServices"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_update_service(
            &self,
            request: tonic::Request<super::UpdateServiceRequest>,
        ) -> BoxFuture<tonic::Response<super::UpdateServiceResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/UpdateService",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "UpdateService"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_delete_service(
            &self,
            request: tonic::Request<super::DeleteServiceRequest>,
        ) -> BoxFuture<tonic::Response<super::DeleteServiceResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Objects/DeleteService",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Objects", "DeleteService"));
                inner.unary(req, path, codec).await
            })
        }
    }
}
/// Generated server implementations.
pub mod objects_server {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    /// Generated trait containing gRPC methods that should be implemented for use with ObjectsServer.
    #[async_trait]
    pub trait Objects: std::marker::Send + std::marker::Sync + 'static {
        /// Adds a region. One that is there already and is equal: nothing changes.
        async fn create_region(
            &self,
            request: tonic::Request<super::CreateRegionRequest>,
        ) -> std::result::Result<
            tonic::Response<super::CreateRegionResponse>,
            tonic::Status,
        >;
        /// The region of this name.
        async fn get_region(
            &self,
            request: tonic::Request<super::GetRegionRequest>,
        ) -> std::result::Result<tonic::Response<super::Region>, tonic::Status>;
        /// All of them, by name, a page at a time.
        async fn list_regions(
            &self,
            request: tonic::Request<super::ListRegionsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::ListRegionsResponse>,
            tonic::Status,
        >;
        /// Changes the fields that the mask names.
        async fn update_region(
            &self,
            request: tonic::Request<super::UpdateRegionRequest>,
        ) -> std::result::Result<
            tonic::Response<super::UpdateRegionResponse>,
            tonic::Status,
        >;
        /// Takes it away. FAILED_PRECONDITION: a pool has backends or settings there or prefers it, or another
        /// region overflows to it.
        async fn delete_region(
            &self,
            request: tonic::Request<super::DeleteRegionRequest>,
        ) -> std::result::Result<
            tonic::Response<super::DeleteRegionResponse>,
            tonic::Status,
        >;
        /// Adds a health check. One that is there already and is equal: nothing changes.
        async fn create_health_check(
            &self,
            request: tonic::Request<super::CreateHealthCheckRequest>,
        ) -> std::result::Result<
            tonic::Response<super::CreateHealthCheckResponse>,
            tonic::Status,
        >;
        /// The health check of this name.
        async fn get_health_check(
            &self,
            request: tonic::Request<super::GetHealthCheckRequest>,
        ) -> std::result::Result<tonic::Response<super::HealthCheck>, tonic::Status>;
        /// All of them, by name, a page at a time.
        async fn list_health_checks(
            &self,
            request: tonic::Request<super::ListHealthChecksRequest>,
        ) -> std::result::Result<
            tonic::Response<super::ListHealthChecksResponse>,
            tonic::Status,
        >;
        /// Changes the fields that the mask names.
        async fn update_health_check(
            &self,
            request: tonic::Request<super::UpdateHealthCheckRequest>,
        ) -> std::result::Result<
            tonic::Response<super::UpdateHealthCheckResponse>,
            tonic::Status,
        >;
        /// Takes it away. FAILED_PRECONDITION: a pool is checked by it.
        async fn delete_health_check(
            &self,
            request: tonic::Request<super::DeleteHealthCheckRequest>,
        ) -> std::result::Result<
            tonic::Response<super::DeleteHealthCheckResponse>,
            tonic::Status,
        >;
        /// Adds a pool with its backends. One that is there already and is equal: nothing changes.
        async fn create_pool(
            &self,
            request: tonic::Request<super::CreatePoolRequest>,
        ) -> std::result::Result<
            tonic::Response<super::CreatePoolResponse>,
            tonic::Status,
        >;
        /// The pool of this name.
        async fn get_pool(
            &self,
            request: tonic::Request<super::GetPoolRequest>,
        ) -> std::result::Result<tonic::Response<super::Pool>, tonic::Status>;
        /// All of them, by name, a page at a time.
        async fn list_pools(
            &self,
            request: tonic::Request<super::ListPoolsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::ListPoolsResponse>,
            tonic::Status,
        >;
        /// Changes the fields that the mask names.
        async fn update_pool(
            &self,
            request: tonic::Request<super::UpdatePoolRequest>,
        ) -> std::result::Result<
            tonic::Response<super::UpdatePoolResponse>,
            tonic::Status,
        >;
        /// Takes it away. FAILED_PRECONDITION: a service is served by it.
        async fn delete_pool(
            &self,
            request: tonic::Request<super::DeletePoolRequest>,
        ) -> std::result::Result<
            tonic::Response<super::DeletePoolResponse>,
            tonic::Status,
        >;
        /// Adds a backend of a pool. One that is there already and is equal: nothing changes.
        async fn create_backend(
            &self,
            request: tonic::Request<super::CreateBackendRequest>,
        ) -> std::result::Result<
            tonic::Response<super::CreateBackendResponse>,
            tonic::Status,
        >;
        /// The backend of this pool and address.
        async fn get_backend(
            &self,
            request: tonic::Request<super::GetBackendRequest>,
        ) -> std::result::Result<tonic::Response<super::Backend>, tonic::Status>;
        /// By pool and address, a page at a time. NOT_FOUND: there is no such pool or region.
        async fn list_backends(
            &self,
            request: tonic::Request<super::ListBackendsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::ListBackendsResponse>,
            tonic::Status,
        >;
        /// Changes the fields that the mask names.
        async fn update_backend(
            &self,
            request: tonic::Request<super::UpdateBackendRequest>,
        ) -> std::result::Result<
            tonic::Response<super::UpdateBackendResponse>,
            tonic::Status,
        >;
        /// Takes it away. FAILED_PRECONDITION: the pool has a capacity or a scaler for the region of which this
        /// is the last backend. That the region is drained ends with it.
        async fn delete_backend(
            &self,
            request: tonic::Request<super::DeleteBackendRequest>,
        ) -> std::result::Result<
            tonic::Response<super::DeleteBackendResponse>,
            tonic::Status,
        >;
        /// Adds backends, all of them or none. Those that are there already and are equal: nothing changes.
        async fn batch_create_backends(
            &self,
            request: tonic::Request<super::BatchCreateBackendsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::BatchCreateBackendsResponse>,
            tonic::Status,
        >;
        /// Changes the fields that the mask names, of all of them or none.
        async fn batch_update_backends(
            &self,
            request: tonic::Request<super::BatchUpdateBackendsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::BatchUpdateBackendsResponse>,
            tonic::Status,
        >;
        /// Takes them away, all of them or none. FAILED_PRECONDITION: as for DeleteBackend.
        async fn batch_delete_backends(
            &self,
            request: tonic::Request<super::BatchDeleteBackendsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::BatchDeleteBackendsResponse>,
            tonic::Status,
        >;
        /// Adds a service. One that is there already and is equal: nothing changes.
        async fn create_service(
            &self,
            request: tonic::Request<super::CreateServiceRequest>,
        ) -> std::result::Result<
            tonic::Response<super::CreateServiceResponse>,
            tonic::Status,
        >;
        /// The service of this name.
        async fn get_service(
            &self,
            request: tonic::Request<super::GetServiceRequest>,
        ) -> std::result::Result<tonic::Response<super::Service>, tonic::Status>;
        /// By name, a page at a time. NOT_FOUND: there is no such pool.
        async fn list_services(
            &self,
            request: tonic::Request<super::ListServicesRequest>,
        ) -> std::result::Result<
            tonic::Response<super::ListServicesResponse>,
            tonic::Status,
        >;
        /// Changes the fields that the mask names.
        async fn update_service(
            &self,
            request: tonic::Request<super::UpdateServiceRequest>,
        ) -> std::result::Result<
            tonic::Response<super::UpdateServiceResponse>,
            tonic::Status,
        >;
        /// Takes it away. Its connections are not balanced any more.
        async fn delete_service(
            &self,
            request: tonic::Request<super::DeleteServiceRequest>,
        ) -> std::result::Result<
            tonic::Response<super::DeleteServiceResponse>,
            tonic::Status,
        >;
    }
    /// The configuration in force, object by object. Names are the ids; a backend's is its pool and its
    /// address, however that is spelt. Each call that changes something makes a generation of its own,
    /// whole and checked as Apply does; nothing of what somebody else changes in the meantime is lost.
    ///
    /// Every object has an etag, a digest of its content with all defaults spelt out: it stays as long as
    /// the content does, also over restarts. A pool's content includes its backends. Objects of answers have
    /// every default spelt out.
    ///
    /// A list is read a page at a time. Each page is of the configuration then in force, so an object that
    /// comes or goes in the meantime may be missing; those that stay are all listed, and none twice.
    ///
    /// An update takes over what its mask names. A field that is not named and stands as it would be unset,
    /// whoever set it, follows the others: a check's timeout goes with its interval. A switch that is on stays.
    ///
    /// INVALID_ARGUMENT names the field and changes nothing; the trailer "spillway-field" has its path, as
    /// in "pool.backends\[1\].address", or "pools\[0\].groups\[1\].region" where another object than the one that
    /// was sent does not go with it. NOT_FOUND: there is no such object, or no such pool.
    /// ALREADY_EXISTS: another object than the one that was sent has the name. FAILED_PRECONDITION: the
    /// object is in use, or the others do not hold without it; the message names the user; or the change removes so much that it
    /// needs force. ABORTED: the etag
    /// is not that of the object in force, or others changed the configuration so often meanwhile that the
    /// call gave up. RESOURCE_EXHAUSTED and INTERNAL: as for Apply.
    pub struct ObjectsServer {
        inner: Arc<dyn Objects>,
        accept_compression_encodings: EnabledCompressionEncodings,
        send_compression_encodings: EnabledCompressionEncodings,
        max_decoding_message_size: Option<usize>,
        max_encoding_message_size: Option<usize>,
    }
    impl ObjectsServer {
        pub fn new(inner: impl Objects) -> Self {
            Self::from_arc(Arc::new(inner))
        }
        pub fn from_arc(inner: Arc<dyn Objects>) -> Self {
            Self {
                inner,
                accept_compression_encodings: Default::default(),
                send_compression_encodings: Default::default(),
                max_decoding_message_size: None,
                max_encoding_message_size: None,
            }
        }
        /// Enable decompressing requests with the given encoding.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.accept_compression_encodings.enable(encoding);
            self
        }
        /// Compress responses with the given encoding, if the client supports it.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.send_compression_encodings.enable(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.max_decoding_message_size = Some(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.max_encoding_message_size = Some(limit);
            self
        }
    }
    impl tonic::codegen::Service<http::Request<tonic::body::Body>> for ObjectsServer {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;
        fn poll_ready(
            &mut self,
            _cx: &mut Context<'_>,
        ) -> Poll<std::result::Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, req: http::Request<tonic::body::Body>) -> Self::Future {
            match req.uri().path() {
                "/spillway.v1.Objects/CreateRegion" => {
                    #[allow(non_camel_case_types)]
                    struct CreateRegionSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::CreateRegionRequest>
                    for CreateRegionSvc {
                        type Response = super::CreateRegionResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::CreateRegionRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::create_region(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CreateRegionSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/GetRegion" => {
                    #[allow(non_camel_case_types)]
                    struct GetRegionSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::GetRegionRequest>
                    for GetRegionSvc {
                        type Response = super::Region;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::GetRegionRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::get_region(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GetRegionSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/ListRegions" => {
                    #[allow(non_camel_case_types)]
                    struct ListRegionsSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::ListRegionsRequest>
                    for ListRegionsSvc {
                        type Response = super::ListRegionsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ListRegionsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::list_regions(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ListRegionsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/UpdateRegion" => {
                    #[allow(non_camel_case_types)]
                    struct UpdateRegionSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::UpdateRegionRequest>
                    for UpdateRegionSvc {
                        type Response = super::UpdateRegionResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::UpdateRegionRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::update_region(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = UpdateRegionSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/DeleteRegion" => {
                    #[allow(non_camel_case_types)]
                    struct DeleteRegionSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::DeleteRegionRequest>
                    for DeleteRegionSvc {
                        type Response = super::DeleteRegionResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::DeleteRegionRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::delete_region(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = DeleteRegionSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/CreateHealthCheck" => {
                    #[allow(non_camel_case_types)]
                    struct CreateHealthCheckSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::CreateHealthCheckRequest>
                    for CreateHealthCheckSvc {
                        type Response = super::CreateHealthCheckResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::CreateHealthCheckRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::create_health_check(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CreateHealthCheckSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/GetHealthCheck" => {
                    #[allow(non_camel_case_types)]
                    struct GetHealthCheckSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::GetHealthCheckRequest>
                    for GetHealthCheckSvc {
                        type Response = super::HealthCheck;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::GetHealthCheckRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::get_health_check(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GetHealthCheckSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/ListHealthChecks" => {
                    #[allow(non_camel_case_types)]
                    struct ListHealthChecksSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::ListHealthChecksRequest>
                    for ListHealthChecksSvc {
                        type Response = super::ListHealthChecksResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ListHealthChecksRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::list_health_checks(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ListHealthChecksSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/UpdateHealthCheck" => {
                    #[allow(non_camel_case_types)]
                    struct UpdateHealthCheckSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::UpdateHealthCheckRequest>
                    for UpdateHealthCheckSvc {
                        type Response = super::UpdateHealthCheckResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::UpdateHealthCheckRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::update_health_check(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = UpdateHealthCheckSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/DeleteHealthCheck" => {
                    #[allow(non_camel_case_types)]
                    struct DeleteHealthCheckSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::DeleteHealthCheckRequest>
                    for DeleteHealthCheckSvc {
                        type Response = super::DeleteHealthCheckResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::DeleteHealthCheckRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::delete_health_check(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = DeleteHealthCheckSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/CreatePool" => {
                    #[allow(non_camel_case_types)]
                    struct CreatePoolSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::CreatePoolRequest>
                    for CreatePoolSvc {
                        type Response = super::CreatePoolResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::CreatePoolRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::create_pool(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CreatePoolSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/GetPool" => {
                    #[allow(non_camel_case_types)]
                    struct GetPoolSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::GetPoolRequest>
                    for GetPoolSvc {
                        type Response = super::Pool;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::GetPoolRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::get_pool(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GetPoolSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/ListPools" => {
                    #[allow(non_camel_case_types)]
                    struct ListPoolsSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::ListPoolsRequest>
                    for ListPoolsSvc {
                        type Response = super::ListPoolsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ListPoolsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::list_pools(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ListPoolsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/UpdatePool" => {
                    #[allow(non_camel_case_types)]
                    struct UpdatePoolSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::UpdatePoolRequest>
                    for UpdatePoolSvc {
                        type Response = super::UpdatePoolResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::UpdatePoolRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::update_pool(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = UpdatePoolSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/DeletePool" => {
                    #[allow(non_camel_case_types)]
                    struct DeletePoolSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::DeletePoolRequest>
                    for DeletePoolSvc {
                        type Response = super::DeletePoolResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::DeletePoolRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::delete_pool(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = DeletePoolSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/CreateBackend" => {
                    #[allow(non_camel_case_types)]
                    struct CreateBackendSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::CreateBackendRequest>
                    for CreateBackendSvc {
                        type Response = super::CreateBackendResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::CreateBackendRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::create_backend(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CreateBackendSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/GetBackend" => {
                    #[allow(non_camel_case_types)]
                    struct GetBackendSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::GetBackendRequest>
                    for GetBackendSvc {
                        type Response = super::Backend;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::GetBackendRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::get_backend(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GetBackendSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/ListBackends" => {
                    #[allow(non_camel_case_types)]
                    struct ListBackendsSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::ListBackendsRequest>
                    for ListBackendsSvc {
                        type Response = super::ListBackendsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ListBackendsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::list_backends(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ListBackendsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/UpdateBackend" => {
                    #[allow(non_camel_case_types)]
                    struct UpdateBackendSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::UpdateBackendRequest>
                    for UpdateBackendSvc {
                        type Response = super::UpdateBackendResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::UpdateBackendRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::update_backend(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = UpdateBackendSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/DeleteBackend" => {
                    #[allow(non_camel_case_types)]
                    struct DeleteBackendSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::DeleteBackendRequest>
                    for DeleteBackendSvc {
                        type Response = super::DeleteBackendResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::DeleteBackendRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::delete_backend(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = DeleteBackendSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/BatchCreateBackends" => {
                    #[allow(non_camel_case_types)]
                    struct BatchCreateBackendsSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::BatchCreateBackendsRequest>
                    for BatchCreateBackendsSvc {
                        type Response = super::BatchCreateBackendsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::BatchCreateBackendsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::batch_create_backends(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = BatchCreateBackendsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/BatchUpdateBackends" => {
                    #[allow(non_camel_case_types)]
                    struct BatchUpdateBackendsSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::BatchUpdateBackendsRequest>
                    for BatchUpdateBackendsSvc {
                        type Response = super::BatchUpdateBackendsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::BatchUpdateBackendsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::batch_update_backends(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = BatchUpdateBackendsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/BatchDeleteBackends" => {
                    #[allow(non_camel_case_types)]
                    struct BatchDeleteBackendsSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::BatchDeleteBackendsRequest>
                    for BatchDeleteBackendsSvc {
                        type Response = super::BatchDeleteBackendsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::BatchDeleteBackendsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::batch_delete_backends(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = BatchDeleteBackendsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/CreateService" => {
                    #[allow(non_camel_case_types)]
                    struct CreateServiceSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::CreateServiceRequest>
                    for CreateServiceSvc {
                        type Response = super::CreateServiceResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::CreateServiceRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::create_service(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CreateServiceSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/GetService" => {
                    #[allow(non_camel_case_types)]
                    struct GetServiceSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::GetServiceRequest>
                    for GetServiceSvc {
                        type Response = super::Service;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::GetServiceRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::get_service(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GetServiceSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/ListServices" => {
                    #[allow(non_camel_case_types)]
                    struct ListServicesSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::ListServicesRequest>
                    for ListServicesSvc {
                        type Response = super::ListServicesResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ListServicesRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::list_services(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ListServicesSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/UpdateService" => {
                    #[allow(non_camel_case_types)]
                    struct UpdateServiceSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::UpdateServiceRequest>
                    for UpdateServiceSvc {
                        type Response = super::UpdateServiceResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::UpdateServiceRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::update_service(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = UpdateServiceSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Objects/DeleteService" => {
                    #[allow(non_camel_case_types)]
                    struct DeleteServiceSvc(pub Arc<dyn Objects>);
                    impl tonic::server::UnaryService<super::DeleteServiceRequest>
                    for DeleteServiceSvc {
                        type Response = super::DeleteServiceResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::DeleteServiceRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Objects as Objects>::delete_service(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = DeleteServiceSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                _ => {
                    Box::pin(async move {
                        let mut response = http::Response::new(
                            tonic::body::Body::default(),
                        );
                        let headers = response.headers_mut();
                        headers
                            .insert(
                                tonic::Status::GRPC_STATUS,
                                (tonic::Code::Unimplemented as i32).into(),
                            );
                        headers
                            .insert(
                                http::header::CONTENT_TYPE,
                                tonic::metadata::GRPC_CONTENT_TYPE,
                            );
                        Ok(response)
                    })
                }
            }
        }
    }
    impl Clone for ObjectsServer {
        fn clone(&self) -> Self {
            let inner = self.inner.clone();
            Self {
                inner,
                accept_compression_encodings: self.accept_compression_encodings,
                send_compression_encodings: self.send_compression_encodings,
                max_decoding_message_size: self.max_decoding_message_size,
                max_encoding_message_size: self.max_encoding_message_size,
            }
        }
    }
    /// Generated gRPC service name
    pub const SERVICE_NAME: &str = "spillway.v1.Objects";
    impl tonic::server::NamedService for ObjectsServer {
        const NAME: &'static str = SERVICE_NAME;
    }
}
/// What an override is about: a backend, with or without its pool; a pool; a region, with or without a pool.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct OverrideTarget {
    /// Address of a backend. Unset: the target is a pool or a region.
    #[prost(string, tag = "1")]
    pub backend: ::prost::alloc::string::String,
    /// Name of a pool. Unset: all pools that have the backend or the region.
    #[prost(string, tag = "2")]
    pub pool: ::prost::alloc::string::String,
    /// Name of a region; not beside a backend. Unset: the backend, or all regions of the pool.
    #[prost(string, tag = "3")]
    pub region: ::prost::alloc::string::String,
}
/// An override.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Override {
    /// Its name, made of target and kind: "backends/192.0.2.1/drain", "pools/web/backends/192.0.2.1/weight",
    /// "pools/web/drain", "pools/web/regions/eu/scale" or "regions/eu/drain"; of a local one with "local/" before it.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// What it is about. Always set.
    #[prost(message, optional, tag = "2")]
    pub target: ::core::option::Option<OverrideTarget>,
    /// How it changes that.
    #[prost(enumeration = "OverrideKind", tag = "3")]
    pub kind: i32,
    /// The share of a weight or scale. Unset: the kind has none.
    #[prost(uint32, optional, tag = "4")]
    pub percent: ::core::option::Option<u32>,
    /// Who set it: "uid 0", "certificate ops.example".
    #[prost(string, tag = "5")]
    pub who: ::prost::alloc::string::String,
    /// Why. Empty: no reason was given.
    #[prost(string, tag = "6")]
    pub reason: ::prost::alloc::string::String,
    /// When it was set.
    #[prost(message, optional, tag = "7")]
    pub set_at: ::core::option::Option<::prost_types::Timestamp>,
    /// When it ends by itself. Unset: it does not.
    #[prost(message, optional, tag = "8")]
    pub until: ::core::option::Option<::prost_types::Timestamp>,
    /// Since when the configuration does not have its target; an hour later the override ends. Unset: it has.
    #[prost(message, optional, tag = "9")]
    pub absent_since: ::core::option::Option<::prost_types::Timestamp>,
    /// Whether it is in force at this balancer alone, beside those of its fleet. Its name then begins with "local/". Unset: it is
    /// the fleet's, or the balancer is no member of one.
    #[prost(bool, tag = "10")]
    pub local: bool,
}
/// What to put in force.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetOverridesRequest {
    /// What it is about; 1 to 1000. Must be set.
    #[prost(message, repeated, tag = "1")]
    pub targets: ::prost::alloc::vec::Vec<OverrideTarget>,
    /// How it changes that. Must be set.
    #[prost(enumeration = "OverrideKind", tag = "2")]
    pub kind: i32,
    /// The share of a weight or scale, 0 to 100. Unset: only allowed for other kinds.
    #[prost(uint32, optional, tag = "3")]
    pub percent: ::core::option::Option<u32>,
    /// How long it lasts, up to 366 days. Unset: until it is removed.
    #[prost(message, optional, tag = "4")]
    pub duration: ::core::option::Option<::prost_types::Duration>,
    /// Why: at most 256 bytes, without line breaks and other control characters. Unset: no reason is given.
    #[prost(string, tag = "5")]
    pub reason: ::prost::alloc::string::String,
    /// Only check the request. Unset: false.
    #[prost(bool, tag = "6")]
    pub validate_only: bool,
    /// Put a drain or disable in force at this balancer alone, beside those of its fleet; needs no etcd. FAILED_PRECONDITION: the
    /// balancer is no member of a fleet. Unset: of all balancers of the fleet; it replaces a local one of this balancer.
    #[prost(bool, tag = "7")]
    pub local: bool,
}
/// What is in force now.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetOverridesResponse {
    /// Those of the request, or what they would be.
    #[prost(message, repeated, tag = "1")]
    pub overrides: ::prost::alloc::vec::Vec<Override>,
    /// Revision of all overrides, which rises with each change; under validate_only the current one.
    #[prost(uint64, tag = "2")]
    pub revision: u64,
    /// Why they are in memory only, so that a restart loses them. Empty: they are stored, or only checked.
    #[prost(string, tag = "3")]
    pub unstored: ::prost::alloc::string::String,
    /// What whoever called should know. Empty: nothing.
    #[prost(message, repeated, tag = "4")]
    pub warnings: ::prost::alloc::vec::Vec<Warning>,
}
/// What to remove.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RemoveOverridesRequest {
    /// Names of overrides; 1 to 4000. Must be set.
    #[prost(string, repeated, tag = "1")]
    pub names: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Why, as in SetOverridesRequest, for the audit log. Unset: no reason is given.
    #[prost(string, tag = "2")]
    pub reason: ::prost::alloc::string::String,
    /// Only check the request. Unset: false.
    #[prost(bool, tag = "3")]
    pub validate_only: bool,
}
/// What was removed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveOverridesResponse {
    /// Those that were removed, or would be. Empty: none of them was there.
    #[prost(message, repeated, tag = "1")]
    pub removed: ::prost::alloc::vec::Vec<Override>,
    /// As in SetOverridesResponse.
    #[prost(uint64, tag = "2")]
    pub revision: u64,
    /// As in SetOverridesResponse.
    #[prost(string, tag = "3")]
    pub unstored: ::prost::alloc::string::String,
    /// What whoever called should know. Empty: nothing.
    #[prost(message, repeated, tag = "4")]
    pub warnings: ::prost::alloc::vec::Vec<Warning>,
}
/// Which overrides.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListOverridesRequest {
    /// Most overrides of the answer, 1 to 10,000; it also has fewer where they would take more than 3 MiB. Unset: 1,000.
    #[prost(uint32, tag = "1")]
    pub page_size: u32,
    /// Where to go on: next_page_token of an answer to the same request. Unset: at the beginning.
    #[prost(string, tag = "2")]
    pub page_token: ::prost::alloc::string::String,
    /// Only those of this pool, and of its backends and regions in it. Unset: all.
    #[prost(string, tag = "3")]
    pub pool: ::prost::alloc::string::String,
}
/// The overrides in force.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListOverridesResponse {
    /// By name. Empty: none.
    #[prost(message, repeated, tag = "1")]
    pub overrides: ::prost::alloc::vec::Vec<Override>,
    /// Revision, which rises with each change.
    #[prost(uint64, tag = "2")]
    pub revision: u64,
    /// Whether they are in memory only, so that a restart loses what changed last.
    #[prost(bool, tag = "3")]
    pub unstored: bool,
    /// The page_token of the next page. Empty: there is none.
    #[prost(string, tag = "4")]
    pub next_page_token: ::prost::alloc::string::String,
}
/// Overrides that changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OverridesChange {
    /// Revision now in force.
    #[prost(uint64, tag = "1")]
    pub revision: u64,
    /// Those that were set or changed. Empty: none.
    #[prost(message, repeated, tag = "2")]
    pub set: ::prost::alloc::vec::Vec<Override>,
    /// Names of those that ended. Empty: none.
    #[prost(string, repeated, tag = "3")]
    pub ended: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Whether they are in memory only.
    #[prost(bool, tag = "4")]
    pub unstored: bool,
}
/// How an override changes its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum OverrideKind {
    /// Not allowed in a request.
    Unspecified = 0,
    /// No new connections; open ones stay.
    Drain = 1,
    /// No packets; open connections move. Only of a backend.
    Disable = 2,
    /// A share of the configured weight, in percent; 0 is a drain. Only of a backend.
    Weight = 3,
    /// At most a share of the configured capacity, in percent: 0, which is a drain, or 10 to 100. Not of a backend.
    Scale = 4,
}
impl OverrideKind {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "OVERRIDE_KIND_UNSPECIFIED",
            Self::Drain => "OVERRIDE_KIND_DRAIN",
            Self::Disable => "OVERRIDE_KIND_DISABLE",
            Self::Weight => "OVERRIDE_KIND_WEIGHT",
            Self::Scale => "OVERRIDE_KIND_SCALE",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "OVERRIDE_KIND_UNSPECIFIED" => Some(Self::Unspecified),
            "OVERRIDE_KIND_DRAIN" => Some(Self::Drain),
            "OVERRIDE_KIND_DISABLE" => Some(Self::Disable),
            "OVERRIDE_KIND_WEIGHT" => Some(Self::Weight),
            "OVERRIDE_KIND_SCALE" => Some(Self::Scale),
            _ => None,
        }
    }
}
/// Generated client implementations.
pub mod overrides_client {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    use tonic::codegen::http::Uri;
    /// Overrides: what operators ask for beside the configuration. They make no generation, conflict with nothing, and stay over
    /// applies, reloads, rollbacks and restarts, until they are removed or their time is over.
    ///
    /// An override only takes away. A drain or disable is added to what the configuration says, weights are multiplied, and of
    /// scales the lowest counts. Those of an address, of its pool, of its region in that pool and of its region act together. If
    /// what an override is about goes, the override stays for an hour, and acts again if it comes back.
    ///
    /// An override is in force before the answer, also while the disk is full or does not answer; the answer says whether it is
    /// stored. INVALID_ARGUMENT names the field and changes nothing; the trailer "spillway-field" has its path. NOT_FOUND: the
    /// configuration in force has no such backend, pool or region; nothing changed. RESOURCE_EXHAUSTED: there are 10,000
    /// overrides. FAILED_PRECONDITION: the stored configuration cannot be used.
    #[derive(Debug, Clone)]
    pub struct OverridesClient {
        inner: tonic::client::Grpc<tonic::transport::Channel>,
    }
    impl OverridesClient {
        pub fn new(inner: tonic::transport::Channel) -> Self {
            let inner = tonic::client::Grpc::new(inner);
            Self { inner }
        }
        pub fn with_origin(inner: tonic::transport::Channel, origin: Uri) -> Self {
            let inner = tonic::client::Grpc::with_origin(inner, origin);
            Self { inner }
        }
        /// Compress requests with the given encoding.
        ///
        /// This requires the server to support it otherwise it might respond with an
        /// error.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.send_compressed(encoding);
            self
        }
        /// Enable decompressing responses.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.accept_compressed(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_decoding_message_size(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_encoding_message_size(limit);
            self
        }
        /// Puts an override of each target in force. It replaces one of the same kind.
        pub fn set_overrides(
            &mut self,
            request: impl tonic::IntoRequest<super::SetOverridesRequest>,
        ) -> BoxFuture<tonic::Response<super::SetOverridesResponse>, tonic::Status> {
            self.send_set_overrides(request.into_request())
        }
        /// Removes overrides. Those that are not there are left out of the answer. What the configuration itself asks stays.
        pub fn remove_overrides(
            &mut self,
            request: impl tonic::IntoRequest<super::RemoveOverridesRequest>,
        ) -> BoxFuture<tonic::Response<super::RemoveOverridesResponse>, tonic::Status> {
            self.send_remove_overrides(request.into_request())
        }
        /// The overrides in force, by name, a page at a time.
        pub fn list_overrides(
            &mut self,
            request: impl tonic::IntoRequest<super::ListOverridesRequest>,
        ) -> BoxFuture<tonic::Response<super::ListOverridesResponse>, tonic::Status> {
            self.send_list_overrides(request.into_request())
        }
        fn send_set_overrides(
            &self,
            request: tonic::Request<super::SetOverridesRequest>,
        ) -> BoxFuture<tonic::Response<super::SetOverridesResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Overrides/SetOverrides",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Overrides", "SetOverrides"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_remove_overrides(
            &self,
            request: tonic::Request<super::RemoveOverridesRequest>,
        ) -> BoxFuture<tonic::Response<super::RemoveOverridesResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Overrides/RemoveOverrides",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Overrides", "RemoveOverrides"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_list_overrides(
            &self,
            request: tonic::Request<super::ListOverridesRequest>,
        ) -> BoxFuture<tonic::Response<super::ListOverridesResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Overrides/ListOverrides",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Overrides", "ListOverrides"));
                inner.unary(req, path, codec).await
            })
        }
    }
}
/// Generated server implementations.
pub mod overrides_server {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    /// Generated trait containing gRPC methods that should be implemented for use with OverridesServer.
    #[async_trait]
    pub trait Overrides: std::marker::Send + std::marker::Sync + 'static {
        /// Puts an override of each target in force. It replaces one of the same kind.
        async fn set_overrides(
            &self,
            request: tonic::Request<super::SetOverridesRequest>,
        ) -> std::result::Result<
            tonic::Response<super::SetOverridesResponse>,
            tonic::Status,
        >;
        /// Removes overrides. Those that are not there are left out of the answer. What the configuration itself asks stays.
        async fn remove_overrides(
            &self,
            request: tonic::Request<super::RemoveOverridesRequest>,
        ) -> std::result::Result<
            tonic::Response<super::RemoveOverridesResponse>,
            tonic::Status,
        >;
        /// The overrides in force, by name, a page at a time.
        async fn list_overrides(
            &self,
            request: tonic::Request<super::ListOverridesRequest>,
        ) -> std::result::Result<
            tonic::Response<super::ListOverridesResponse>,
            tonic::Status,
        >;
    }
    /// Overrides: what operators ask for beside the configuration. They make no generation, conflict with nothing, and stay over
    /// applies, reloads, rollbacks and restarts, until they are removed or their time is over.
    ///
    /// An override only takes away. A drain or disable is added to what the configuration says, weights are multiplied, and of
    /// scales the lowest counts. Those of an address, of its pool, of its region in that pool and of its region act together. If
    /// what an override is about goes, the override stays for an hour, and acts again if it comes back.
    ///
    /// An override is in force before the answer, also while the disk is full or does not answer; the answer says whether it is
    /// stored. INVALID_ARGUMENT names the field and changes nothing; the trailer "spillway-field" has its path. NOT_FOUND: the
    /// configuration in force has no such backend, pool or region; nothing changed. RESOURCE_EXHAUSTED: there are 10,000
    /// overrides. FAILED_PRECONDITION: the stored configuration cannot be used.
    pub struct OverridesServer {
        inner: Arc<dyn Overrides>,
        accept_compression_encodings: EnabledCompressionEncodings,
        send_compression_encodings: EnabledCompressionEncodings,
        max_decoding_message_size: Option<usize>,
        max_encoding_message_size: Option<usize>,
    }
    impl OverridesServer {
        pub fn new(inner: impl Overrides) -> Self {
            Self::from_arc(Arc::new(inner))
        }
        pub fn from_arc(inner: Arc<dyn Overrides>) -> Self {
            Self {
                inner,
                accept_compression_encodings: Default::default(),
                send_compression_encodings: Default::default(),
                max_decoding_message_size: None,
                max_encoding_message_size: None,
            }
        }
        /// Enable decompressing requests with the given encoding.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.accept_compression_encodings.enable(encoding);
            self
        }
        /// Compress responses with the given encoding, if the client supports it.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.send_compression_encodings.enable(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.max_decoding_message_size = Some(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.max_encoding_message_size = Some(limit);
            self
        }
    }
    impl tonic::codegen::Service<http::Request<tonic::body::Body>> for OverridesServer {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;
        fn poll_ready(
            &mut self,
            _cx: &mut Context<'_>,
        ) -> Poll<std::result::Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, req: http::Request<tonic::body::Body>) -> Self::Future {
            match req.uri().path() {
                "/spillway.v1.Overrides/SetOverrides" => {
                    #[allow(non_camel_case_types)]
                    struct SetOverridesSvc(pub Arc<dyn Overrides>);
                    impl tonic::server::UnaryService<super::SetOverridesRequest>
                    for SetOverridesSvc {
                        type Response = super::SetOverridesResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::SetOverridesRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Overrides as Overrides>::set_overrides(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = SetOverridesSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Overrides/RemoveOverrides" => {
                    #[allow(non_camel_case_types)]
                    struct RemoveOverridesSvc(pub Arc<dyn Overrides>);
                    impl tonic::server::UnaryService<super::RemoveOverridesRequest>
                    for RemoveOverridesSvc {
                        type Response = super::RemoveOverridesResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::RemoveOverridesRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Overrides as Overrides>::remove_overrides(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = RemoveOverridesSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Overrides/ListOverrides" => {
                    #[allow(non_camel_case_types)]
                    struct ListOverridesSvc(pub Arc<dyn Overrides>);
                    impl tonic::server::UnaryService<super::ListOverridesRequest>
                    for ListOverridesSvc {
                        type Response = super::ListOverridesResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ListOverridesRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Overrides as Overrides>::list_overrides(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ListOverridesSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                _ => {
                    Box::pin(async move {
                        let mut response = http::Response::new(
                            tonic::body::Body::default(),
                        );
                        let headers = response.headers_mut();
                        headers
                            .insert(
                                tonic::Status::GRPC_STATUS,
                                (tonic::Code::Unimplemented as i32).into(),
                            );
                        headers
                            .insert(
                                http::header::CONTENT_TYPE,
                                tonic::metadata::GRPC_CONTENT_TYPE,
                            );
                        Ok(response)
                    })
                }
            }
        }
    }
    impl Clone for OverridesServer {
        fn clone(&self) -> Self {
            let inner = self.inner.clone();
            Self {
                inner,
                accept_compression_encodings: self.accept_compression_encodings,
                send_compression_encodings: self.send_compression_encodings,
                max_decoding_message_size: self.max_decoding_message_size,
                max_encoding_message_size: self.max_encoding_message_size,
            }
        }
    }
    /// Generated gRPC service name
    pub const SERVICE_NAME: &str = "spillway.v1.Overrides";
    impl tonic::server::NamedService for OverridesServer {
        const NAME: &'static str = SERVICE_NAME;
    }
}
/// Which ways to try, and with what.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ProbeVipsRequest {
    /// Size of the largest IP packet that clients send, bytes, 1280 to 9000: the full size. Unset: 1500.
    #[prost(uint32, tag = "1")]
    pub packet_size: u32,
    /// Name of a pool: only its ways. Unset: those of all pools.
    #[prost(string, tag = "2")]
    pub pool: ::prost::alloc::string::String,
    /// Address of a backend: only ways to it. Unset: those to all backends.
    #[prost(string, tag = "3")]
    pub backend: ::prost::alloc::string::String,
}
/// What comes of the ways.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ProbeVipsResponse {
    /// One of these; others may come, and may be left alone.
    #[prost(oneof = "probe_vips_response::Event", tags = "1, 2")]
    pub event: ::core::option::Option<probe_vips_response::Event>,
}
/// Nested message and enum types in `ProbeVipsResponse`.
pub mod probe_vips_response {
    /// One of these; others may come, and may be left alone.
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Oneof)]
    pub enum Event {
        /// A way that was tried, in the order in which they are done.
        #[prost(message, tag = "1")]
        Way(super::ProbedWay),
        /// All are done; nothing follows.
        #[prost(message, tag = "2")]
        Summary(super::VipProbeSummary),
    }
}
/// A way: to a backend, for a VIP, in the tunnel of a pool.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ProbedWay {
    /// Names of the pools whose packets go that way, in order.
    #[prost(string, repeated, tag = "1")]
    pub pools: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Address of the backend.
    #[prost(string, tag = "2")]
    pub backend: ::prost::alloc::string::String,
    /// Address of the services, which the backend is to have as well.
    #[prost(string, tag = "3")]
    pub vip: ::prost::alloc::string::String,
    /// How packets get there.
    #[prost(enumeration = "Encapsulation", tag = "4")]
    pub encapsulation: i32,
    /// What came of a small packet.
    #[prost(enumeration = "VipProbeOutcome", tag = "5")]
    pub small: i32,
    /// What came of one of the full size, which is not to be fragmented; tried where a small one was answered
    /// by an echo reply.
    #[prost(enumeration = "VipProbeOutcome", tag = "6")]
    pub full: i32,
    /// How the VIP answered the small one.
    #[prost(enumeration = "VipProbeAnswer", tag = "7")]
    pub answer: i32,
    /// From the small one that was answered to its answer. Unset: it was not.
    #[prost(message, optional, tag = "8")]
    pub round_trip_time: ::core::option::Option<::prost_types::Duration>,
    /// TCP port of a service that was connected to where echo requests were not answered. Unset: none was, for the
    /// VIP has no TCP service, or one of all ports.
    #[prost(uint32, tag = "9")]
    pub tcp_port: u32,
    /// How the backend's host shows outside of the tunnel that it is there, where the small one is silent, in
    /// words: "answers echo requests". Empty: nothing came of it, or nobody asked.
    #[prost(string, tag = "10")]
    pub host: ::prost::alloc::string::String,
    /// Why an outcome is barred, or cannot be told. Empty: none is, or full alone was not tried because small was
    /// not answered.
    #[prost(string, tag = "11")]
    pub reason: ::prost::alloc::string::String,
    /// The largest packet that was answered, bytes, where one of the full size is silent; looked for on the first 32
    /// such ways of a call. Unset: nobody looked.
    #[prost(uint32, tag = "12")]
    pub fits: u32,
}
/// What a call came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct VipProbeSummary {
    /// Ways that were tried.
    #[prost(uint32, tag = "1")]
    pub ways: u32,
    /// Ways beyond the most of one call, which were not.
    #[prost(uint32, tag = "2")]
    pub left_out: u32,
    /// The full size, bytes.
    #[prost(uint32, tag = "3")]
    pub packet_size: u32,
}
/// What came of an echo request, or of what was tried in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum VipProbeOutcome {
    /// Not tried, or it cannot be told; reason says why.
    Unspecified = 0,
    /// The VIP has answered.
    Answered = 1,
    /// Nothing came, however often it was asked.
    Silent = 2,
    /// Nothing could be sent there, for a reason of the balancer's host, which reason says.
    Barred = 3,
}
impl VipProbeOutcome {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "VIP_PROBE_OUTCOME_UNSPECIFIED",
            Self::Answered => "VIP_PROBE_OUTCOME_ANSWERED",
            Self::Silent => "VIP_PROBE_OUTCOME_SILENT",
            Self::Barred => "VIP_PROBE_OUTCOME_BARRED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "VIP_PROBE_OUTCOME_UNSPECIFIED" => Some(Self::Unspecified),
            "VIP_PROBE_OUTCOME_ANSWERED" => Some(Self::Answered),
            "VIP_PROBE_OUTCOME_SILENT" => Some(Self::Silent),
            "VIP_PROBE_OUTCOME_BARRED" => Some(Self::Barred),
            _ => None,
        }
    }
}
/// How a VIP answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum VipProbeAnswer {
    /// It did not.
    Unspecified = 0,
    /// By an echo reply.
    Echo = 1,
    /// Echo requests were not answered, but a TCP connection was, or it was refused.
    Tcp = 2,
}
impl VipProbeAnswer {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "VIP_PROBE_ANSWER_UNSPECIFIED",
            Self::Echo => "VIP_PROBE_ANSWER_ECHO",
            Self::Tcp => "VIP_PROBE_ANSWER_TCP",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "VIP_PROBE_ANSWER_UNSPECIFIED" => Some(Self::Unspecified),
            "VIP_PROBE_ANSWER_ECHO" => Some(Self::Echo),
            "VIP_PROBE_ANSWER_TCP" => Some(Self::Tcp),
            _ => None,
        }
    }
}
/// Which pools.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TableRequest {
    /// Name of a pool. Unset: every pool.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
}
/// Who owns the slots of pools' tables.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TableResponse {
    /// Generation of the names below; 0: nothing was applied yet. The maps may be on the way from one to
    /// the next.
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    /// The published pools, by name.
    #[prost(message, repeated, tag = "2")]
    pub pools: ::prost::alloc::vec::Vec<PoolTable>,
}
/// The tables of a pool.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PoolTable {
    /// Pool. Always set.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// One for each region that has backends of the pool, in the order in which this balancer asks them.
    /// Empty: the pool has no backends.
    #[prost(message, repeated, tag = "2")]
    pub groups: ::prost::alloc::vec::Vec<GroupTable>,
}
/// The table of a pool's backends in one region.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GroupTable {
    /// Region. Always set.
    #[prost(string, tag = "1")]
    pub region: ::prost::alloc::string::String,
    /// Slots of the table.
    #[prost(uint32, tag = "2")]
    pub slots: u32,
    /// Checksum of the table, 16 hexadecimal digits: equal on all balancers with the same backends, weights
    /// and size.
    #[prost(string, tag = "3")]
    pub checksum: ::prost::alloc::string::String,
    /// Slots none of whose entries may have a new connection now; the lists of other slots decide for these.
    #[prost(uint32, tag = "4")]
    pub slots_unserved_now: u32,
    /// Its backends.
    #[prost(message, repeated, tag = "5")]
    pub backends: ::prost::alloc::vec::Vec<BackendSlots>,
}
/// A backend's part of a table.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BackendSlots {
    /// Address. Always set.
    #[prost(string, tag = "1")]
    pub address: ::prost::alloc::string::String,
    /// Slots that it owns.
    #[prost(uint32, tag = "2")]
    pub slots: u32,
    /// Slots whose new connections it has now; slow start is left aside.
    #[prost(uint32, tag = "3")]
    pub slots_now: u32,
    /// Packets that it accepts: "all", "open" (only those of open connections) or "nothing".
    #[prost(string, tag = "4")]
    pub accepts: ::prost::alloc::string::String,
    /// Next hop, as in "02:00:00:00:00:01 on eth0". Empty: it is not resolved, and the backend takes
    /// nothing.
    #[prost(string, tag = "5")]
    pub next_hop: ::prost::alloc::string::String,
}
/// How to reload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ReloadRequest {
    /// Put the configuration file in force however much it removes, as in ApplyRequest. Unset: false.
    #[prost(bool, tag = "1")]
    pub force: bool,
}
/// What a reload came to.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ReloadResponse {
    /// Generation in force after it. Unset: the settings name no configuration file.
    #[prost(uint64, optional, tag = "1")]
    pub generation: ::core::option::Option<u64>,
    /// Changed settings that wait for the next start of the daemon, by name as in the settings file. Empty: none.
    #[prost(string, repeated, tag = "2")]
    pub waiting_settings: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
/// Which backends.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BackendHistoryRequest {
    /// Name of the pool. Must be set.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Address of the backend. Unset: every backend of the pool.
    #[prost(string, tag = "2")]
    pub address: ::prost::alloc::string::String,
}
/// What has become of backends.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BackendHistoryResponse {
    /// By address.
    #[prost(message, repeated, tag = "1")]
    pub backends: ::prost::alloc::vec::Vec<BackendHistory>,
}
/// What has become of a backend in its pool.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BackendHistory {
    /// Pool.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Address.
    #[prost(string, tag = "2")]
    pub address: ::prost::alloc::string::String,
    /// Its last changes, at most 16, the newest first: the state it has now. They are kept as long as the
    /// daemon runs and the pool has the backend.
    #[prost(message, repeated, tag = "3")]
    pub changes: ::prost::alloc::vec::Vec<StateChange>,
}
/// A state from a moment on.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StateChange {
    /// When it came.
    #[prost(message, optional, tag = "1")]
    pub at: ::core::option::Option<::prost_types::Timestamp>,
    /// The state.
    #[prost(enumeration = "BackendState", tag = "2")]
    pub state: i32,
    /// Why it came. One that stands for other reasons later is listed once. Always set.
    #[prost(message, optional, tag = "3")]
    pub reason: ::core::option::Option<StateReason>,
}
/// What should be in force.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ApplyRequest {
    /// The configuration that should be in force. Unset: an empty one.
    #[prost(message, optional, tag = "1")]
    pub configuration: ::core::option::Option<Configuration>,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "2")]
    pub validate_only: bool,
    /// Apply only while this generation is in force. Unset: whatever is in force.
    #[prost(uint64, optional, tag = "3")]
    pub expected_generation: ::core::option::Option<u64>,
    /// The highest schema revision of the proto files that the caller was made from. With another one than the
    /// daemon's the call is refused: fields that only one of the two knows would be lost. Unset: the first.
    #[prost(enumeration = "SchemaRevision", tag = "4")]
    pub schema_revision: i32,
    /// Take the configuration as it is, whatever the schema revisions of the caller, the daemon and the store:
    /// fields that only one of them knows are lost. Unset: false.
    #[prost(bool, tag = "5")]
    pub any_schema: bool,
    /// Why, for the history and the audit log: at most 256 bytes, without line breaks and other control characters.
    /// Unset: no reason is given.
    #[prost(string, tag = "6")]
    pub reason: ::prost::alloc::string::String,
    /// Remove what the change removes, however much that is. Unset: a change is refused with FAILED_PRECONDITION and
    /// ERROR_REASON_FORCE_REQUIRED if a pool of at least four backends loses more than 30 % of them, a service loses all, or the
    /// configuration has none left.
    #[prost(bool, tag = "7")]
    pub force: bool,
}
/// What is in force now.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ApplyResponse {
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "1")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// Empty: there is nothing to choose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListGenerationsRequest {}
/// The history.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListGenerationsResponse {
    /// The newest first, which is the one in force. Empty: nothing was applied yet. A generation is missing if another one
    /// replaced it while it was in memory only.
    #[prost(message, repeated, tag = "1")]
    pub generations: ::prost::alloc::vec::Vec<Generation>,
}
/// A generation of the history.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Generation {
    /// Number, from 1.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// When it was applied. Unset: its description is damaged.
    #[prost(message, optional, tag = "2")]
    pub applied_at: ::core::option::Option<::prost_types::Timestamp>,
    /// Who applied it: "uid 0", "certificate ci.example", "file /etc/spillway/web.toml". Empty: not known, because an
    /// earlier version stored it.
    #[prost(string, tag = "3")]
    pub who: ::prost::alloc::string::String,
    /// Why: the reason that the caller gave, or else what the call was, as "update of pool "web"". A rollback begins with
    /// "rollback to generation 7". Empty: not known.
    #[prost(string, tag = "4")]
    pub why: ::prost::alloc::string::String,
    /// How many objects differ from the generation before. Unset: not known.
    #[prost(uint64, optional, tag = "5")]
    pub changes: ::core::option::Option<u64>,
    /// Whether it is in force.
    #[prost(bool, tag = "6")]
    pub current: bool,
    /// Why the daemon cannot use it. Empty: nothing is known to be wrong with it.
    #[prost(string, tag = "7")]
    pub unusable: ::prost::alloc::string::String,
}
/// Which generations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DiffGenerationsRequest {
    /// The one that the changes start from. Must be set.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// The one that they lead to. Unset: the one in force.
    #[prost(uint64, optional, tag = "2")]
    pub to: ::core::option::Option<u64>,
}
/// What is different.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DiffGenerationsResponse {
    /// The one that the changes start from.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// The one that they lead to.
    #[prost(uint64, tag = "2")]
    pub to: u64,
    /// Objects that differ. Empty: none.
    #[prost(message, repeated, tag = "3")]
    pub changes: ::prost::alloc::vec::Vec<Change>,
    /// What becomes of open connections if the second one comes into force after the first. Empty: no connection moves.
    #[prost(message, repeated, tag = "4")]
    pub movements: ::prost::alloc::vec::Vec<Movement>,
}
/// What to go back to.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RollbackRequest {
    /// The generation whose configuration is to be in force again. Must be set.
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    /// Roll back only while this generation is in force. Unset: whatever is in force.
    #[prost(uint64, optional, tag = "2")]
    pub expected_generation: ::core::option::Option<u64>,
    /// Only answer what would change. Unset: false.
    #[prost(bool, tag = "3")]
    pub validate_only: bool,
    /// Why, as in ApplyRequest. Unset: no reason is given.
    #[prost(string, tag = "4")]
    pub reason: ::prost::alloc::string::String,
    /// Replace a configuration in force that has a higher schema revision than the daemon. Unset: false.
    #[prost(bool, tag = "5")]
    pub any_schema: bool,
    /// As in ApplyRequest. Unset: false.
    #[prost(bool, tag = "6")]
    pub force: bool,
}
/// What is in force now.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RollbackResponse {
    /// What the call changed, or would. Always set.
    #[prost(message, optional, tag = "1")]
    pub result: ::core::option::Option<ApplyResult>,
}
/// Empty: there is nothing to choose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExportRequest {}
/// The configuration in force.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ExportResponse {
    /// The generation.
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    /// The configuration in force, every default and the hash key in use spelt out. The hash
    /// key is empty unless the caller is an admin of all pools.
    #[prost(message, optional, tag = "2")]
    pub configuration: ::core::option::Option<Configuration>,
    /// Schema revision of the configuration. A caller that was made from an older one does not see all of it, and
    /// must not send it back.
    #[prost(enumeration = "SchemaRevision", tag = "3")]
    pub schema_revision: i32,
    /// Why the daemon cannot use the configuration, which is the stored one: it was written by another version.
    /// Packets go by the maps as they were. Empty: it is in force.
    #[prost(string, tag = "4")]
    pub unusable: ::prost::alloc::string::String,
    /// Overrides in force beside the configuration, which are no part of it. Empty: none.
    #[prost(message, repeated, tag = "5")]
    pub overrides: ::prost::alloc::vec::Vec<Override>,
}
/// Which backends. All else is answered too, unless page_token is set.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StatusRequest {
    /// Only backends of these pools. Unset: of all pools.
    #[prost(string, repeated, tag = "1")]
    pub pools: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Only backends in these regions. Unset: in all regions.
    #[prost(string, repeated, tag = "2")]
    pub regions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Only backends in these states. Unset: in any state.
    #[prost(enumeration = "BackendState", repeated, tag = "3")]
    pub states: ::prost::alloc::vec::Vec<i32>,
    /// Most backends of the answer, 1 to 10,000; it has fewer where they would take more than 3 MiB. Unset: all of them at
    /// once, or 1,000 if page_token is set.
    #[prost(uint32, tag = "4")]
    pub page_size: u32,
    /// Where to go on: next_page_token of an answer to the same request. Unset: at the beginning.
    #[prost(string, tag = "5")]
    pub page_token: ::prost::alloc::string::String,
}
/// The daemon and all it serves. An answer to a page_token has only backends and next_page_token; all else is unset there.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StatusResponse {
    /// Version of the daemon.
    #[prost(string, tag = "1")]
    pub version: ::prost::alloc::string::String,
    /// Region the daemon stands in; empty: it was not told.
    #[prost(string, tag = "2")]
    pub region: ::prost::alloc::string::String,
    /// Generation in force; 0: nothing was applied yet.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
    /// When it was applied. Unset for generation 0.
    #[prost(message, optional, tag = "4")]
    pub applied_at: ::core::option::Option<::prost_types::Timestamp>,
    /// Digest over what the packet path reads, independent of indices: equal on all balancers with the
    /// same configuration and own region. 16 hexadecimal digits.
    #[prost(string, tag = "5")]
    pub checksum: ::prost::alloc::string::String,
    /// Interfaces with the packet program attached.
    #[prost(message, repeated, tag = "6")]
    pub interfaces: ::prost::alloc::vec::Vec<InterfaceStatus>,
    /// Backends that were asked for, by pool and address.
    #[prost(message, repeated, tag = "7")]
    pub backends: ::prost::alloc::vec::Vec<BackendStatus>,
    /// Services.
    #[prost(message, repeated, tag = "8")]
    pub services: ::prost::alloc::vec::Vec<ServiceStatus>,
    /// Time since the daemon started.
    #[prost(message, optional, tag = "9")]
    pub uptime: ::core::option::Option<::prost_types::Duration>,
    /// Why the packet path is not at the generation, though it is tried again every second. Empty: it
    /// is there.
    #[prost(string, tag = "10")]
    pub behind: ::prost::alloc::string::String,
    /// Pools in a remap, by name: their open connections stay where they are.
    #[prost(message, repeated, tag = "11")]
    pub settling: ::prost::alloc::vec::Vec<SettlingPool>,
    /// What is wrong, though the daemon goes on: a packet path that is behind, a file that could not be read or was
    /// refused, ways to backends that are too narrow, or tables that have too few slots for their backends.
    #[prost(message, repeated, tag = "12")]
    pub conditions: ::prost::alloc::vec::Vec<Condition>,
    /// Settings that were changed and wait for the next start of the daemon, by name as in the settings file, as
    /// of the last reload. Empty: none.
    #[prost(string, repeated, tag = "13")]
    pub waiting_settings: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Overrides in force, by target and kind. Empty: none.
    #[prost(message, repeated, tag = "14")]
    pub overrides: ::prost::alloc::vec::Vec<Override>,
    /// Revision of the overrides, which rises with each change.
    #[prost(uint64, tag = "15")]
    pub overrides_revision: u64,
    /// The page_token of the next page of backends. Empty: there is none.
    #[prost(string, tag = "16")]
    pub next_page_token: ::prost::alloc::string::String,
}
/// Which one.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetBackendStatusRequest {
    /// Name of its pool. Must be set.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Its address. Must be set.
    #[prost(string, tag = "2")]
    pub address: ::prost::alloc::string::String,
}
/// Something that is wrong, though the daemon goes on.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Condition {
    /// What it is about: the path of a file, "settings", "packet path", or what it names: "pool web", "slots of
    /// pool web".
    #[prost(string, tag = "1")]
    pub subject: ::prost::alloc::string::String,
    /// What is wrong with it, as a sentence.
    #[prost(string, tag = "2")]
    pub text: ::prost::alloc::string::String,
    /// Since when.
    #[prost(message, optional, tag = "3")]
    pub since: ::core::option::Option<::prost_types::Timestamp>,
    /// Which kind of problem it is.
    #[prost(enumeration = "ConditionReason", tag = "4")]
    pub reason: i32,
    /// The object of the configuration that it is about. Unset: none.
    #[prost(message, optional, tag = "5")]
    pub object: ::core::option::Option<ObjectReference>,
}
/// A pool in a remap.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SettlingPool {
    /// Pool.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// When the first of the changes was, as far as this daemon knows.
    #[prost(message, optional, tag = "2")]
    pub since: ::core::option::Option<::prost_types::Timestamp>,
    /// When open connections that would be elsewhere otherwise begin to be remembered one by one.
    #[prost(message, optional, tag = "3")]
    pub adopts_at: ::core::option::Option<::prost_types::Timestamp>,
    /// When what home meant before is forgotten, unless there is another change, or one of them could not
    /// be remembered yet.
    #[prost(message, optional, tag = "4")]
    pub ends_at: ::core::option::Option<::prost_types::Timestamp>,
    /// Whether they are remembered one by one now.
    #[prost(bool, tag = "5")]
    pub adopting: bool,
}
/// An interface that packets come in by.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct InterfaceStatus {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// "native" or "generic", as the kernel reports it; empty: the program is not there any more.
    #[prost(string, tag = "2")]
    pub mode: ::prost::alloc::string::String,
}
/// A service and how many backends it has.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ServiceStatus {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    /// Address and ports, "192.0.2.1:80", "\[2001:db8::1\]:80,8000-8099" or "192.0.2.1:any"; of more
    /// than eight ranges the first eight and ",...".
    #[prost(string, tag = "2")]
    pub endpoint: ::prost::alloc::string::String,
    /// "tcp" or "udp".
    #[prost(string, tag = "3")]
    pub protocol: ::prost::alloc::string::String,
    /// Pool.
    #[prost(string, tag = "4")]
    pub pool: ::prost::alloc::string::String,
    /// Backends of the pool that can have new connections: up, of some weight, next hop resolved.
    #[prost(uint32, tag = "5")]
    pub backends_up: u32,
    /// Backends of the pool.
    #[prost(uint32, tag = "6")]
    pub backends: u32,
    /// How its packets get to them. Always set.
    #[prost(enumeration = "Encapsulation", tag = "7")]
    pub encapsulation: i32,
    /// UDP port that they go to. 0: none.
    #[prost(uint32, tag = "8")]
    pub gue_port: u32,
    /// Slots of the pool's tables. Always set.
    #[prost(uint32, tag = "9")]
    pub slots: u32,
}
/// Why a backend has its state.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StateReason {
    /// The cause.
    #[prost(enumeration = "state_reason::Cause", tag = "1")]
    pub cause: i32,
    /// Name of the health check that it is about. Empty: of none.
    #[prost(string, tag = "2")]
    pub health_check: ::prost::alloc::string::String,
    /// It in words: "all checks pass", "check web-http: connection refused", "disabled", "drained", "drained by an override of
    /// uid 0: ticket 7", "drained: check load: the backend says maint (update)", "not checked yet".
    #[prost(string, tag = "3")]
    pub text: ::prost::alloc::string::String,
}
/// Nested message and enum types in `StateReason`.
pub mod state_reason {
    /// Causes of states.
    #[derive(
        Clone,
        Copy,
        Debug,
        PartialEq,
        Eq,
        Hash,
        PartialOrd,
        Ord,
        ::prost::Enumeration
    )]
    #[repr(i32)]
    pub enum Cause {
        /// Never sent.
        Unspecified = 0,
        /// No check has a result yet.
        NotChecked = 1,
        /// Its pool has no checks.
        NoChecks = 2,
        /// All checks pass.
        ChecksPass = 3,
        /// A check fails, or has begun to.
        CheckFails = 4,
        /// It passes its checks, and went down soon after its last return.
        HeldDown = 5,
        /// The configuration asks for it.
        Configuration = 6,
        /// An override asks for it; overrides of BackendStatus names those that act on it.
        Override = 7,
        /// Its agent report asks for it.
        AgentReport = 8,
    }
    impl Cause {
        /// String value of the enum field names used in the ProtoBuf definition.
        ///
        /// The values are not transformed in any way and thus are considered stable
        /// (if the ProtoBuf definition does not change) and safe for programmatic use.
        pub fn as_str_name(&self) -> &'static str {
            match self {
                Self::Unspecified => "CAUSE_UNSPECIFIED",
                Self::NotChecked => "CAUSE_NOT_CHECKED",
                Self::NoChecks => "CAUSE_NO_CHECKS",
                Self::ChecksPass => "CAUSE_CHECKS_PASS",
                Self::CheckFails => "CAUSE_CHECK_FAILS",
                Self::HeldDown => "CAUSE_HELD_DOWN",
                Self::Configuration => "CAUSE_CONFIGURATION",
                Self::Override => "CAUSE_OVERRIDE",
                Self::AgentReport => "CAUSE_AGENT_REPORT",
            }
        }
        /// Creates an enum from field names used in the ProtoBuf definition.
        pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
            match value {
                "CAUSE_UNSPECIFIED" => Some(Self::Unspecified),
                "CAUSE_NOT_CHECKED" => Some(Self::NotChecked),
                "CAUSE_NO_CHECKS" => Some(Self::NoChecks),
                "CAUSE_CHECKS_PASS" => Some(Self::ChecksPass),
                "CAUSE_CHECK_FAILS" => Some(Self::CheckFails),
                "CAUSE_HELD_DOWN" => Some(Self::HeldDown),
                "CAUSE_CONFIGURATION" => Some(Self::Configuration),
                "CAUSE_OVERRIDE" => Some(Self::Override),
                "CAUSE_AGENT_REPORT" => Some(Self::AgentReport),
                _ => None,
            }
        }
    }
}
/// A backend of a pool as the packet path sees it.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BackendStatus {
    /// Pool.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Address.
    #[prost(string, tag = "2")]
    pub address: ::prost::alloc::string::String,
    /// Region.
    #[prost(string, tag = "3")]
    pub region: ::prost::alloc::string::String,
    /// Its state.
    #[prost(enumeration = "BackendState", tag = "4")]
    pub state: i32,
    /// Why. Always set.
    #[prost(message, optional, tag = "5")]
    pub reason: ::core::option::Option<StateReason>,
    /// Whether its next hop has a MAC; where not, it takes nothing whatever its state.
    #[prost(bool, tag = "6")]
    pub next_hop_resolved: bool,
    /// Next hop: "02:00:00:00:00:01 on eth0", or why there is none.
    #[prost(string, tag = "7")]
    pub next_hop: ::prost::alloc::string::String,
    /// Since when the state holds.
    #[prost(message, optional, tag = "8")]
    pub since: ::core::option::Option<::prost_types::Timestamp>,
    /// Whether it was out of service for longer than the settle time of the pool: then no connection is at
    /// home there as long as its region has somebody else.
    #[prost(bool, tag = "9")]
    pub marked_out: bool,
    /// Share that it takes now of the new connections of its own slots, above 0 and at most 1; the others go
    /// to the others of its region. Only the relation of shares in a region counts. Less than 1 in slow
    /// start, where it says so of itself, where it is utilised more than the others, or by an override. Unset: it takes
    /// none, as it is not up or has no weight.
    #[prost(double, optional, tag = "10")]
    pub share: ::core::option::Option<f64>,
    /// What it says it is utilised, 1 for all that it can do. Unset: it does not say.
    #[prost(double, optional, tag = "11")]
    pub utilisation: ::core::option::Option<f64>,
    /// Share of its weight that it asks for, percent, 1 to 100. Unset: it does not say.
    #[prost(uint32, optional, tag = "12")]
    pub weight_percent: ::core::option::Option<u32>,
    /// Why it wants no new connections of itself: "check load: the backend says drain". Empty: it does not
    /// say so.
    #[prost(string, tag = "13")]
    pub drain: ::prost::alloc::string::String,
    /// Why its agent report cannot be read, so that none applies: "check load: no report: connection refused".
    /// Empty: it can be read, or no check asks for one.
    #[prost(string, tag = "14")]
    pub report_error: ::prost::alloc::string::String,
    /// Largest outer IP packet towards it, bytes: the smallest of its configured MTU and those of the route and the
    /// interface. 0: it has no next hop.
    #[prost(uint32, tag = "15")]
    pub mtu: u32,
    /// What the configuration asks for. Always set.
    #[prost(enumeration = "AdminState", tag = "17")]
    pub admin_state: i32,
    /// How much longer it is held down. Unset: it is not.
    #[prost(message, optional, tag = "18")]
    pub hold_left: ::core::option::Option<::prost_types::Duration>,
    /// Names of the overrides that act on it: its own, and those of its pool and region. Empty: none.
    #[prost(string, repeated, tag = "19")]
    pub overrides: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
/// Which regions.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct RegionsRequest {
    /// Only those of this pool. Unset: those of all pools.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
}
/// Demand against capacity. Everything counted is this balancer's alone: an autoscaler asks each
/// balancer. It is of new connections, and of tracked UDP flows.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RegionsResponse {
    /// By pool, and within a pool in the order in which this balancer asks them.
    #[prost(message, repeated, tag = "1")]
    pub regions: ::prost::alloc::vec::Vec<GroupStatus>,
    /// Time that rates are of, about the last second. Unset: the daemon started so short a time ago that
    /// there are none.
    #[prost(message, optional, tag = "2")]
    pub window: ::core::option::Option<::prost_types::Duration>,
    /// Balancers that share the capacities, as configured; in a fleet the portion of each group counts instead. 0: not known,
    /// as the stored configuration cannot be used.
    #[prost(uint32, tag = "3")]
    pub balancers: u32,
}
/// A pool's backends in one region.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GroupStatus {
    /// Pool.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Region.
    #[prost(string, tag = "2")]
    pub region: ::prost::alloc::string::String,
    /// Capacity with all backends healthy and the scaler at 1, new connections a second over all
    /// balancers: as set, or the sum over the backends. Unset: unlimited.
    #[prost(double, optional, tag = "3")]
    pub configured_per_second: ::core::option::Option<f64>,
    /// Share of it in use, under overrides: 0 (drained), or 0.1 to 1.
    #[prost(double, tag = "4")]
    pub scaler: f64,
    /// Capacity now, new connections a second over all balancers: times the scaler, and where it is a sum,
    /// over the healthy backends. Unset: unlimited. 0: takes none.
    #[prost(double, optional, tag = "5")]
    pub capacity_per_second: ::core::option::Option<f64>,
    /// This balancer's portion of it, as its packet path keeps to it. Unset: unlimited. 0: takes none.
    #[prost(double, optional, tag = "6")]
    pub limit_per_second: ::core::option::Option<f64>,
    /// Backends that can have new connections: up, of some weight, next hop resolved.
    #[prost(uint32, tag = "7")]
    pub backends_up: u32,
    /// Backends of the region.
    #[prost(uint32, tag = "8")]
    pub backends: u32,
    /// Mean max_connection_rate of the backends that have a weight and one, a second. Unset: none has.
    #[prost(double, optional, tag = "9")]
    pub backend_rate_per_second: ::core::option::Option<f64>,
    /// What was counted since the region was made; it stays over restarts of the daemon.
    #[prost(message, optional, tag = "10")]
    pub counters: ::core::option::Option<GroupCounters>,
    /// What was counted in the window, a second. Unset: the region is newer than that.
    #[prost(message, optional, tag = "11")]
    pub rates: ::core::option::Option<GroupRates>,
    /// Admitted in the window as a share of the limit, 1 for all of it; more where a burst or connections over capacity
    /// went beyond it. Unset: there are no rates, or the limit is none or 0.
    #[prost(double, optional, tag = "12")]
    pub utilisation: ::core::option::Option<f64>,
    /// How many more backends of the mean max_connection_rate the region needs to admit all that was
    /// offered in the window, as if each of the balancers were offered as much for its portion: over several
    /// balancers, take the largest answer. 0: none. Unset: unknown, as there are no rates, no backend has a
    /// max_connection_rate, or the scaler or the portion is 0.
    #[prost(uint32, optional, tag = "13")]
    pub missing_backends: ::core::option::Option<u32>,
    /// Whether all of it was out of service for longer than the settle time of the pool: then it is asked
    /// last.
    #[prost(bool, tag = "14")]
    pub marked_out: bool,
    /// This balancer's portion of the capacity, 0 to 1: one of as many equal ones as there are balancers, or in a fleet what
    /// it owns. 0: it admits none, unless the capacity is unlimited.
    #[prost(double, tag = "15")]
    pub portion: f64,
}
/// New connections of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GroupCounters {
    /// Those it was asked for: the sum of admitted, overflow_out and refused.
    #[prost(uint64, tag = "1")]
    pub offered: u64,
    /// Those it took.
    #[prost(uint64, tag = "2")]
    pub admitted: u64,
    /// Of those it took, the ones that a nearer region was asked for first.
    #[prost(uint64, tag = "3")]
    pub overflow_in: u64,
    /// Those that another region took, because this one was full or had nobody for them.
    #[prost(uint64, tag = "4")]
    pub overflow_out: u64,
    /// Those that were dropped because every region was full, counted at the first one asked.
    #[prost(uint64, tag = "5")]
    pub refused: u64,
    /// Of those it took, the ones beyond its limit, because every region was full.
    #[prost(uint64, tag = "6")]
    pub over_capacity: u64,
}
/// New connections of a region a second, as in GroupCounters.
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct GroupRates {
    /// Those it was asked for.
    #[prost(double, tag = "1")]
    pub offered: f64,
    /// Those it took.
    #[prost(double, tag = "2")]
    pub admitted: f64,
    /// Of those it took, the ones that a nearer region was asked for first.
    #[prost(double, tag = "3")]
    pub overflow_in: f64,
    /// Those that another region took.
    #[prost(double, tag = "4")]
    pub overflow_out: f64,
    /// Those that were dropped.
    #[prost(double, tag = "5")]
    pub refused: f64,
    /// Of those it took, the ones beyond its limit.
    #[prost(double, tag = "6")]
    pub over_capacity: f64,
}
/// Where a watch begins.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct WatchRequest {
    /// The last resume_token that was received and is not empty: the watch goes on after it, and nothing is missing. Unset, or
    /// one that this daemon cannot go on from, as it is of another balancer, from before a restart, or too old: a snapshot comes
    /// first.
    #[prost(string, tag = "1")]
    pub resume_token: ::prost::alloc::string::String,
}
/// One event, or a part of a snapshot.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct WatchResponse {
    /// Where a later watch can go on after this message. Empty within a snapshot, and of an event that is too large for one
    /// message in all but the last.
    #[prost(string, tag = "15")]
    pub resume_token: ::prost::alloc::string::String,
    /// What happened.
    #[prost(oneof = "watch_response::Event", tags = "1, 2, 3, 4, 5, 6")]
    pub event: ::core::option::Option<watch_response::Event>,
}
/// Nested message and enum types in `WatchResponse`.
pub mod watch_response {
    /// What happened.
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Event {
        /// A snapshot begins: what was known before is void. Overrides and backends follow, in several messages if there are
        /// many.
        #[prost(message, tag = "1")]
        SnapshotBegin(super::SnapshotBegin),
        /// The snapshot is complete.
        #[prost(message, tag = "2")]
        SnapshotEnd(super::SnapshotEnd),
        /// A generation came into force.
        #[prost(message, tag = "3")]
        Generation(super::GenerationChange),
        /// Backends were added, changed (state, reason, next hop, region, MTU, marked_out or overrides) or removed; within a
        /// snapshot: backends as they are.
        #[prost(message, tag = "4")]
        Backends(super::BackendsChange),
        /// What groups can take changed: their capacity or limit, their backends that can have new connections, or whether
        /// they are marked out. Within a second of the change.
        #[prost(message, tag = "5")]
        Groups(super::GroupsChange),
        /// Overrides changed; within a snapshot those that are in force.
        #[prost(message, tag = "6")]
        Overrides(super::OverridesChange),
    }
}
/// How everything is, but backends and overrides.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshotBegin {
    /// Why.
    #[prost(enumeration = "snapshot_begin::Cause", tag = "1")]
    pub cause: i32,
    /// How everything is, without backends and overrides. Always set.
    #[prost(message, optional, tag = "2")]
    pub status: ::core::option::Option<StatusResponse>,
}
/// Nested message and enum types in `SnapshotBegin`.
pub mod snapshot_begin {
    /// Why there is a snapshot.
    #[derive(
        Clone,
        Copy,
        Debug,
        PartialEq,
        Eq,
        Hash,
        PartialOrd,
        Ord,
        ::prost::Enumeration
    )]
    #[repr(i32)]
    pub enum Cause {
        /// Never sent.
        Unspecified = 0,
        /// The request has no resume_token.
        First = 1,
        /// This daemon cannot go on from the resume_token of the request.
        Token = 2,
        /// The caller lagged far behind, and events that it had not read were dropped.
        Lag = 3,
    }
    impl Cause {
        /// String value of the enum field names used in the ProtoBuf definition.
        ///
        /// The values are not transformed in any way and thus are considered stable
        /// (if the ProtoBuf definition does not change) and safe for programmatic use.
        pub fn as_str_name(&self) -> &'static str {
            match self {
                Self::Unspecified => "CAUSE_UNSPECIFIED",
                Self::First => "CAUSE_FIRST",
                Self::Token => "CAUSE_TOKEN",
                Self::Lag => "CAUSE_LAG",
            }
        }
        /// Creates an enum from field names used in the ProtoBuf definition.
        pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
            match value {
                "CAUSE_UNSPECIFIED" => Some(Self::Unspecified),
                "CAUSE_FIRST" => Some(Self::First),
                "CAUSE_TOKEN" => Some(Self::Token),
                "CAUSE_LAG" => Some(Self::Lag),
                _ => None,
            }
        }
    }
}
/// Empty: there is no more to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SnapshotEnd {}
/// Backends that changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BackendsChange {
    /// Those that the configuration has no longer. Empty: none.
    #[prost(message, repeated, tag = "1")]
    pub removed: ::prost::alloc::vec::Vec<ObjectReference>,
    /// Those that were added or changed, as they are now. Empty: none.
    #[prost(message, repeated, tag = "7")]
    pub backends: ::prost::alloc::vec::Vec<BackendStatus>,
}
/// Groups that changed.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GroupsChange {
    /// Those that the configuration has no longer. Empty: none.
    #[prost(message, repeated, tag = "1")]
    pub removed: ::prost::alloc::vec::Vec<ObjectReference>,
    /// Those that were added or changed, as they are now. Empty: none.
    #[prost(message, repeated, tag = "2")]
    pub groups: ::prost::alloc::vec::Vec<GroupStatus>,
}
/// A generation came into force.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GenerationChange {
    /// The generation now in force.
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    /// What changed; the first ones of more than 5,000 changes, or of more than fit into a message.
    #[prost(message, repeated, tag = "2")]
    pub changes: ::prost::alloc::vec::Vec<Change>,
    /// How many changes are left out. DiffGenerations has all of them.
    #[prost(uint64, tag = "3")]
    pub more_changes: u64,
}
/// Empty: there is nothing to choose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StatsRequest {}
/// What this balancer's packet path counted. Each counter counts from when its object was made, and
/// stays over restarts of the daemon.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StatsResponse {
    /// Packets by verdict, all verdicts, by number. docs/verdicts.md has their meanings.
    #[prost(message, repeated, tag = "1")]
    pub verdicts: ::prost::alloc::vec::Vec<VerdictStats>,
    /// Traffic by service, by address and port.
    #[prost(message, repeated, tag = "2")]
    pub services: ::prost::alloc::vec::Vec<ServiceStats>,
    /// Traffic by backend address, over all pools that have it.
    #[prost(message, repeated, tag = "3")]
    pub backends: ::prost::alloc::vec::Vec<BackendStats>,
    /// New connections by pool, and within a pool in the order in which this balancer asks its regions.
    #[prost(message, repeated, tag = "4")]
    pub groups: ::prost::alloc::vec::Vec<GroupStats>,
    /// Tables of what is remembered of connections.
    #[prost(message, repeated, tag = "5")]
    pub tables: ::prost::alloc::vec::Vec<TableStats>,
    /// How fast displaced entries may be added.
    #[prost(message, repeated, tag = "6")]
    pub budgets: ::prost::alloc::vec::Vec<BudgetStats>,
    /// Events, all of them, by number. docs/operations.md has their meanings.
    #[prost(message, repeated, tag = "7")]
    pub events: ::prost::alloc::vec::Vec<EventStats>,
    /// Pools that may have displaced connections, by name.
    #[prost(string, repeated, tag = "8")]
    pub pools_with_displaced: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// Interfaces that the packet program is attached to or sends out of, and the ports of those that are bonds, by
    /// name. Interfaces that cannot be read are missing.
    #[prost(message, repeated, tag = "9")]
    pub interfaces: ::prost::alloc::vec::Vec<InterfaceStats>,
}
/// What kernel and driver counted of an interface since it exists: all of its packets, not only those of services.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct InterfaceStats {
    /// Name.
    #[prost(string, tag = "1")]
    pub interface: ::prost::alloc::string::String,
    /// Name of the driver, or the kind of a virtual device. Empty: not known.
    #[prost(string, tag = "2")]
    pub driver: ::prost::alloc::string::String,
    /// Whether the packet program is attached to it, or to the bond that it is a port of.
    #[prost(bool, tag = "3")]
    pub attached: bool,
    /// Whether redirected frames may leave by it.
    #[prost(bool, tag = "4")]
    pub redirect_target: bool,
    /// The kernel's statistics of the link. Always set.
    #[prost(message, optional, tag = "5")]
    pub link: ::core::option::Option<LinkStats>,
    /// The driver's own counters of drops at XDP, by name. Empty: it has none.
    #[prost(message, repeated, tag = "6")]
    pub driver_drops: ::prost::alloc::vec::Vec<DriverDrops>,
    /// What the kernel's tracepoints reported of dropped frames. Empty: the kernel has none, or the daemon could not attach
    /// to them.
    #[prost(message, repeated, tag = "7")]
    pub traced_drops: ::prost::alloc::vec::Vec<TracepointDrops>,
}
/// The kernel's statistics of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct LinkStats {
    /// Packets received.
    #[prost(uint64, tag = "1")]
    pub rx_packets: u64,
    /// Packets sent.
    #[prost(uint64, tag = "2")]
    pub tx_packets: u64,
    /// Bad packets received.
    #[prost(uint64, tag = "3")]
    pub rx_errors: u64,
    /// Packets that could not be sent.
    #[prost(uint64, tag = "4")]
    pub tx_errors: u64,
    /// Packets received and dropped.
    #[prost(uint64, tag = "5")]
    pub rx_dropped: u64,
    /// Packets dropped instead of sent.
    #[prost(uint64, tag = "6")]
    pub tx_dropped: u64,
    /// Packets dropped by the card, which had no room.
    #[prost(uint64, tag = "7")]
    pub rx_missed: u64,
    /// Packets dropped because nothing took them.
    #[prost(uint64, tag = "8")]
    pub rx_no_handler: u64,
}
/// A counter of a driver.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DriverDrops {
    /// Its name as "ethtool -S" prints it, with N for the number of a queue.
    #[prost(string, tag = "1")]
    pub counter: ::prost::alloc::string::String,
    /// Which frames it counts: "transmit", "redirect", "send", "refused", "program" or "mixed".
    /// docs/observability.md has their meanings.
    #[prost(string, tag = "2")]
    pub stage: ::prost::alloc::string::String,
    /// Whether the packet program had counted all of them as transmitted or redirected.
    #[prost(bool, tag = "3")]
    pub after_program: bool,
    /// Frames, over all queues.
    #[prost(uint64, tag = "4")]
    pub frames: u64,
}
/// What a tracepoint of the kernel reported of an interface, since the balancer's pins exist.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TracepointDrops {
    /// The kernel's name of it: "xdp_exception", "xdp_redirect_err" or "xdp_devmap_xmit". docs/observability.md has their
    /// meanings.
    #[prost(string, tag = "1")]
    pub tracepoint: ::prost::alloc::string::String,
    /// Whether the packet program had counted all of them as transmitted or redirected.
    #[prost(bool, tag = "2")]
    pub after_program: bool,
    /// Frames that were dropped.
    #[prost(uint64, tag = "3")]
    pub frames: u64,
}
/// Packets under one verdict.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct VerdictStats {
    /// The verdict, as in docs/verdicts.md.
    #[prost(string, tag = "1")]
    pub verdict: ::prost::alloc::string::String,
    /// "pass", "drop", "transmit" or "redirect".
    #[prost(string, tag = "2")]
    pub action: ::prost::alloc::string::String,
    /// Packets.
    #[prost(uint64, tag = "3")]
    pub packets: u64,
    /// Bytes of the frames as they came in.
    #[prost(uint64, tag = "4")]
    pub bytes: u64,
}
/// Packets that were forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Traffic {
    /// Packets.
    #[prost(uint64, tag = "1")]
    pub packets: u64,
    /// Bytes of the frames as they came in.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
    /// SYNs among them, repeated ones included.
    #[prost(uint64, tag = "3")]
    pub connections: u64,
}
/// Traffic of a service.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ServiceStats {
    /// Name.
    #[prost(string, tag = "1")]
    pub service: ::prost::alloc::string::String,
    /// Address and ports, "192.0.2.1:80", "\[2001:db8::1\]:80,8000-8099" or "192.0.2.1:any"; of more
    /// than eight ranges the first eight and ",...".
    #[prost(string, tag = "2")]
    pub endpoint: ::prost::alloc::string::String,
    /// "tcp" or "udp".
    #[prost(string, tag = "3")]
    pub protocol: ::prost::alloc::string::String,
    /// Pool.
    #[prost(string, tag = "4")]
    pub pool: ::prost::alloc::string::String,
    /// What was counted. Always set.
    #[prost(message, optional, tag = "5")]
    pub traffic: ::core::option::Option<Traffic>,
}
/// Traffic of a backend.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct BackendStats {
    /// Address.
    #[prost(string, tag = "1")]
    pub backend: ::prost::alloc::string::String,
    /// Names of the pools that have it.
    #[prost(string, repeated, tag = "2")]
    pub pools: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// What was counted, over all of these. Always set.
    #[prost(message, optional, tag = "3")]
    pub traffic: ::core::option::Option<Traffic>,
}
/// New connections of a group: a pool's backends in one region.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GroupStats {
    /// Pool.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Region.
    #[prost(string, tag = "2")]
    pub region: ::prost::alloc::string::String,
    /// What was counted. Always set.
    #[prost(message, optional, tag = "3")]
    pub counters: ::core::option::Option<GroupCounters>,
}
/// A table of what is remembered of connections.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TableStats {
    /// "displaced": displaced open connections. "udp_flows": flows of tracked UDP services.
    /// "handshakes": what SYNs of the last 64 s decided.
    #[prost(string, tag = "1")]
    pub table: ::prost::alloc::string::String,
    /// "ipv4", "ipv6", or "both".
    #[prost(string, tag = "2")]
    pub ip: ::prost::alloc::string::String,
    /// Entries that are there.
    #[prost(uint64, tag = "3")]
    pub held: u64,
    /// Entries there is room for.
    #[prost(uint64, tag = "4")]
    pub room: u64,
}
/// How fast a table of displaced entries may be filled.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BudgetStats {
    /// "displaced": by connections that are displaced. "adoptions": by those that a change of
    /// home finds open.
    #[prost(string, tag = "1")]
    pub budget: ::prost::alloc::string::String,
    /// "ipv4" or "ipv6".
    #[prost(string, tag = "2")]
    pub ip: ::prost::alloc::string::String,
    /// Insertions a second. Unset: as many as come. 0: none.
    #[prost(double, optional, tag = "3")]
    pub per_second: ::core::option::Option<f64>,
}
/// How often something happened.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct EventStats {
    /// What, as in docs/operations.md.
    #[prost(string, tag = "1")]
    pub event: ::prost::alloc::string::String,
    /// How often.
    #[prost(uint64, tag = "2")]
    pub count: u64,
}
/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ConditionReason {
    /// Never sent.
    Unspecified = 0,
    /// The packet path is not at the generation in force.
    PacketPath = 1,
    /// The store cannot be written.
    Store = 2,
    /// The stored configuration cannot be used.
    StoredConfiguration = 3,
    /// Overrides are in memory only, or those from before the start are lost, or a fleet has not removed those whose time is
    /// over.
    Overrides = 4,
    /// Weights of overrides keep less than they ask for.
    OverrideWeights = 5,
    /// The configuration file, or another file that is followed, cannot be read or was refused.
    File = 6,
    /// The settings file cannot be read or was refused.
    Settings = 7,
    /// Sizes of maps wait, because the pinned maps have others.
    MapSizes = 8,
    /// The API's own certificate, or that of the HTTP listener, expires soon or has expired.
    CertificateExpires = 9,
    /// All authorities of clients of the API expire soon, or have expired.
    AuthoritiesExpire = 10,
    /// The audit log cannot be written.
    Audit = 11,
    /// Lines of the daemon's log were dropped.
    Log = 12,
    /// The file of health states cannot be written.
    HealthState = 13,
    /// The file of names for other programs cannot be written.
    Names = 14,
    /// Tunnels have no source address of an IP version.
    SourceAddress = 15,
    /// Another host has an address of the prefix that tunnels come from.
    SourcePrefix = 16,
    /// Several balancers have no common hash key.
    HashKey = 17,
    /// A pool has too few slots for its backends.
    Slots = 18,
    /// This balancer's own region is not in the configuration.
    Region = 19,
    /// The path to a backend is too narrow.
    NarrowPath = 20,
    /// Displaced connections are not remembered as fast as they come.
    DisplacedBudget = 21,
    /// The files of the API's certificate, key or authorities cannot be used.
    TlsFiles = 22,
    /// The files of the HTTP listener's certificate, key or tokens cannot be used.
    HttpFiles = 23,
    /// etcd, in which a fleet keeps its configuration, does not answer or takes no changes. Packets are balanced as before.
    Etcd = 24,
    /// What etcd has does not follow from what this balancer has in force; an operator has to decide.
    FleetConflict = 25,
    /// What the fleet has in force cannot be put in force at this balancer.
    FleetConfiguration = 26,
    /// The portions of capacities cannot be shared as they should be.
    FleetShares = 27,
}
impl ConditionReason {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "CONDITION_REASON_UNSPECIFIED",
            Self::PacketPath => "CONDITION_REASON_PACKET_PATH",
            Self::Store => "CONDITION_REASON_STORE",
            Self::StoredConfiguration => "CONDITION_REASON_STORED_CONFIGURATION",
            Self::Overrides => "CONDITION_REASON_OVERRIDES",
            Self::OverrideWeights => "CONDITION_REASON_OVERRIDE_WEIGHTS",
            Self::File => "CONDITION_REASON_FILE",
            Self::Settings => "CONDITION_REASON_SETTINGS",
            Self::MapSizes => "CONDITION_REASON_MAP_SIZES",
            Self::CertificateExpires => "CONDITION_REASON_CERTIFICATE_EXPIRES",
            Self::AuthoritiesExpire => "CONDITION_REASON_AUTHORITIES_EXPIRE",
            Self::Audit => "CONDITION_REASON_AUDIT",
            Self::Log => "CONDITION_REASON_LOG",
            Self::HealthState => "CONDITION_REASON_HEALTH_STATE",
            Self::Names => "CONDITION_REASON_NAMES",
            Self::SourceAddress => "CONDITION_REASON_SOURCE_ADDRESS",
            Self::SourcePrefix => "CONDITION_REASON_SOURCE_PREFIX",
            Self::HashKey => "CONDITION_REASON_HASH_KEY",
            Self::Slots => "CONDITION_REASON_SLOTS",
            Self::Region => "CONDITION_REASON_REGION",
            Self::NarrowPath => "CONDITION_REASON_NARROW_PATH",
            Self::DisplacedBudget => "CONDITION_REASON_DISPLACED_BUDGET",
            Self::TlsFiles => "CONDITION_REASON_TLS_FILES",
            Self::HttpFiles => "CONDITION_REASON_HTTP_FILES",
            Self::Etcd => "CONDITION_REASON_ETCD",
            Self::FleetConflict => "CONDITION_REASON_FLEET_CONFLICT",
            Self::FleetConfiguration => "CONDITION_REASON_FLEET_CONFIGURATION",
            Self::FleetShares => "CONDITION_REASON_FLEET_SHARES",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "CONDITION_REASON_UNSPECIFIED" => Some(Self::Unspecified),
            "CONDITION_REASON_PACKET_PATH" => Some(Self::PacketPath),
            "CONDITION_REASON_STORE" => Some(Self::Store),
            "CONDITION_REASON_STORED_CONFIGURATION" => Some(Self::StoredConfiguration),
            "CONDITION_REASON_OVERRIDES" => Some(Self::Overrides),
            "CONDITION_REASON_OVERRIDE_WEIGHTS" => Some(Self::OverrideWeights),
            "CONDITION_REASON_FILE" => Some(Self::File),
            "CONDITION_REASON_SETTINGS" => Some(Self::Settings),
            "CONDITION_REASON_MAP_SIZES" => Some(Self::MapSizes),
            "CONDITION_REASON_CERTIFICATE_EXPIRES" => Some(Self::CertificateExpires),
            "CONDITION_REASON_AUTHORITIES_EXPIRE" => Some(Self::AuthoritiesExpire),
            "CONDITION_REASON_AUDIT" => Some(Self::Audit),
            "CONDITION_REASON_LOG" => Some(Self::Log),
            "CONDITION_REASON_HEALTH_STATE" => Some(Self::HealthState),
            "CONDITION_REASON_NAMES" => Some(Self::Names),
            "CONDITION_REASON_SOURCE_ADDRESS" => Some(Self::SourceAddress),
            "CONDITION_REASON_SOURCE_PREFIX" => Some(Self::SourcePrefix),
            "CONDITION_REASON_HASH_KEY" => Some(Self::HashKey),
            "CONDITION_REASON_SLOTS" => Some(Self::Slots),
            "CONDITION_REASON_REGION" => Some(Self::Region),
            "CONDITION_REASON_NARROW_PATH" => Some(Self::NarrowPath),
            "CONDITION_REASON_DISPLACED_BUDGET" => Some(Self::DisplacedBudget),
            "CONDITION_REASON_TLS_FILES" => Some(Self::TlsFiles),
            "CONDITION_REASON_HTTP_FILES" => Some(Self::HttpFiles),
            "CONDITION_REASON_ETCD" => Some(Self::Etcd),
            "CONDITION_REASON_FLEET_CONFLICT" => Some(Self::FleetConflict),
            "CONDITION_REASON_FLEET_CONFIGURATION" => Some(Self::FleetConfiguration),
            "CONDITION_REASON_FLEET_SHARES" => Some(Self::FleetShares),
            _ => None,
        }
    }
}
/// State of a backend in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum BackendState {
    /// Never sent.
    Unspecified = 0,
    /// Has not passed a check yet, takes nothing.
    Pending = 1,
    /// Takes new connections.
    Up = 2,
    /// A check fails, but the host replies; open connections stay.
    Unhealthy = 3,
    /// It passes its checks, but went down soon after its last return, and gets no new connections for a while; open ones
    /// stay.
    HeldDown = 4,
    /// The host does not reply; open connections move. So is one that drains and becomes unreachable.
    Unreachable = 5,
    /// Takes no new connections by request of the configuration, an override or its agent check; open ones stay.
    Draining = 6,
    /// By request of the configuration or an override: takes nothing, open connections move.
    Disabled = 7,
}
impl BackendState {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "BACKEND_STATE_UNSPECIFIED",
            Self::Pending => "BACKEND_STATE_PENDING",
            Self::Up => "BACKEND_STATE_UP",
            Self::Unhealthy => "BACKEND_STATE_UNHEALTHY",
            Self::HeldDown => "BACKEND_STATE_HELD_DOWN",
            Self::Unreachable => "BACKEND_STATE_UNREACHABLE",
            Self::Draining => "BACKEND_STATE_DRAINING",
            Self::Disabled => "BACKEND_STATE_DISABLED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "BACKEND_STATE_UNSPECIFIED" => Some(Self::Unspecified),
            "BACKEND_STATE_PENDING" => Some(Self::Pending),
            "BACKEND_STATE_UP" => Some(Self::Up),
            "BACKEND_STATE_UNHEALTHY" => Some(Self::Unhealthy),
            "BACKEND_STATE_HELD_DOWN" => Some(Self::HeldDown),
            "BACKEND_STATE_UNREACHABLE" => Some(Self::Unreachable),
            "BACKEND_STATE_DRAINING" => Some(Self::Draining),
            "BACKEND_STATE_DISABLED" => Some(Self::Disabled),
            _ => None,
        }
    }
}
/// Generated client implementations.
pub mod spillway_client {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    use tonic::codegen::http::Uri;
    /// The balancer's daemon.
    #[derive(Debug, Clone)]
    pub struct SpillwayClient {
        inner: tonic::client::Grpc<tonic::transport::Channel>,
    }
    impl SpillwayClient {
        pub fn new(inner: tonic::transport::Channel) -> Self {
            let inner = tonic::client::Grpc::new(inner);
            Self { inner }
        }
        pub fn with_origin(inner: tonic::transport::Channel, origin: Uri) -> Self {
            let inner = tonic::client::Grpc::with_origin(inner, origin);
            Self { inner }
        }
        /// Compress requests with the given encoding.
        ///
        /// This requires the server to support it otherwise it might respond with an
        /// error.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.send_compressed(encoding);
            self
        }
        /// Enable decompressing responses.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.accept_compressed(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_decoding_message_size(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_encoding_message_size(limit);
            self
        }
        /// Replaces the whole configuration as one generation. It is on disk and in the packet path before
        /// the answer. INVALID_ARGUMENT names the field and changes nothing; the trailer "spillway-field"
        /// has its path, as in "services\[2\].port", and google.rpc.BadRequest in the details has the mistakes, as many as fit in
        /// 4 KiB; a last entry without field says how many more there are. ABORTED: expected_generation is not the current one.
        /// FAILED_PRECONDITION: the schema revision of the caller or the store is another than the daemon's, or the change removes
        /// so much that it needs force; nothing changed.
        /// RESOURCE_EXHAUSTED: the packet path has no room for it, its maps would take more memory than they may, or too many
        /// numbers are in use or in quarantine after other changes; nothing changed. INTERNAL: the message says what failed, and
        /// whether the generation is in force all the same. If it is, the same request fails with the same message until the packet
        /// path has the generation, and then succeeds; with validate_only it succeeds, with that message as a warning.
        pub fn apply(
            &mut self,
            request: impl tonic::IntoRequest<super::ApplyRequest>,
        ) -> BoxFuture<tonic::Response<super::ApplyResponse>, tonic::Status> {
            self.send_apply(request.into_request())
        }
        /// The configuration in force, or the stored one where the daemon cannot use it. FAILED_PRECONDITION: the stored
        /// one cannot be read at all.
        pub fn export(
            &mut self,
            request: impl tonic::IntoRequest<super::ExportRequest>,
        ) -> BoxFuture<tonic::Response<super::ExportResponse>, tonic::Status> {
            self.send_export(request.into_request())
        }
        /// The last generations, at most 20, with who applied them and why.
        pub fn list_generations(
            &mut self,
            request: impl tonic::IntoRequest<super::ListGenerationsRequest>,
        ) -> BoxFuture<tonic::Response<super::ListGenerationsResponse>, tonic::Status> {
            self.send_list_generations(request.into_request())
        }
        /// What is different between two generations of the history. NOT_FOUND: the history does not have one of them.
        /// FAILED_PRECONDITION: the daemon cannot use one of them: it is damaged, or was written by another version.
        /// INTERNAL: the store cannot be read.
        pub fn diff_generations(
            &mut self,
            request: impl tonic::IntoRequest<super::DiffGenerationsRequest>,
        ) -> BoxFuture<tonic::Response<super::DiffGenerationsResponse>, tonic::Status> {
            self.send_diff_generations(request.into_request())
        }
        /// Makes a new generation with exactly the configuration of an earlier one. The call is checked, answered and refused
        /// as an Apply of that configuration; a warning says whether the configuration file will revert it. NOT_FOUND, FAILED_PRECONDITION and INTERNAL also as for DiffGenerations.
        pub fn rollback(
            &mut self,
            request: impl tonic::IntoRequest<super::RollbackRequest>,
        ) -> BoxFuture<tonic::Response<super::RollbackResponse>, tonic::Status> {
            self.send_rollback(request.into_request())
        }
        /// What the daemon is and how its backends are, all of them or a page at a time. NOT_FOUND: there is no such pool.
        pub fn status(
            &mut self,
            request: impl tonic::IntoRequest<super::StatusRequest>,
        ) -> BoxFuture<tonic::Response<super::StatusResponse>, tonic::Status> {
            self.send_status(request.into_request())
        }
        /// How one backend is. NOT_FOUND: no pool has the name, or it has no such backend.
        pub fn get_backend_status(
            &mut self,
            request: impl tonic::IntoRequest<super::GetBackendStatusRequest>,
        ) -> BoxFuture<tonic::Response<super::BackendStatus>, tonic::Status> {
            self.send_get_backend_status(request.into_request())
        }
        /// Demand against capacity, region by region, as this balancer sees it: what an autoscaler asks.
        /// NOT_FOUND: no pool has the name.
        pub fn regions(
            &mut self,
            request: impl tonic::IntoRequest<super::RegionsRequest>,
        ) -> BoxFuture<tonic::Response<super::RegionsResponse>, tonic::Status> {
            self.send_regions(request.into_request())
        }
        /// A snapshot first, in several messages from snapshot_begin to snapshot_end, then every change of generation, health,
        /// next hop, capacity or overrides until the caller stops. A change of many backends is one message. With the
        /// resume_token of an earlier message the watch goes on after it, without a snapshot; a caller who lags far behind gets a
        /// snapshot again. Whoever applies all messages in order knows the generation, the overrides, and how backends are, but their shares,
        /// reports and the time that they are still held down; Regions answers what groups can take after a snapshot. UNAVAILABLE at the end: the daemon stops.
        /// RESOURCE_EXHAUSTED: there are too many watches, or the caller lags behind again within 10 seconds.
        pub fn watch(
            &mut self,
            request: impl tonic::IntoRequest<super::WatchRequest>,
        ) -> BoxFuture<
            tonic::Response<tonic::codec::Streaming<super::WatchResponse>>,
            tonic::Status,
        > {
            self.send_watch(request.into_request())
        }
        /// What the packet path counted. UNAVAILABLE: its maps cannot be read.
        pub fn stats(
            &mut self,
            request: impl tonic::IntoRequest<super::StatsRequest>,
        ) -> BoxFuture<tonic::Response<super::StatsResponse>, tonic::Status> {
            self.send_stats(request.into_request())
        }
        /// Which backend a packet goes to, and why: the packet path's own decision over what it reads now.
        /// Nothing is sent, nothing counted. UNAVAILABLE: its maps cannot be read.
        pub fn explain(
            &mut self,
            request: impl tonic::IntoRequest<super::ExplainRequest>,
        ) -> BoxFuture<tonic::Response<super::ExplainResponse>, tonic::Status> {
            self.send_explain(request.into_request())
        }
        /// Who owns the slots of pools' tables, and how many slots' new connections each backend has now. It
        /// counts slots and lists none, so that the answer grows with the backends alone. NOT_FOUND: no
        /// published pool has the name. UNAVAILABLE: the maps cannot be read.
        pub fn table(
            &mut self,
            request: impl tonic::IntoRequest<super::TableRequest>,
        ) -> BoxFuture<tonic::Response<super::TableResponse>, tonic::Status> {
            self.send_table(request.into_request())
        }
        /// The last changes of state of backends, with their reasons. NOT_FOUND: no pool has the name, or it
        /// has no such backend.
        pub fn backend_history(
            &mut self,
            request: impl tonic::IntoRequest<super::BackendHistoryRequest>,
        ) -> BoxFuture<tonic::Response<super::BackendHistoryResponse>, tonic::Status> {
            self.send_backend_history(request.into_request())
        }
        /// Packets as the packet path sees them, as they come and as they leave, with what was decided; a
        /// summary at the end. There is one capture at a time, and it ends with its caller. INVALID_ARGUMENT
        /// names the field in the trailer "spillway-field". FAILED_PRECONDITION: there is another capture.
        /// UNAVAILABLE: the packet path cannot be asked, or the daemon stops.
        pub fn capture(
            &mut self,
            request: impl tonic::IntoRequest<super::CaptureRequest>,
        ) -> BoxFuture<
            tonic::Response<tonic::codec::Streaming<super::CaptureResponse>>,
            tonic::Status,
        > {
            self.send_capture(request.into_request())
        }
        /// Whether VIPs answer on their backends through the pools' own tunnels, and whether packets of the full size
        /// get there: echo requests, for each backend, VIP and encapsulation once; disabled backends are left out.
        /// At most 1024 ways a call; a summary at the end. There is one such call at a time, and it ends with its
        /// caller. INVALID_ARGUMENT names the field in the trailer "spillway-field". NOT_FOUND: no pool has the
        /// name, or there is no such backend. FAILED_PRECONDITION: there is another such call. UNAVAILABLE: the
        /// daemon stops.
        pub fn probe_vips(
            &mut self,
            request: impl tonic::IntoRequest<super::ProbeVipsRequest>,
        ) -> BoxFuture<
            tonic::Response<tonic::codec::Streaming<super::ProbeVipsResponse>>,
            tonic::Status,
        > {
            self.send_probe_vips(request.into_request())
        }
        /// Reads the daemon's settings again, and the configuration file that they name (`apply`), as SIGHUP does, and
        /// answers when that is done. FAILED_PRECONDITION: something was refused, which the message names; what was in
        /// force of it stays. With wrong settings the configuration is not read. UNAVAILABLE: the daemon stops.
        pub fn reload(
            &mut self,
            request: impl tonic::IntoRequest<super::ReloadRequest>,
        ) -> BoxFuture<tonic::Response<super::ReloadResponse>, tonic::Status> {
            self.send_reload(request.into_request())
        }
        fn send_apply(
            &self,
            request: tonic::Request<super::ApplyRequest>,
        ) -> BoxFuture<tonic::Response<super::ApplyResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Apply",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Apply"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_export(
            &self,
            request: tonic::Request<super::ExportRequest>,
        ) -> BoxFuture<tonic::Response<super::ExportResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Export",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Export"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_list_generations(
            &self,
            request: tonic::Request<super::ListGenerationsRequest>,
        ) -> BoxFuture<tonic::Response<super::ListGenerationsResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/ListGenerations",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "ListGenerations"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_diff_generations(
            &self,
            request: tonic::Request<super::DiffGenerationsRequest>,
        ) -> BoxFuture<tonic::Response<super::DiffGenerationsResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/DiffGenerations",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "DiffGenerations"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_rollback(
            &self,
            request: tonic::Request<super::RollbackRequest>,
        ) -> BoxFuture<tonic::Response<super::RollbackResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Rollback",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Rollback"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_status(
            &self,
            request: tonic::Request<super::StatusRequest>,
        ) -> BoxFuture<tonic::Response<super::StatusResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Status",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Status"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_get_backend_status(
            &self,
            request: tonic::Request<super::GetBackendStatusRequest>,
        ) -> BoxFuture<tonic::Response<super::BackendStatus>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/GetBackendStatus",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "GetBackendStatus"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_regions(
            &self,
            request: tonic::Request<super::RegionsRequest>,
        ) -> BoxFuture<tonic::Response<super::RegionsResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Regions",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Regions"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_watch(
            &self,
            request: tonic::Request<super::WatchRequest>,
        ) -> BoxFuture<
            tonic::Response<tonic::codec::Streaming<super::WatchResponse>>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Watch",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Watch"));
                inner.server_streaming(req, path, codec).await
            })
        }
        fn send_stats(
            &self,
            request: tonic::Request<super::StatsRequest>,
        ) -> BoxFuture<tonic::Response<super::StatsResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Stats",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Stats"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_explain(
            &self,
            request: tonic::Request<super::ExplainRequest>,
        ) -> BoxFuture<tonic::Response<super::ExplainResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Explain",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Explain"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_table(
            &self,
            request: tonic::Request<super::TableRequest>,
        ) -> BoxFuture<tonic::Response<super::TableResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Table",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Table"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_backend_history(
            &self,
            request: tonic::Request<super::BackendHistoryRequest>,
        ) -> BoxFuture<tonic::Response<super::BackendHistoryResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/BackendHistory",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "BackendHistory"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_capture(
            &self,
            request: tonic::Request<super::CaptureRequest>,
        ) -> BoxFuture<
            tonic::Response<tonic::codec::Streaming<super::CaptureResponse>>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Capture",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Capture"));
                inner.server_streaming(req, path, codec).await
            })
        }
        fn send_probe_vips(
            &self,
            request: tonic::Request<super::ProbeVipsRequest>,
        ) -> BoxFuture<
            tonic::Response<tonic::codec::Streaming<super::ProbeVipsResponse>>,
            tonic::Status,
        > {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/ProbeVips",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "ProbeVips"));
                inner.server_streaming(req, path, codec).await
            })
        }
        fn send_reload(
            &self,
            request: tonic::Request<super::ReloadRequest>,
        ) -> BoxFuture<tonic::Response<super::ReloadResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.v1.Spillway/Reload",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.v1.Spillway", "Reload"));
                inner.unary(req, path, codec).await
            })
        }
    }
}
/// Generated server implementations.
pub mod spillway_server {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    /// Generated trait containing gRPC methods that should be implemented for use with SpillwayServer.
    #[async_trait]
    pub trait Spillway: std::marker::Send + std::marker::Sync + 'static {
        /// Replaces the whole configuration as one generation. It is on disk and in the packet path before
        /// the answer. INVALID_ARGUMENT names the field and changes nothing; the trailer "spillway-field"
        /// has its path, as in "services\[2\].port", and google.rpc.BadRequest in the details has the mistakes, as many as fit in
        /// 4 KiB; a last entry without field says how many more there are. ABORTED: expected_generation is not the current one.
        /// FAILED_PRECONDITION: the schema revision of the caller or the store is another than the daemon's, or the change removes
        /// so much that it needs force; nothing changed.
        /// RESOURCE_EXHAUSTED: the packet path has no room for it, its maps would take more memory than they may, or too many
        /// numbers are in use or in quarantine after other changes; nothing changed. INTERNAL: the message says what failed, and
        /// whether the generation is in force all the same. If it is, the same request fails with the same message until the packet
        /// path has the generation, and then succeeds; with validate_only it succeeds, with that message as a warning.
        async fn apply(
            &self,
            request: tonic::Request<super::ApplyRequest>,
        ) -> std::result::Result<tonic::Response<super::ApplyResponse>, tonic::Status>;
        /// The configuration in force, or the stored one where the daemon cannot use it. FAILED_PRECONDITION: the stored
        /// one cannot be read at all.
        async fn export(
            &self,
            request: tonic::Request<super::ExportRequest>,
        ) -> std::result::Result<tonic::Response<super::ExportResponse>, tonic::Status>;
        /// The last generations, at most 20, with who applied them and why.
        async fn list_generations(
            &self,
            request: tonic::Request<super::ListGenerationsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::ListGenerationsResponse>,
            tonic::Status,
        >;
        /// What is different between two generations of the history. NOT_FOUND: the history does not have one of them.
        /// FAILED_PRECONDITION: the daemon cannot use one of them: it is damaged, or was written by another version.
        /// INTERNAL: the store cannot be read.
        async fn diff_generations(
            &self,
            request: tonic::Request<super::DiffGenerationsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::DiffGenerationsResponse>,
            tonic::Status,
        >;
        /// Makes a new generation with exactly the configuration of an earlier one. The call is checked, answered and refused
        /// as an Apply of that configuration; a warning says whether the configuration file will revert it. NOT_FOUND, FAILED_PRECONDITION and INTERNAL also as for DiffGenerations.
        async fn rollback(
            &self,
            request: tonic::Request<super::RollbackRequest>,
        ) -> std::result::Result<
            tonic::Response<super::RollbackResponse>,
            tonic::Status,
        >;
        /// What the daemon is and how its backends are, all of them or a page at a time. NOT_FOUND: there is no such pool.
        async fn status(
            &self,
            request: tonic::Request<super::StatusRequest>,
        ) -> std::result::Result<tonic::Response<super::StatusResponse>, tonic::Status>;
        /// How one backend is. NOT_FOUND: no pool has the name, or it has no such backend.
        async fn get_backend_status(
            &self,
            request: tonic::Request<super::GetBackendStatusRequest>,
        ) -> std::result::Result<tonic::Response<super::BackendStatus>, tonic::Status>;
        /// Demand against capacity, region by region, as this balancer sees it: what an autoscaler asks.
        /// NOT_FOUND: no pool has the name.
        async fn regions(
            &self,
            request: tonic::Request<super::RegionsRequest>,
        ) -> std::result::Result<tonic::Response<super::RegionsResponse>, tonic::Status>;
        /// A snapshot first, in several messages from snapshot_begin to snapshot_end, then every change of generation, health,
        /// next hop, capacity or overrides until the caller stops. A change of many backends is one message. With the
        /// resume_token of an earlier message the watch goes on after it, without a snapshot; a caller who lags far behind gets a
        /// snapshot again. Whoever applies all messages in order knows the generation, the overrides, and how backends are, but their shares,
        /// reports and the time that they are still held down; Regions answers what groups can take after a snapshot. UNAVAILABLE at the end: the daemon stops.
        /// RESOURCE_EXHAUSTED: there are too many watches, or the caller lags behind again within 10 seconds.
        async fn watch(
            &self,
            request: tonic::Request<super::WatchRequest>,
        ) -> std::result::Result<
            tonic::Response<BoxStream<super::WatchResponse>>,
            tonic::Status,
        >;
        /// What the packet path counted. UNAVAILABLE: its maps cannot be read.
        async fn stats(
            &self,
            request: tonic::Request<super::StatsRequest>,
        ) -> std::result::Result<tonic::Response<super::StatsResponse>, tonic::Status>;
        /// Which backend a packet goes to, and why: the packet path's own decision over what it reads now.
        /// Nothing is sent, nothing counted. UNAVAILABLE: its maps cannot be read.
        async fn explain(
            &self,
            request: tonic::Request<super::ExplainRequest>,
        ) -> std::result::Result<tonic::Response<super::ExplainResponse>, tonic::Status>;
        /// Who owns the slots of pools' tables, and how many slots' new connections each backend has now. It
        /// counts slots and lists none, so that the answer grows with the backends alone. NOT_FOUND: no
        /// published pool has the name. UNAVAILABLE: the maps cannot be read.
        async fn table(
            &self,
            request: tonic::Request<super::TableRequest>,
        ) -> std::result::Result<tonic::Response<super::TableResponse>, tonic::Status>;
        /// The last changes of state of backends, with their reasons. NOT_FOUND: no pool has the name, or it
        /// has no such backend.
        async fn backend_history(
            &self,
            request: tonic::Request<super::BackendHistoryRequest>,
        ) -> std::result::Result<
            tonic::Response<super::BackendHistoryResponse>,
            tonic::Status,
        >;
        /// Packets as the packet path sees them, as they come and as they leave, with what was decided; a
        /// summary at the end. There is one capture at a time, and it ends with its caller. INVALID_ARGUMENT
        /// names the field in the trailer "spillway-field". FAILED_PRECONDITION: there is another capture.
        /// UNAVAILABLE: the packet path cannot be asked, or the daemon stops.
        async fn capture(
            &self,
            request: tonic::Request<super::CaptureRequest>,
        ) -> std::result::Result<
            tonic::Response<BoxStream<super::CaptureResponse>>,
            tonic::Status,
        >;
        /// Whether VIPs answer on their backends through the pools' own tunnels, and whether packets of the full size
        /// get there: echo requests, for each backend, VIP and encapsulation once; disabled backends are left out.
        /// At most 1024 ways a call; a summary at the end. There is one such call at a time, and it ends with its
        /// caller. INVALID_ARGUMENT names the field in the trailer "spillway-field". NOT_FOUND: no pool has the
        /// name, or there is no such backend. FAILED_PRECONDITION: there is another such call. UNAVAILABLE: the
        /// daemon stops.
        async fn probe_vips(
            &self,
            request: tonic::Request<super::ProbeVipsRequest>,
        ) -> std::result::Result<
            tonic::Response<BoxStream<super::ProbeVipsResponse>>,
            tonic::Status,
        >;
        /// Reads the daemon's settings again, and the configuration file that they name (`apply`), as SIGHUP does, and
        /// answers when that is done. FAILED_PRECONDITION: something was refused, which the message names; what was in
        /// force of it stays. With wrong settings the configuration is not read. UNAVAILABLE: the daemon stops.
        async fn reload(
            &self,
            request: tonic::Request<super::ReloadRequest>,
        ) -> std::result::Result<tonic::Response<super::ReloadResponse>, tonic::Status>;
    }
    /// The balancer's daemon.
    pub struct SpillwayServer {
        inner: Arc<dyn Spillway>,
        accept_compression_encodings: EnabledCompressionEncodings,
        send_compression_encodings: EnabledCompressionEncodings,
        max_decoding_message_size: Option<usize>,
        max_encoding_message_size: Option<usize>,
    }
    impl SpillwayServer {
        pub fn new(inner: impl Spillway) -> Self {
            Self::from_arc(Arc::new(inner))
        }
        pub fn from_arc(inner: Arc<dyn Spillway>) -> Self {
            Self {
                inner,
                accept_compression_encodings: Default::default(),
                send_compression_encodings: Default::default(),
                max_decoding_message_size: None,
                max_encoding_message_size: None,
            }
        }
        /// Enable decompressing requests with the given encoding.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.accept_compression_encodings.enable(encoding);
            self
        }
        /// Compress responses with the given encoding, if the client supports it.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.send_compression_encodings.enable(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.max_decoding_message_size = Some(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.max_encoding_message_size = Some(limit);
            self
        }
    }
    impl tonic::codegen::Service<http::Request<tonic::body::Body>> for SpillwayServer {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;
        fn poll_ready(
            &mut self,
            _cx: &mut Context<'_>,
        ) -> Poll<std::result::Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, req: http::Request<tonic::body::Body>) -> Self::Future {
            match req.uri().path() {
                "/spillway.v1.Spillway/Apply" => {
                    #[allow(non_camel_case_types)]
                    struct ApplySvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::ApplyRequest> for ApplySvc {
                        type Response = super::ApplyResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ApplyRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::apply(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ApplySvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Export" => {
                    #[allow(non_camel_case_types)]
                    struct ExportSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::ExportRequest>
                    for ExportSvc {
                        type Response = super::ExportResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ExportRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::export(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ExportSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/ListGenerations" => {
                    #[allow(non_camel_case_types)]
                    struct ListGenerationsSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::ListGenerationsRequest>
                    for ListGenerationsSvc {
                        type Response = super::ListGenerationsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ListGenerationsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::list_generations(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ListGenerationsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/DiffGenerations" => {
                    #[allow(non_camel_case_types)]
                    struct DiffGenerationsSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::DiffGenerationsRequest>
                    for DiffGenerationsSvc {
                        type Response = super::DiffGenerationsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::DiffGenerationsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::diff_generations(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = DiffGenerationsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Rollback" => {
                    #[allow(non_camel_case_types)]
                    struct RollbackSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::RollbackRequest>
                    for RollbackSvc {
                        type Response = super::RollbackResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::RollbackRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::rollback(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = RollbackSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Status" => {
                    #[allow(non_camel_case_types)]
                    struct StatusSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::StatusRequest>
                    for StatusSvc {
                        type Response = super::StatusResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::StatusRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::status(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = StatusSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/GetBackendStatus" => {
                    #[allow(non_camel_case_types)]
                    struct GetBackendStatusSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::GetBackendStatusRequest>
                    for GetBackendStatusSvc {
                        type Response = super::BackendStatus;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::GetBackendStatusRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::get_backend_status(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GetBackendStatusSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Regions" => {
                    #[allow(non_camel_case_types)]
                    struct RegionsSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::RegionsRequest>
                    for RegionsSvc {
                        type Response = super::RegionsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::RegionsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::regions(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = RegionsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Watch" => {
                    #[allow(non_camel_case_types)]
                    struct WatchSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::ServerStreamingService<super::WatchRequest>
                    for WatchSvc {
                        type Response = super::WatchResponse;
                        type ResponseStream = BoxStream<super::WatchResponse>;
                        type Future = BoxFuture<
                            tonic::Response<Self::ResponseStream>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::WatchRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::watch(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = WatchSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.server_streaming(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Stats" => {
                    #[allow(non_camel_case_types)]
                    struct StatsSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::StatsRequest> for StatsSvc {
                        type Response = super::StatsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::StatsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::stats(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = StatsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Explain" => {
                    #[allow(non_camel_case_types)]
                    struct ExplainSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::ExplainRequest>
                    for ExplainSvc {
                        type Response = super::ExplainResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ExplainRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::explain(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ExplainSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Table" => {
                    #[allow(non_camel_case_types)]
                    struct TableSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::TableRequest> for TableSvc {
                        type Response = super::TableResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::TableRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::table(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = TableSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/BackendHistory" => {
                    #[allow(non_camel_case_types)]
                    struct BackendHistorySvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::BackendHistoryRequest>
                    for BackendHistorySvc {
                        type Response = super::BackendHistoryResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::BackendHistoryRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::backend_history(
                                        &*inner,
                                        request,
                                    )
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = BackendHistorySvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Capture" => {
                    #[allow(non_camel_case_types)]
                    struct CaptureSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::ServerStreamingService<super::CaptureRequest>
                    for CaptureSvc {
                        type Response = super::CaptureResponse;
                        type ResponseStream = BoxStream<super::CaptureResponse>;
                        type Future = BoxFuture<
                            tonic::Response<Self::ResponseStream>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::CaptureRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::capture(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CaptureSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.server_streaming(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/ProbeVips" => {
                    #[allow(non_camel_case_types)]
                    struct ProbeVipsSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::ServerStreamingService<super::ProbeVipsRequest>
                    for ProbeVipsSvc {
                        type Response = super::ProbeVipsResponse;
                        type ResponseStream = BoxStream<super::ProbeVipsResponse>;
                        type Future = BoxFuture<
                            tonic::Response<Self::ResponseStream>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ProbeVipsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::probe_vips(&*inner, request)
                                    .await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ProbeVipsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.server_streaming(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.v1.Spillway/Reload" => {
                    #[allow(non_camel_case_types)]
                    struct ReloadSvc(pub Arc<dyn Spillway>);
                    impl tonic::server::UnaryService<super::ReloadRequest>
                    for ReloadSvc {
                        type Response = super::ReloadResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ReloadRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Spillway as Spillway>::reload(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ReloadSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                _ => {
                    Box::pin(async move {
                        let mut response = http::Response::new(
                            tonic::body::Body::default(),
                        );
                        let headers = response.headers_mut();
                        headers
                            .insert(
                                tonic::Status::GRPC_STATUS,
                                (tonic::Code::Unimplemented as i32).into(),
                            );
                        headers
                            .insert(
                                http::header::CONTENT_TYPE,
                                tonic::metadata::GRPC_CONTENT_TYPE,
                            );
                        Ok(response)
                    })
                }
            }
        }
    }
    impl Clone for SpillwayServer {
        fn clone(&self) -> Self {
            let inner = self.inner.clone();
            Self {
                inner,
                accept_compression_encodings: self.accept_compression_encodings,
                send_compression_encodings: self.send_compression_encodings,
                max_decoding_message_size: self.max_decoding_message_size,
                max_encoding_message_size: self.max_encoding_message_size,
            }
        }
    }
    /// Generated gRPC service name
    pub const SERVICE_NAME: &str = "spillway.v1.Spillway";
    impl tonic::server::NamedService for SpillwayServer {
        const NAME: &'static str = SERVICE_NAME;
    }
}

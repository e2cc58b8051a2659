//! All metrics there are. docs/metrics.md is made of this list.

use super::definition::{Base, Definition, Kind};

macro_rules! metrics {
    ($($id:ident: $kind:ident $name:literal $unit:ident [$($label:literal),*] $help:literal;)+) => {
        $(
            #[doc = $help]
            pub(super) const $id: Definition = Definition {
                name: $name,
                kind: Kind::$kind,
                unit: Base::$unit,
                labels: &[$($label),*],
                help: $help,
            };
        )+

        /// All of them, in the order of the exposition.
        pub const ALL: &[&Definition] = &[$(&$id),+];
    };
}

metrics! {
    VERDICT_PACKETS: Counter "verdict_packets" None ["component", "verdict", "action"]
        "Packets by what became of them; /usr/share/doc/spillway/docs/verdicts.md has the verdicts";
    VERDICT_BYTES: Counter "verdict" Bytes ["component", "verdict", "action"]
        "Bytes of frames as they came in, by what became of them";

    SERVICE: Info "service" None ["service", "endpoint", "protocol", "pool"]
        "A service, its address and ports, and its pool";
    SERVICE_PACKETS: Counter "service_packets" None ["service"]
        "Packets of a service that were forwarded";
    SERVICE_BYTES: Counter "service" Bytes ["service"]
        "Bytes of frames of a service that were forwarded";
    SERVICE_CONNECTIONS: Counter "service_connections" None ["service"]
        "SYNs of a service that were forwarded, repeated ones included";
    SERVICE_BACKENDS: Gauge "service_backends" None ["service"]
        "Backends of a service's pool";
    SERVICE_BACKENDS_UP: Gauge "service_backends_up" None ["service"]
        "Backends of a service's pool that can have new connections: up, of some weight, next hop resolved";

    BACKEND_PACKETS: Counter "backend_packets" None ["backend"]
        "Packets that were forwarded to a backend address, over all pools that have it";
    BACKEND_BYTES: Counter "backend" Bytes ["backend"]
        "Bytes of frames that were forwarded to a backend address, over all pools that have it";
    BACKEND_CONNECTIONS: Counter "backend_connections" None ["backend"]
        "SYNs that were forwarded to a backend address, repeated ones included, over all pools that have it";
    BACKEND_NEXT_HOP_RESOLVED: Gauge "backend_next_hop_resolved" None ["backend"]
        "1: the next hop towards a backend address has a MAC; 0: it has none, and the backend takes no new connections, and soon nothing";
    BACKEND_MTU: Gauge "backend_mtu" Bytes ["backend"]
        "Largest outer packet towards a backend: the smallest of its configured MTU and those of the route and the interface. Absent: it has no next hop";
    BACKEND_UP: Gauge "backend_up" None ["pool", "backend", "region"]
        "1: a backend is up in a pool and takes new connections; 0: it is in another state";
    BACKEND_STATE: Gauge "backend_state" None ["pool", "backend", "region", "state"]
        "1: a backend is in this state in a pool: up, or, taking no new connections, unhealthy, held_down or draining, or, taking nothing, pending, unreachable or disabled. Absent: it is in another state";
    BACKEND_SHARE: Gauge "backend_share" Ratio ["pool", "backend", "region"]
        "Share of the new connections of its own slots that a backend takes in a pool now; 0: it takes none";
    BACKEND_UTILISATION: Gauge "backend_utilisation" Ratio ["pool", "backend", "region"]
        "Utilisation that a backend reports, 1: it is fully utilised. Absent: it reports none";

    GROUP_OFFERED: Counter "group_connections_offered" None ["pool", "region"]
        "New connections that a pool's backends in a region were asked to take: the sum of admitted, overflow out and refused";
    GROUP_ADMITTED: Counter "group_connections_admitted" None ["pool", "region"]
        "New connections that a group took";
    GROUP_OVERFLOW_IN: Counter "group_connections_overflow_in" None ["pool", "region"]
        "New connections that a group took after a nearer one was asked first";
    GROUP_OVERFLOW_OUT: Counter "group_connections_overflow_out" None ["pool", "region"]
        "New connections that another group took, because this one was full or had no backend for them";
    GROUP_REFUSED: Counter "group_connections_refused" None ["pool", "region"]
        "New connections that were dropped because every group was full, counted at the first one asked";
    GROUP_OVER_CAPACITY: Counter "group_connections_over_capacity" None ["pool", "region"]
        "New connections that a group took beyond its limit, because every group was full";
    GROUP_LIMIT: Gauge "group_limit_connections_per_second" None ["pool", "region"]
        "New connections a second that this balancer admits to a group; 0: none. Absent: no limit";
    GROUP_CAPACITY: Gauge "group_capacity_connections_per_second" None ["pool", "region"]
        "New connections a second that a group takes now, over all balancers; 0: none. Absent: no limit";
    GROUP_CONFIGURED: Gauge "group_configured_connections_per_second" None ["pool", "region"]
        "New connections a second that a group takes with all backends healthy and the scaler at 1, over all balancers. Absent: no limit";
    GROUP_SCALER: Gauge "group_scaler" Ratio ["pool", "region"]
        "Share of a group's capacity that is in use; 0: it is drained";
    GROUP_PORTION: Gauge "group_portion" Ratio ["pool", "region"]
        "This balancer's portion of a group's capacity: equal on all balancers, or in a fleet what it owns; 0: it admits none";
    GROUP_BACKENDS: Gauge "group_backends" None ["pool", "region"]
        "Backends of a group";
    GROUP_BACKENDS_UP: Gauge "group_backends_up" None ["pool", "region"]
        "Backends of a group that can have new connections: up, of some weight, next hop resolved";
    GROUP_MISSING_BACKENDS: Gauge "group_missing_backends" None ["pool", "region"]
        "How many more backends of the mean max_connection_rate a group needs for what it was offered in the last second. Absent: not known";
    GROUP_MARKED_OUT: Gauge "group_marked_out" None ["pool", "region"]
        "1: all of a group was out of service for longer than the settle time, and is asked last; 0: it is asked in its place";

    BALANCERS: Gauge "balancers" None []
        "Balancers that share the capacities, as configured; in a fleet group_portion counts instead";
    FLEET_READY: Gauge "fleet_ready" None []
        "1: this balancer has everything of its fleet in force that it needs to take traffic; 0: it has not. Absent: this balancer is no member of a fleet";
    FLEET_BALANCERS: Gauge "fleet_balancers" None []
        "Balancers that are members of the fleet. Absent: this balancer is no member of a fleet, or has not read etcd since it started";
    FLEET_BALANCERS_ALIVE: Gauge "fleet_balancers_alive" None []
        "Balancers of the fleet that renewed their lease in etcd when it was last read. Absent: this balancer is no member of a fleet, or has not read etcd since it started";
    FLEET_BALANCERS_READY: Gauge "fleet_balancers_ready" None []
        "Balancers of the fleet that have everything in force that they need to take traffic. Absent: this balancer is no member of a fleet, or has not read etcd since it started";
    FLEET_BALANCERS_DIFFERING: Gauge "fleet_balancers_differing" None []
        "Balancers of the fleet with other tables than another one of their region has at the same revision. Absent: this balancer is no member of a fleet, or has not read etcd since it started";
    FLEET_ETCD_AVAILABLE: Gauge "fleet_etcd_available" None []
        "1: etcd answers this balancer and takes changes; 0: it does not, and changes are refused. Absent: this balancer is no member of a fleet";
    FLEET_ETCD_DATABASE: Gauge "fleet_etcd_database" Bytes []
        "Size of the database of etcd, on the server with the least room left; above the quota etcd takes no changes. Absent: this balancer is no member of a fleet, or etcd has not answered it since it started";
    FLEET_ETCD_DATABASE_IN_USE: Gauge "fleet_etcd_database_in_use" Bytes []
        "Part of fleet_etcd_database that is in use; the rest is given back by etcdctl defrag. Absent: this balancer is no member of a fleet, or etcd has not answered it since it started";
    FLEET_ETCD_QUOTA: Gauge "fleet_etcd_quota" Bytes []
        "Quota of the database of etcd; 2147483648, which is its default, if it does not tell, as before etcd 3.6. Absent: this balancer is no member of a fleet, or etcd has not answered it since it started";
    FLEET_CONFLICT: Gauge "fleet_conflict" None []
        "1: this balancer does not follow what etcd has, until spillway fleet restore decides; 0: it does. Absent: this balancer is no member of a fleet";
    FLEET_GENERATION: Gauge "fleet_generation" None []
        "Generation that etcd had when it was last read; spillway_generation has the one in force here. Absent: this balancer is no member of a fleet, or has not read etcd since it started";
    FLEET_REVISION: Gauge "fleet_revision" None []
        "Revision of configuration, overrides and homes that etcd had when it was last read. Absent: this balancer is no member of a fleet, or has not read etcd since it started";
    FLEET_REVISION_IN_FORCE: Gauge "fleet_revision_in_force" None []
        "Revision of the fleet that this balancer has in force; 0: none. Absent: this balancer is no member of a fleet";
    FLEET_SCHEMA_REVISION: Gauge "fleet_schema_revision" None []
        "Latest schema revision of configurations that all balancers of the fleet understand: fields of a later one are refused. Absent: this balancer is no member of a fleet, or has not read etcd since it started";
    FLEET_EPOCH: Gauge "fleet_epoch" None []
        "Epoch of the shares, which rises each time that portions of a lost balancer are given to the others. Absent: this balancer is no member of a fleet, or has not read etcd since it started";
    FLEET_EPOCH_OPEN: Gauge "fleet_epoch_open" None []
        "1: portions do not move, until all balancers have said what they own; 0: they do. Absent: this balancer is no member of a fleet, or has not read etcd since it started";
    GROUP_IN_FLIGHT: Gauge "group_in_flight" Ratio ["pool", "region"]
        "Portion of a group's capacity that this balancer gave to others of its fleet, and that is not known to have arrived. Absent: this balancer is no member of a fleet";

    POOL_HAS_DISPLACED: Gauge "pool_has_displaced" None ["pool"]
        "1: a pool may have displaced connections; 0: all are at home, and none is looked up";
    POOL_HELD_DOWN: Gauge "pool_backends_held_down" None ["pool"]
        "Backends of a pool that pass their checks and are held down, because they went down soon after they came back";
    POOL_SETTLING: Gauge "pool_settling" None ["pool"]
        "1: a pool is in a remap; 0: it is not";

    FLOWS_HELD: Gauge "flow_table_cells" None ["state"]
        "Cells of the flow table in use, by what is known of their flows: open, half_open, half_open_at_home, seen_once, closing, datagrams";
    FLOW_ROOM: Gauge "flow_table_room_cells" None []
        "Cells that the flow table has; it is sized for a third of them to be in use";
    EVENTS: Counter "events" None ["event"]
        "Events that verdicts do not count; /usr/share/doc/spillway/docs/operations.md lists them";

    GENERATION: Gauge "generation" None []
        "Generation of the configuration in force; 0: none was applied yet";
    APPLIED_AT: Gauge "generation_applied_timestamp" Seconds []
        "When the generation in force was applied, seconds of the Unix epoch. Absent: none was";
    OVERRIDES: Gauge "overrides" None ["kind"]
        "Overrides in force: drain, disable, weight, scale; spillway override list shows them";
    OVERRIDES_LOCAL: Gauge "overrides_local" None []
        "Overrides in force at this balancer alone, and not in its fleet; spillway_overrides counts them too";
    OVERRIDES_UNSTORED: Gauge "overrides_unstored" None []
        "1: what changed last of the overrides is in memory only, because the state directory cannot be written, and a restart would lose it; 0: all are stored";
    BEHIND: Gauge "packet_path_behind" None []
        "1: the packet path is not at the generation in force, and is tried again every second; 0: it is there";
    CONDITIONS: Gauge "conditions" None []
        "Conditions that last while the daemon runs, such as a configuration file that cannot be read or a packet path that is behind; spillway status lists those of a balancer, spillway doctor those of a receiver";
    WAITING_SETTINGS: Gauge "waiting_settings" None []
        "Changed settings that need a restart of the daemon; spillway status lists those of a balancer, spillway doctor those of a receiver";
    PUBLISHED_AT: Gauge "packet_path_published_timestamp" Seconds []
        "When this daemon last brought the packet path to a plan, seconds of the Unix epoch; 0: it has not yet";
    CHECKSUM: Gauge "packet_path_checksum" None []
        "Digest of all that decides where packets go, read back from the maps: equal on all balancers of one configuration and region; the first twelve hexadecimal digits of the checksum of spillway status, as a number";
    INTERFACE_ATTACHED: Gauge "interface_attached" None ["component", "interface"]
        "1: the packet program is attached to an interface; 0: it is not there any more";

    INTERFACE_PACKETS: Counter "interface_packets" None ["interface", "direction"]
        "Packets of an interface that the packet program is attached to or sends out of, by the kernel's statistics of the link";
    INTERFACE_ERRORS: Counter "interface_errors" None ["interface", "counter"]
        "Packets that such an interface lost, by the kernel's statistics of the link; some drivers count a packet in several";
    INTERFACE_DRIVER_DROPS: Counter "interface_driver_drops" None ["interface", "counter", "stage"]
        "Frames that such an interface's driver dropped at XDP, by its own counters over all queues; /usr/share/doc/spillway/docs/observability.md has the stages";
    INTERFACE_TRACED_DROPS: Counter "interface_traced_drops" None ["interface", "tracepoint"]
        "Dropped frames of such an interface that a tracepoint of the kernel reported. Absent: the kernel has no tracepoints, or the daemon could not attach to them";
    INTERFACE_DROPPED_AFTER_PROGRAM: Counter "interface_dropped_after_program" None ["interface"]
        "Frames that the packet program had counted as transmitted or redirected, and that were dropped then, by the driver's counters or by the tracepoints, whichever has more. Absent: neither counts them";

    PUBLISH: Histogram "publish_duration" Seconds []
        "Time that it took to bring the packet path to a plan";
    PUBLISH_FAILURES: Counter "publish_failures" None []
        "Times that the packet path could not be brought to a plan";
    HEALTH_DELAY: Histogram "health_publish_delay" Seconds []
        "Time from the end of the check that changed a backend's health until the packet path had the change";
    HEALTH_PUBLISHED_AT: Gauge "health_published_timestamp" Seconds []
        "When the packet path last got a change of a backend's health, seconds of the Unix epoch; 0: it has not yet";
    STORE_WRITE: Histogram "store_write_duration" Seconds []
        "Time to write a configuration to the store, until it is on the disk";
    STORE_WRITE_FAILURES: Counter "store_write_failures" None []
        "Writes of the store that failed, so that the configuration was refused";
    STORE_WRITE_AGE: Gauge "store_write_age" Seconds []
        "How long the write of the store has taken that is under way; 0: none is";
    LOOP_QUEUE: Gauge "loop_queue_entries" None ["loop"]
        "What waits for one of the daemon's loops: results of checks and next hops for the member loop, applies and all that the member loop has told it (one entry) for the state loop, what the state loop asks of the publisher, questions and news of the other loops for the status loop";
    LOOP_WAITING: Histogram "loop_waiting" Seconds ["loop"]
        "Time that an entry waited until a loop took it";
    LOOP_SERVICE: Histogram "loop_service" Seconds ["loop"]
        "Time that a loop took for what it handles at once: a batch of results of checks, an apply, a question, or what is done every second";
    LOOP_TURN_AGE: Gauge "loop_turn_age" Seconds ["loop"]
        "Time since a loop last finished what it handles at once. Below about a second, also if there is nothing to do, unless it is busy or stands still";
    HOLD_DOWNS: Counter "hold_downs" None []
        "Holds of backends that went down soon after they came back and passed their checks again";
    PROBES: Counter "probes" None ["result"]
        "Health checks made: passed, failed, or not_made for want of sockets of this host";
    CHECK_FAILING: Gauge "check_failing" None ["pool", "backend", "check"]
        "1: a health check of a backend fails in a pool, by its rise and fall. Absent: it passes, or has not decided yet";
    PROBE_LATENESS: Histogram "probe_lateness" Seconds []
        "How much later than planned health checks began";
    API_REFUSED: Counter "api_refused" None ["listener", "limit"]
        "Connections, calls and watches of the API that were refused because of a limit; docs/api.md has the limits";
    CERTIFICATE_NOT_BEFORE: Gauge "tls_certificate_not_before_timestamp" Seconds ["certificate"]
        "From when on the certificate is valid whose end spillway_tls_certificate_expiration_timestamp_seconds has, seconds of the Unix epoch";
    CERTIFICATE_NOT_AFTER: Gauge "tls_certificate_expiration_timestamp" Seconds ["certificate"]
        "When a certificate expires, seconds of the Unix epoch. server: the one that the API shows over TLS or an intermediate one, whichever is first; authority: the last of the authorities of its clients; http: as server, of metrics and status page. Absent: there is no such listener, or it is without TLS";
    HTTP_REFUSED: Counter "http_requests_refused" None []
        "Requests of metrics or of the status page that were refused because they had no valid token";
    LOG_DROPPED: Counter "log_entries_dropped" None []
        "Entries of the daemon's log that were dropped, because the journal or standard error did not accept them";

    STARTED_AT: Gauge "start_timestamp" Seconds ["component"]
        "When the daemon started, seconds of the Unix epoch";
    BUILD: Info "build" None ["component", "version", "region", "program"]
        "The daemon's version, its region, and the digest of its packet program";
}

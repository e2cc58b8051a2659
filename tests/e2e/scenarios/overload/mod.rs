//! More new connections than a region takes: SYNs from raw sockets, decided by the program in the driver, counted
//! where they arrive.

mod fixture;
mod flood;
mod limit;
mod long_connections;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::measures("a_region_takes_its_limit_and_no_more_in_any_window", limit::twice_the_capacity),
    Case::measures("little_overflows_at_four_fifths_of_the_capacity", limit::four_fifths),
    Case::measures(
        "a_flood_of_syns_breaks_no_connection_that_overflowed",
        flood::overflowed_connections,
    ),
    Case::measures(
        "five_hundred_connections_outlast_all_that_moves_new_ones",
        long_connections::five_hundred,
    ),
];

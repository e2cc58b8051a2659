//! The API from other hosts, sockets and network namespaces: who may call what, and that answers are the same there.

mod expiry;
mod malformed;
mod own_addresses;
mod remote_queries;
mod roles;
pub(crate) mod tls;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_remote_client_does_what_its_role_may", tls::roles),
    Case::waits("plans_pools_and_a_socket_for_reading", roles::narrowed),
    Case::waits("a_service_gets_an_address_of_its_balancer_only_by_force", own_addresses::by_force),
    Case::waits(
        "a_certificate_that_expires_is_shown_until_it_is_renewed",
        expiry::until_it_is_renewed,
    ),
    Case::waits("a_remote_query_answers_what_the_host_itself_does", remote_queries::over_tls),
    Case::waits("a_socket_is_asked_for_names", remote_queries::by_socket),
    Case::waits("reasons_for_malformed_requests_are_logged", malformed::are_logged),
    Case::waits("another_network_namespace_is_reported", remote_queries::another_namespace),
];

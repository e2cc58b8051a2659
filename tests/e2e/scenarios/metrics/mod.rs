//! Every metric moves with what it measures, a browser shows the status page, and a large scrape is fast.

pub(crate) mod browser;
mod every_metric;
mod fixture;
mod large_scrape;
mod returned;
mod status_page;
mod tokens;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::works("every_metric_is_moved_by_what_it_is_about", every_metric::every_metric),
    Case::works("a_returned_backend_has_one_row", returned::has_one_row),
    Case::works("tokens_guard_what_is_read_over_tls", tokens::over_tls),
    Case::works("a_browser_shows_the_status_page", status_page::browser),
    Case::alone("a_thousand_services_are_scraped_in_time", large_scrape::scrape_thousand),
];

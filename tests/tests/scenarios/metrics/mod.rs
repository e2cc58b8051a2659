//! Every metric is moved by what it is about, and a browser shows the page: real packets, real failures,
//! the real daemon.

mod browser;
mod farm;
mod moves;
mod page;
mod thousand;

use lb_tests::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::works("every_metric_is_moved_by_what_it_is_about", moves::every_metric),
    Case::works("a_browser_shows_the_status_page", page::browser),
    Case::alone("a_thousand_services_are_scraped_in_time", thousand::scrape_thousand),
];

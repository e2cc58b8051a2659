//! Servers for the backends and clients for the client: real ones where they do, our own where every
//! byte is to be checked.

mod agent;
mod bulk;
mod counters;
mod curl;
mod datagrams;
mod echo;
mod httperf;
mod long_connections;
mod nginx;
mod proxies;
mod requests;
mod siege;
mod stream;
mod web;
mod who_answers;
mod wrk;

pub use agent::Agent;
pub use bulk::{UPLOAD_PORT, Upload, UploadServer, download, upload};
pub use counters::ClientCounters;
pub use curl::{Curl, Timed};
pub use datagrams::datagrams;
pub use echo::Echo;
pub use httperf::{Httperf, HttperfReport};
pub use long_connections::{Connection, LongConnectionServer, LongConnections};
pub use nginx::{Nginx, NginxProxy, Request};
pub use proxies::{Front, haproxy, nginx_stream};
pub use requests::{Attempt, Requests, ensure_answered};
pub use siege::{Besieging, Siege, SiegeReport};
pub use stream::{Stream, StreamReport};
pub use web::{Visit, WebServer, Work, serve};
pub use who_answers::{ask_http, ask_udp, name_over_http, name_over_udp, returned_over_http};
pub use wrk::{Wrk, WrkReport};

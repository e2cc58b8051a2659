use std::io;

/// Why the kernel could not be asked, or listened to.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No netlink socket.
    #[error("netlink socket")]
    Socket(#[source] io::Error),
    /// The socket that questions go through failed.
    #[error("netlink socket: closed")]
    Closed,
    /// A question was not answered.
    #[error("netlink: {question}")]
    Request {
        /// What was asked.
        question: &'static str,
        /// Why there is no answer.
        source: rtnetlink::Error,
    },
    /// There is no such interface here.
    #[error("interface {0}: there is none of that name")]
    NoInterface(String),
}

impl NetError {
    /// A question that failed.
    pub(super) fn request(question: &'static str) -> impl FnOnce(rtnetlink::Error) -> Self {
        move |source| Self::Request { question, source }
    }
}

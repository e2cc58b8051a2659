//! How long large requests and answers may take on their way, and how many at a time are in memory.
//!
//! A request is in memory from its first byte on, and an answer until its last byte is sent. Without a bound, one client could
//! hold as many of 64 MiB as it may have calls, for as long as it likes.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Status, body::Body};

use crate::{
    convert::ApiError,
    limits::{Limits, TransferPermit},
};
use lb_control::command::Actor;
use spillway_proto::v1::ErrorReason;

/// Longest time for the bytes of a request, or of an answer, once it is its turn: 64 MiB at 10 Mbit/s.
pub(crate) const TRANSFER_TIME: Duration = Duration::from_secs(60);

/// A request of a call that may be large. Nothing of it is read before it is its turn.
pub(crate) fn request(body: Body, limits: Limits, actor: Actor) -> Body {
    let frames = async move {
        let permit = limits.transfer(&actor).await;
        let deadline = Instant::now() + TRANSFER_TIME;
        stream::unfold(Some((body, permit)), move |state| async move {
            let (mut body, permit) = state?;
            match timeout_at(deadline, body.frame()).await {
                Ok(Some(Ok(frame))) => Some((Ok(frame), Some((body, permit)))),
                Ok(Some(Err(status))) => Some((Err(status), None)),
                Ok(None) => None,
                Err(_) => Some((Err(too_slow("the request did not arrive")), None)),
            }
        })
    };
    Body::new(StreamBody::new(frames.flatten_stream().boxed()))
}

/// An answer that may be large. `permit` was taken before it was made. The connection asks for its bytes only while the
/// client reads, so what a client leaves is taken away by a timer.
pub(crate) fn answer(body: Body, permit: TransferPermit) -> Body {
    let held = Arc::new(Mutex::new(Some((body, permit))));
    let late = Arc::clone(&held);
    let timer = AbortOnDropHandle::new(tokio::spawn(async move {
        sleep(TRANSFER_TIME).await;
        drop(lock(&late).take());
    }));
    let frames = stream::unfold(Some((held, timer)), |state| async move {
        let (held, timer) = state?;
        let next = poll_fn(|context| match &mut *lock(&held) {
            Some((body, _permit)) => body.frame().poll_unpin(context),
            None => Poll::Ready(Some(Err(too_slow("the answer was not read")))),
        });
        match next.await? {
            Ok(frame) => Some((Ok(frame), Some((held, timer)))),
            Err(status) => Some((Err(status), None)),
        }
    });
    Body::new(StreamBody::new(frames.boxed()))
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

fn too_slow(what: &str) -> Status {
    let cause = format!("{what} within {} s", TRANSFER_TIME.as_secs());
    ApiError::new(Code::DeadlineExceeded, ErrorReason::ApiLimit, cause).into()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http_body_util::Full;
    use lb_secure::refusals::ApiRefusals;
    use tokio::time::{advance, sleep, timeout};

    use super::*;

    fn client(name: &str) -> Actor {
        Actor::Certificate(name.into())
    }

    fn limits() -> Limits {
        Limits::new(ApiRefusals::default())
    }

    /// Four bytes, and then nothing more for ever.
    fn half() -> Body {
        let first = stream::once(async {
            let mut body = Full::new(Bytes::from_static(b"half"));
            body.frame().await.unwrap()
        });
        Body::new(StreamBody::new(first.chain(stream::pending()).boxed()))
    }

    /// Reads what there is. `None`: it does not come at all.
    async fn read(body: &mut Body) -> Option<Bytes> {
        let frame = timeout(Duration::from_millis(1), body.frame()).await.ok()??;
        frame.unwrap().into_data().ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_s_third_large_request_is_not_read_before_its_turn() {
        let limits = limits();
        let of = |name| request(half(), limits.clone(), client(name));
        let mut held = [of("one"), of("one")];
        for body in &mut held {
            assert_eq!(read(body).await.unwrap(), "half");
        }
        let (mut third, mut other) = (of("one"), of("other"));
        assert_eq!(read(&mut third).await, None, "two are on their way");
        assert_eq!(read(&mut other).await.unwrap(), "half", "another client's are its own");
        // Those that are not sent in time end, and it is the third one's turn.
        advance(TRANSFER_TIME).await;
        for body in &mut held {
            let error = body.frame().await.unwrap().unwrap_err();
            assert_eq!(error.code(), Code::DeadlineExceeded);
            assert_eq!(error.message(), "the request did not arrive within 60 s");
            assert!(body.frame().await.is_none());
        }
        assert_eq!(read(&mut third).await.unwrap(), "half");
        sleep(TRANSFER_TIME / 2).await;
        assert_eq!(read(&mut third).await, None, "its time began with its turn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_body_passes_as_it_is() {
        let bytes = Bytes::from(vec![7; 1 << 20]);
        let body = Body::new(Full::new(bytes.clone()).map_err(|never: Infallible| match never {}));
        let body = request(body, limits(), client("one"));
        assert_eq!(body.collect().await.unwrap().to_bytes(), bytes);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_read_gives_its_turn_back() {
        let (limits, one) = (limits(), client("one"));
        let mut held = Vec::new();
        for _ in 0..2 {
            let permit = limits.transfer(&one).await;
            held.push(answer(half(), permit));
        }
        assert!(limits.transfer(&one).now_or_never().is_none());
        assert_eq!(read(&mut held[0]).await.unwrap(), "half");
        // Nobody asks for more.
        sleep(TRANSFER_TIME).await;
        let _turns = [limits.transfer(&one).await, limits.transfer(&one).await];
        let error = held[0].frame().await.unwrap().unwrap_err();
        assert_eq!(error.message(), "the answer was not read within 60 s");
    }
}

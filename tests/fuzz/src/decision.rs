//! Decisions: what steady state tells at once is what is decided with all looks, and no map's word, however
//! wrong, makes the packet path stumble.

use lb_common::{
    abi::verdict::Verdict,
    path::{self, Forward, Tables, encapsulate, oversize, unserved},
};

use crate::{ip, maps, wild::Wild};

/// Maps and a frame; the same bytes are the words of maps too.
pub fn check(data: &[u8]) {
    let Some((maps, frame)) = maps::take(data) else { return };
    let (frame, _) = ip::untagged(frame);
    at_once_is_no_other(&frame, &maps.fake);
    if let Some((wild, frame)) = Wild::take(data) {
        stands(&frame, &wild);
    }
}

/// What of a decision can be told.
fn told(forward: &Forward<'_>) -> (u32, u64, u64) {
    (forward.service, forward.choice.member.0, forward.choice.next_hop.0)
}

fn at_once_is_no_other<T: Tables>(frame: &[u8], tables: &T) {
    let whole = path::decide(frame, tables).map(|forward| told(&forward));
    assert_eq!(
        path::decide(frame, tables).map(|forward| told(&forward)),
        whole,
        "it says so again"
    );
    let parsed = path::parse_for(frame, tables);
    let mut asked = false;
    let at_once = parsed.and_then(|parsed| path::decide_fast(parsed, tables, |_| asked = true));
    let at_once = at_once.map_err(|verdict| match verdict {
        // It may be a ping.
        Verdict::OtherProtocol => verdict,
        _ => unserved::judge(frame, tables, verdict),
    });
    match at_once {
        Ok(None) => assert!(asked, "neither an answer nor a question"),
        at_once => {
            let at_once = at_once.map(|forward| forward.map(|forward| told(&forward)).unwrap());
            assert_eq!(at_once, whole);
        }
    }
}

/// Maps that nobody wrote so.
fn stands(frame: &[u8], wild: &Wild) {
    let Ok(forward) = path::decide(frame, wild) else { return };
    assert_eq!(forward.backend.incarnation, forward.choice.member.incarnation());
    match encapsulate::head(wild, &forward) {
        Err(Verdict::TooLarge) => {
            let room = encapsulate::room(forward.backend, forward.descriptor.form());
            let _ = oversize::too_large(frame, wild, room);
        }
        Ok(_) => assert!(forward.choice.next_hop.interface() > 0, "a way out"),
        Err(_) => {}
    }
}

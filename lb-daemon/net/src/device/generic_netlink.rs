//! A request and its answer in generic netlink (include/uapi/linux/genetlink.h), with attributes as bytes.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

/// Headers of a message: netlink's, then generic netlink's.
const NETLINK_HEADER: usize = 16;
const HEADERS: usize = NETLINK_HEADER + 4;

/// The controller, which maps names of families to ids.
const CONTROLLER: u16 = 0x10;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;

/// A family, by its id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family(u16);

impl Family {
    /// Finds a family by its name.
    ///
    /// # Errors
    /// `NotFound`: the kernel does not have it.
    pub(super) fn find(name: &str) -> io::Result<Self> {
        const GET_FAMILY: u8 = 3;
        const FAMILY_ID: u16 = 1;
        const FAMILY_NAME: u16 = 2;
        let mut request = Vec::new();
        put(&mut request, FAMILY_NAME, &[name.as_bytes(), &[0]].concat());
        let answer = Self(CONTROLLER).request(GET_FAMILY, &request)?;
        let id = attributes(&answer).find(|(kind, _)| *kind == FAMILY_ID);
        let id =
            id.and_then(|(_, value)| Some(u16::from_ne_bytes(value.get(..2)?.try_into().ok()?)));
        id.map(Self).ok_or_else(|| {
            io::Error::other(format!("{name}: the kernel's answer has no id of the family"))
        })
    }

    /// Sends a request, and returns the attributes of the answer.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn request(self, command: u8, payload: &[u8]) -> io::Result<Vec<u8>> {
        let length = u32::try_from(HEADERS + payload.len()).map_err(io::Error::other)?;
        let mut message = Vec::with_capacity(HEADERS + payload.len());
        message.extend(length.to_ne_bytes());
        message.extend(self.0.to_ne_bytes());
        message.extend(NLM_F_REQUEST.to_ne_bytes());
        // Sequence number and port: a socket for one request needs neither.
        message.extend([0; 8]);
        message.extend([command, 1, 0, 0]);
        message.extend(payload);

        let socket = Socket::new(NETLINK_GENERIC)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.send(&message, 0)?;
        let (answer, _) = socket.recv_from_full()?;
        attributes_of(&answer)
    }
}

fn attributes_of(answer: &[u8]) -> io::Result<Vec<u8>> {
    let short = || io::Error::other("generic netlink: truncated answer");
    let number = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    if number(4).ok_or_else(short)? == NLMSG_ERROR {
        let errno = answer.get(NETLINK_HEADER..HEADERS).ok_or_else(short)?;
        let errno = i32::from_ne_bytes(errno.try_into().map_err(io::Error::other)?);
        return Err(io::Error::from_raw_os_error(-errno));
    }
    answer.get(HEADERS..).map(<[u8]>::to_vec).ok_or_else(short)
}

/// The flag of an attribute that contains attributes.
pub(super) const fn nested() -> u16 {
    1 << 15
}

/// Appends an attribute.
pub(super) fn put(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Attributes with their kinds; stops at a truncated one.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let number = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let (length, kind) = (usize::from(number(0)?), number(2)? & 0x3fff);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A string that ends with a zero byte.
pub(super) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// A number of 64 bits.
pub(super) fn word(value: &[u8]) -> Option<u64> {
    Some(u64::from_ne_bytes(value.get(..8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_read_back_as_put_whatever_their_length() {
        let mut bytes = Vec::new();
        put(&mut bytes, 1, b"odd");
        put(&mut bytes, 2 | nested(), &[]);
        put(&mut bytes, 3, &7_u64.to_ne_bytes());
        assert_eq!(bytes.len(), 8 + 4 + 12);
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read[..2], [(1, &b"odd"[..]), (2, &[][..])]);
        assert_eq!(word(read[2].1), Some(7));
        assert_eq!(attributes(&bytes[..bytes.len() - 1]).count(), 2, "the last is cut short");
    }

    #[test]
    fn a_family_that_no_kernel_has_is_not_found() {
        let error = Family::find("spillway-none").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }
}

use std::{io, os::fd::AsRawFd};

use memmap2::MmapMut;
use netlink_sys::{Socket, protocols::NETLINK_GENERIC};
use nix::unistd::{SysconfVar, sysconf};

/// What a driver counts, as `ethtool -S` prints it. ethtool-netlink does not have these counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverStatistics {
    /// Name of the driver, or the kind of a virtual device.
    pub driver: String,
    /// Names and values, in the driver's order.
    pub counters: Vec<(String, u64)>,
}

// include/uapi/linux/ethtool.h
const GET_DRIVER: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const STATISTICS_STRINGS: u32 = 1;
const STRING: usize = 32;
/// `struct ethtool_drvinfo`: command, five strings, twelve bytes, five numbers.
const DRIVER_INFO: usize = 4 + 5 * STRING + 12 + 5 * 4;
const COUNT: usize = DRIVER_INFO - 4 * 4;
/// `struct ethtool_gstrings` before its strings: command, set, their number.
const STRINGS_HEADER: usize = 12;
/// `struct ethtool_stats` before its values: command, their number.
const VALUES_HEADER: usize = 8;

/// Reads a driver's counters; in the network namespace of the calling thread. It takes no capability.
///
/// # Errors
/// The kernel's error. `EOPNOTSUPP`: the driver names no counters; `EFAULT` or `Interrupted`: their number changed
/// meanwhile.
pub(crate) fn driver_statistics(interface: &str) -> io::Result<DriverStatistics> {
    // Any socket takes the request. One of netlink has no address of its own.
    let socket = Socket::new(NETLINK_GENERIC)?;
    let info = Request::new(DRIVER_INFO, &[GET_DRIVER])?.send(&socket, interface)?;
    let driver = text(&info.bytes()[4..4 + STRING]);
    let count = info.number(COUNT);
    if count == 0 {
        return Ok(DriverStatistics { driver, counters: Vec::new() });
    }
    let of_count = |answered: u32| match answered == count {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::Interrupted)),
    };
    let number = count as usize;
    let strings = [GET_STRINGS, STATISTICS_STRINGS, count];
    let strings = Request::new(STRINGS_HEADER + number * STRING, &strings)?;
    let strings = strings.send(&socket, interface)?;
    of_count(strings.number(8))?;
    let values = Request::new(VALUES_HEADER + number * 8, &[GET_STATISTICS, count])?;
    let values = values.send(&socket, interface)?;
    of_count(values.number(4))?;
    let names = strings.bytes()[STRINGS_HEADER..].chunks_exact(STRING).map(text);
    let values = values.bytes()[VALUES_HEADER..].as_chunks().0.iter();
    let counters = names.zip(values.map(|value| u64::from_ne_bytes(*value))).take(number);
    Ok(DriverStatistics { driver, counters: counters.collect() })
}

/// A string that ends with a zero byte, or fills its place.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// A request and its answer, which the kernel writes over it.
///
/// Linux before 6.19 writes as many strings or values as the driver has at that moment, whatever number the request
/// has. A page that nobody may touch follows the memory, so that such an answer fails instead of overwriting what is
/// not ours.
struct Request {
    memory: MmapMut,
    length: usize,
}

impl Request {
    fn new(length: usize, words: &[u32]) -> io::Result<Self> {
        let page = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|page| usize::try_from(page).ok());
        let page = page.ok_or(io::ErrorKind::Unsupported)?;
        let guard = length.next_multiple_of(page);
        let mut memory = MmapMut::map_anon(guard + page)?;
        for (at, word) in memory.as_chunks_mut().0.iter_mut().zip(words) {
            *at = word.to_ne_bytes();
        }
        // SAFETY: the page is the last one of our own mapping; `bytes` and `send` stay below it.
        let protected =
            unsafe { libc::mprotect(memory.as_mut_ptr().add(guard).cast(), page, libc::PROT_NONE) };
        if protected != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { memory, length })
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[..self.length]
    }

    /// A number of the answer.
    fn number(&self, at: usize) -> u32 {
        let bytes = self.bytes().get(at..).and_then(|bytes| bytes.first_chunk());
        u32::from_ne_bytes(*bytes.unwrap_or(&[0; 4]))
    }

    fn send(mut self, socket: &Socket, interface: &str) -> io::Result<Self> {
        // SAFETY: `ifreq` is plain data, for which zeroes are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero.
        let room = request.ifr_name.len() - 1;
        if interface.len() > room {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (at, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *at = byte.cast_signed();
        }
        request.ifr_ifru.ifru_data = self.memory.as_mut_ptr().cast();
        // SAFETY: the kernel reads the name and the address from `request`, reads the request at that address, and
        // writes its answer there: within our mapping, up to the page that it may not touch.
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_driver_and_no_interface_is_no_device() {
        let code = |name: &str| driver_statistics(name).unwrap_err().raw_os_error();
        assert_eq!(code("lo"), Some(libc::EOPNOTSUPP));
        assert_eq!(code("no-such-device"), Some(libc::ENODEV));
        let error = driver_statistics("a-name-of-16-byte").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn strings_end_with_a_zero_byte_or_their_place() {
        assert_eq!(text(b"veth\0\0junk"), "veth");
        assert_eq!(text(&[b'x'; STRING]), "x".repeat(STRING));
    }

    /// The kernel may answer with more than was asked for: it must fail at the page behind the memory.
    #[test]
    fn an_answer_beyond_the_memory_is_refused() {
        let mut request = Request::new(100, &[1, 2]).unwrap();
        assert_eq!((request.number(0), request.number(4)), (1, 2));
        let guard = request.memory.len() / 2;
        let random = std::fs::File::open("/dev/zero").unwrap();
        // SAFETY: the kernel is asked to write to our own mapping, and past what may be written.
        let mut read = |length| unsafe {
            libc::read(random.as_raw_fd(), request.memory.as_mut_ptr().cast(), length)
        };
        assert_eq!(read(guard), guard.cast_signed());
        let beyond = read(guard + 1);
        assert!(beyond < 0 || beyond == guard.cast_signed(), "{beyond}");
    }
}

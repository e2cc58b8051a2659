//! Where headers are read from.

/// A frame that headers can be borrowed from. In the kernel each call is one bounds check.
pub trait Packet {
    /// `N` bytes from `offset`, or `None` where the frame ends before.
    fn bytes<const N: usize>(&self, offset: usize) -> Option<&[u8; N]>;

    /// Length of the frame, bytes.
    fn length(&self) -> usize;
}

impl Packet for [u8] {
    fn bytes<const N: usize>(&self, offset: usize) -> Option<&[u8; N]> {
        self.get(offset..)?.first_chunk()
    }

    fn length(&self) -> usize {
        self.len()
    }
}

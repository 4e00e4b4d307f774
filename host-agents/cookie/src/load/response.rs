// SPDX-License-Identifier: Apache-2.0
//! The progress of one response.

use alloc::sync::Arc;

use super::Loads;

/// A response on its stream. It counts in its server's loads until it is dropped, which should happen once its last
/// byte is sent (CloudCookie, section IV-A).
#[derive(Debug)]
pub struct Response {
    loads: Arc<Loads>,
    /// Offset of its end if the application announced it, without the overhead of the protocol.
    size: Option<u64>,
    /// Offset up to which all bytes were sent at least once.
    sent: u64,
    is_future: bool,
}

impl Response {
    /// Begin a response that ends at offset `size`, if known.
    pub fn new(loads: Arc<Loads>, size: Option<u64>) -> Self {
        loads.enter();
        let mut response = Self {
            loads,
            size,
            sent: 0,
            is_future: false,
        };
        response.update_loads();
        response
    }

    /// Record that bytes up to offset `to` are being sent.
    #[inline]
    pub fn on_sent(&mut self, to: u64) {
        // Retransmissions change nothing.
        if to > self.sent {
            self.sent = to;
            self.update_loads();
        }
    }

    /// Return the number of bytes still to be sent. For a response of unknown size, that is as many as were sent so
    /// far.
    #[inline]
    pub fn remaining(&self) -> u64 {
        self.size
            .map_or(self.sent, |size| size.saturating_sub(self.sent))
    }

    #[inline]
    fn update_loads(&mut self) {
        let is_future = self.loads.is_future(self.remaining());
        if is_future != self.is_future {
            self.is_future = is_future;
            self.loads.set_future(is_future);
        }
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.loads.leave(self.is_future);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::rpt_us;

    fn counted(loads: &Loads) -> (u64, u64) {
        (loads.n_af(), loads.n_ff())
    }

    #[test]
    fn response_counts_in_n_ff_while_more_than_the_look_ahead_remains() {
        let loads = Arc::new(Loads::new(1000));
        let mut response = Response::new(loads.clone(), Some(3000));
        assert_eq!((response.remaining(), counted(&loads)), (3000, (1, 1)));
        response.on_sent(1999);
        assert_eq!((response.remaining(), counted(&loads)), (1001, (1, 1)));
        response.on_sent(2000);
        assert_eq!((response.remaining(), counted(&loads)), (1000, (1, 0)));
        // A retransmission, and then more than was announced.
        response.on_sent(1000);
        assert_eq!(response.remaining(), 1000);
        response.on_sent(3010);
        assert_eq!((response.remaining(), counted(&loads)), (0, (1, 0)));
        drop(response);
        assert_eq!(counted(&loads), (0, 0));
    }

    #[test]
    fn response_of_unknown_size_has_as_much_left_as_was_sent() {
        let loads = Arc::new(Loads::new(1000));
        let mut response = Response::new(loads.clone(), None);
        assert_eq!((response.remaining(), counted(&loads)), (0, (1, 0)));
        response.on_sent(1001);
        assert_eq!((response.remaining(), counted(&loads)), (1001, (1, 1)));
        // The response ends early.
        drop(response);
        assert_eq!(counted(&loads), (0, 0));
    }

    #[test]
    fn rpt_is_rounded_down_and_does_not_overflow() {
        assert_eq!(rpt_us(1_000_000, 8_000_000_000), 1000);
        assert_eq!(rpt_us(999, 1_000_000_000), 7);
        assert_eq!(rpt_us(u64::MAX, 8_000_000), u64::MAX / 8_000_000);
    }
}

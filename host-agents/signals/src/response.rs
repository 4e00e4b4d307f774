//! What is known of one response.

use std::sync::Arc;

use crate::Loads;

/// A response on its stream, in offsets of that. It counts in its server's loads until it is dropped, which should be once its last byte is
/// sent (CloudCookie, section IV-A).
#[derive(Debug)]
pub struct Response {
    loads: Arc<Loads>,
    /// Where it ends, as the application says, without what its protocol adds.
    size: Option<u64>,
    /// The end of what was sent at least once.
    sent: u64,
    far: bool,
}

impl Response {
    /// One that begins, and ends at `size` if known.
    pub fn new(loads: Arc<Loads>, size: Option<u64>) -> Self {
        loads.enter();
        let mut response = Self {
            loads,
            size,
            sent: 0,
            far: false,
        };
        response.account();
        response
    }

    /// Bytes up to `to` are sent.
    #[inline]
    pub fn send(&mut self, to: u64) {
        // What is sent again changes nothing.
        if to > self.sent {
            self.sent = to;
            self.account();
        }
    }

    /// Bytes still to be sent. Of unknown length: as many bytes again as were sent so far.
    #[inline]
    pub fn remaining(&self) -> u64 {
        self.size
            .map_or(self.sent, |size| size.saturating_sub(self.sent))
    }

    /// Brings N_FF up to date.
    #[inline]
    fn account(&mut self) {
        let far = self.loads.is_far(self.remaining());
        if far != self.far {
            self.far = far;
            self.loads.turn(far);
        }
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.loads.leave(self.far);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpt_us;

    fn counted(loads: &Loads) -> (u64, u64) {
        (loads.n_af(), loads.n_ff())
    }

    #[test]
    fn a_response_is_far_while_more_than_the_look_ahead_is_left() {
        let loads = Arc::new(Loads::new(1000));
        let mut response = Response::new(loads.clone(), Some(3000));
        assert_eq!((response.remaining(), counted(&loads)), (3000, (1, 1)));
        response.send(1999);
        assert_eq!((response.remaining(), counted(&loads)), (1001, (1, 1)));
        response.send(2000);
        assert_eq!((response.remaining(), counted(&loads)), (1000, (1, 0)));
        // Again, and then more than was announced.
        response.send(1000);
        assert_eq!(response.remaining(), 1000);
        response.send(3010);
        assert_eq!((response.remaining(), counted(&loads)), (0, (1, 0)));
        drop(response);
        assert_eq!(counted(&loads), (0, 0));
    }

    #[test]
    fn an_unknown_length_is_twice_what_was_sent() {
        let loads = Arc::new(Loads::new(1000));
        let mut response = Response::new(loads.clone(), None);
        assert_eq!((response.remaining(), counted(&loads)), (0, (1, 0)));
        response.send(1001);
        assert_eq!((response.remaining(), counted(&loads)), (1001, (1, 1)));
        // It ends in the midst.
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

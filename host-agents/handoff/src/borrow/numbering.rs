//! What noq calls the granted streams. It takes a stream for opened with all that come before it, of which most belong to others; so it gets
//! the granted ones in a row.

use rustc_hash::FxHashMap;

use super::Error;

/// Ids whose length noq's have, too, at least: as the gate writes over one id another, the other may not take more octets
/// (RFC 9000, section 16).
const SIZES: [u64; 3] = [1 << 6, 1 << 14, 1 << 30];

/// The granted streams of one connection, all of them bidirectional and the client's.
#[derive(Debug, Default)]
pub struct Numbering {
    /// noq's next.
    next: u64,
    /// By noq's.
    granted: FxHashMap<u64, Granted>,
    /// By the client's.
    own: FxHashMap<u64, u64>,
    /// Bytes that were sent of all of them, of those no more, too.
    sent: u64,
}

#[derive(Debug)]
struct Granted {
    /// What the client calls it.
    id: u64,
    /// Bytes of it that were sent.
    sent: u64,
}

impl Numbering {
    /// noq's id for the client's stream `granted`.
    pub fn grant(&mut self, granted: u64) -> Result<u64, Error> {
        let is_bidirectional_of_client = granted & 0b11 == 0;
        let size = SIZES.iter().position(|size| granted < *size);
        let (Some(size), true, None) = (
            size,
            is_bidirectional_of_client,
            self.own.get(&granted).copied(),
        ) else {
            return Err(Error::Stream(granted));
        };
        let own = match size {
            0 => self.next,
            _ => self.next.max(SIZES[size - 1]),
        };
        self.next = own + 4;
        let id = granted;
        self.granted.insert(own, Granted { id, sent: 0 });
        self.own.insert(granted, own);
        Ok(own)
    }

    /// The client's id of what noq calls `own`.
    pub fn granted(&self, own: u64) -> Option<u64> {
        self.granted.get(&own).map(|granted| granted.id)
    }

    /// The same, as bytes of it up to `to` are sent.
    pub fn sends(&mut self, own: u64, to: u64) -> Option<u64> {
        let granted = self.granted.get_mut(&own)?;
        self.sent += to.saturating_sub(granted.sent);
        granted.sent = granted.sent.max(to);
        Some(granted.id)
    }

    /// Bytes sent of the client's stream `granted`.
    pub fn sent_of(&self, granted: u64) -> Option<u64> {
        self.granted
            .get(&self.own(granted)?)
            .map(|granted| granted.sent)
    }

    /// Bytes sent of all.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What noq calls the client's stream `granted`.
    pub fn own(&self, granted: u64) -> Option<u64> {
        self.own.get(&granted).copied()
    }

    /// The stream is no more.
    pub fn release(&mut self, granted: u64) {
        if let Some(own) = self.own.remove(&granted) {
            self.granted.remove(&own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_noq_are_in_a_row_and_no_shorter() {
        let mut numbering = Numbering::default();
        for (granted, own) in [
            (40, 0),
            (0, 4),
            (64, 64),
            (400, 68),
            (4, 72),
            (1 << 20, 1 << 14),
        ] {
            assert_eq!(numbering.grant(granted), Ok(own));
            assert_eq!(numbering.granted(own), Some(granted));
            assert_eq!(numbering.own(granted), Some(own));
        }
        for refused in [40, 1, 2, 3, 1 << 30] {
            assert_eq!(numbering.grant(refused), Err(Error::Stream(refused)));
        }
        for (to, sent) in [(100, 100), (50, 100), (120, 120)] {
            assert_eq!(numbering.sends(0, to), Some(40));
            assert_eq!(numbering.sent_of(40), Some(sent));
        }
        numbering.sends(4, 7);
        numbering.release(40);
        assert_eq!((numbering.granted(0), numbering.own(40)), (None, None));
        assert_eq!(
            (numbering.sends(0, 200), numbering.sent_of(40)),
            (None, None)
        );
        assert_eq!(numbering.sent(), 127);
    }
}

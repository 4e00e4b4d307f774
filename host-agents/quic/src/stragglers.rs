//! Which datagrams say where a client is, and which were only on their way when it left.
//!
//! A client that moved to the preferred address drops what comes from the address before (RFC 9000, section 9). What it had sent there may still
//! arrive (section 9.6.2), the later the longer that way is. If that had it answered from there, it would get nothing to acknowledge, send nothing,
//! and never be heard at its new address again.

/// No datagram with a PATH_CHALLENGE or PATH_RESPONSE is shorter (RFC 9000, section 8.2.1).
const PROBE: usize = 1200;
/// Datagrams in a row that may be late; more than an initial congestion window (RFC 9002, section 7.2) holds. A client that is back after all,
/// or for whom somebody forged a datagram at the new address, is believed then.
const LATE: u8 = 16;

/// What a datagram shows without its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Large enough to probe a path, which a client does before it moves.
    Large,
    /// No probe: its sender has chosen its path.
    Small,
    /// A long header (RFC 8999, section 5.1), of a connection that begins.
    Long,
}

impl Shape {
    /// Of one datagram.
    pub fn of(datagram: &[u8]) -> Self {
        match datagram.first() {
            Some(first) if first & 0x80 != 0 => Self::Long,
            _ if datagram.len() < PROBE => Self::Small,
            _ => Self::Large,
        }
    }

    /// Of datagrams that came as one, each of `stride` bytes but for the last: what any of them shows.
    pub fn of_batch(datagrams: &[u8], stride: usize) -> Self {
        let shapes = datagrams.chunks(stride.max(1)).map(Self::of);
        shapes.max().unwrap_or(Self::Small)
    }
}

/// How many more datagrams at the address before are taken for late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stragglers(u8);

impl Stragglers {
    /// A datagram came to the new address. Whether anything changes by that.
    pub fn moved(&mut self, shape: Shape) -> bool {
        let changes = shape == Shape::Small && self.0 < LATE;
        if changes {
            self.0 = LATE;
        }
        changes
    }

    /// A datagram came to the address before. Whether it is late, and says nothing.
    pub fn is_late(&mut self, shape: Shape) -> bool {
        let late = shape != Shape::Long && self.0 > 0;
        self.0 = if late { self.0 - 1 } else { 0 };
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_datagrams() {
        assert_eq!(Shape::of(&[0xc0; 1200]), Shape::Long);
        assert_eq!(Shape::of(&[0x40; 1200]), Shape::Large);
        assert_eq!(Shape::of(&[0x40; 1199]), Shape::Small);
        let mut batch = vec![0x40; 2 * 1200];
        assert_eq!(Shape::of_batch(&batch, 1200), Shape::Large);
        batch.push(0x40);
        assert_eq!(Shape::of_batch(&batch, 1200), Shape::Small);
        batch[1200] = 0xe0;
        assert_eq!(Shape::of_batch(&batch, 1200), Shape::Long);
    }

    #[test]
    fn only_who_surely_moved_has_stragglers() {
        let mut stragglers = Stragglers::default();
        // A probe may fail.
        assert!(!stragglers.moved(Shape::Large));
        assert!(!stragglers.is_late(Shape::Small));
        assert!(stragglers.moved(Shape::Small));
        assert!(!stragglers.moved(Shape::Small));
        for _ in 0..LATE {
            assert!(stragglers.is_late(Shape::Large));
        }
        assert!(!stragglers.is_late(Shape::Large));
        // Another connection of the same port.
        assert!(stragglers.moved(Shape::Small));
        assert!(!stragglers.is_late(Shape::Long));
        assert!(!stragglers.is_late(Shape::Small));
    }
}

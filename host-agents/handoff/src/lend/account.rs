//! What a real server may send, and what the client is told that it sent.

/// Bytes of streams that a real server may send on a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// In all, as it knows.
    pub(super) credit: u64,
    /// That it is known to have sent.
    known: u64,
    /// That the client was told of: more than were sent, where nobody knows how many were.
    told: u64,
    /// Of the client's limit, that nobody else has. No less than the two above.
    reserved: u64,
}

impl Account {
    pub(super) fn new(credit: u64) -> Self {
        Self {
            credit,
            reserved: credit,
            ..Self::default()
        }
    }

    /// Not told.
    pub(super) fn unused(&self) -> u64 {
        self.reserved - self.told
    }

    /// That it can have sent of a stream at most.
    pub(super) fn bound(&self) -> u64 {
        self.credit.saturating_sub(self.known)
    }

    pub(super) fn reserve(&mut self, bytes: u64) {
        self.reserved += bytes;
    }

    /// The client hears of a stream of `size` bytes.
    pub(super) fn tell(&mut self, size: u64, known: bool) {
        self.told += size;
        if known {
            self.known += size;
        }
    }
}

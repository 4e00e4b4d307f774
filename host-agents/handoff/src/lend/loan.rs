//! What a real server has of a path.

use std::sync::Arc;

use super::feedback::Feedback;
use super::vigil::Vigil;

/// A path of which a real server sends, or numbers.
#[derive(Debug)]
pub(super) struct Loan {
    pub(super) feedback: Arc<Feedback>,
    /// Bytes that it wants to be allowed in all.
    pub(super) wanted: u64,
    pub(super) vigil: Vigil,
    /// Counts of ECN before.
    ecn: [u64; 3],
}

impl Loan {
    /// Of one that may send `credit` bytes, from these counts of ECN on.
    pub(super) fn new(feedback: Arc<Feedback>, credit: u64, ecn: [u64; 3]) -> Self {
        Self {
            feedback,
            wanted: credit,
            vigil: Vigil::Calm,
            ecn,
        }
    }

    /// The client has something new of it.
    pub(super) fn heard(&mut self) {
        if self.vigil == Vigil::Unheard {
            self.feedback.call_off();
        }
        self.vigil = Vigil::Calm;
    }

    /// Counts of ECN without those before.
    pub(super) fn counts(&self, ecn: [u64; 3]) -> [u64; 3] {
        std::array::from_fn(|i| ecn[i].saturating_sub(self.ecn[i]))
    }
}

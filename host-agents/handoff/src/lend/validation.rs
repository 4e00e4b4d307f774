//! Whether the client is where noq takes it to be by a path (RFC 9000, section 8.2).

/// Questions that are remembered.
const REMEMBERED: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Validation {
    /// noq's.
    challenges: Vec<[u8; 8]>,
    done: bool,
}

impl Validation {
    /// noq has got an answer.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// noq asks whether the client is there.
    pub(super) fn challenge(&mut self, data: [u8; 8]) {
        if self.challenges.len() == REMEMBERED {
            self.challenges.remove(0);
        }
        self.challenges.push(data);
    }

    /// The client answers; whether that is noq's question.
    pub(super) fn response(&mut self, data: [u8; 8]) -> bool {
        let is_known = self.challenges.contains(&data);
        self.done |= is_known;
        is_known
    }

    /// noq's newest question, which the client never got.
    pub(super) fn unanswered(&mut self) -> Option<[u8; 8]> {
        self.challenges.pop()
    }
}

//! One path of a connection, and who has it.

use std::sync::Arc;

use frontage_quic::session::{Nonce, Outgoing};
use noq::ConnectionId;

use super::account::Account;
use super::feedback::Feedback;
use super::ids::ConnectionIds;
use super::loan::Loan;
use super::numbers::Numbers;
use super::validation::Validation;

/// Numbers above the largest acknowledged one at which a path changes hands. Who begins there abridges them as if the client had all before, in a byte at
/// first, and 128 above what it has the client takes them for others (RFC 9000, appendix A.3); so the new owner has 96 until it hears from the client.
pub(super) const SLACK: u64 = 32;

/// Who may send.
#[derive(Debug)]
pub(super) enum Holder {
    Balancer,
    RealServer(Loan),
    /// Nobody, until the client is known to have packets close to `next`, the first number that was never used.
    Settling {
        next: u64,
    },
    /// Nobody for ever: a real server may have sent more than anybody knows, or the path is over.
    Spent,
}

#[derive(Debug)]
pub(super) struct Path {
    pub(super) id: u32,
    pub(super) numbers: Numbers,
    pub(super) holder: Holder,
    pub(super) account: Account,
    pub(super) ids: ConnectionIds,
    /// The largest number that the client has.
    acked: Option<u64>,
    /// The largest of a packet of noq's that holds what would have to be sent again.
    weighty: Option<u64>,
    validation: Validation,
    /// Its client came to another address while it was lent.
    pub(super) has_moved: bool,
    /// The newest counts of ECN.
    ecn: [u64; 3],
    /// Either side abandoned it.
    pub(super) over: bool,
}

impl Path {
    pub(super) fn new(id: u32) -> Self {
        Self {
            id,
            numbers: Numbers::default(),
            holder: Holder::Balancer,
            account: Account::default(),
            ids: ConnectionIds::default(),
            acked: None,
            weighty: None,
            validation: Validation::default(),
            has_moved: false,
            ecn: [0; 3],
            over: false,
        }
    }

    /// Whether it may be lent: the client is there (RFC 9000, section 8.2), has or is known not to have whatever noq sent it by this path, and can tell
    /// the numbers that follow.
    pub(super) fn free(&self) -> bool {
        let Some(acked) = self
            .acked
            .filter(|_| self.id != 0 && self.validation.is_done() && !self.over)
        else {
            return false;
        };
        self.ids.used.is_some()
            && self.weighty.is_none_or(|weighty| weighty <= acked)
            && self
                .numbers
                .first()
                .is_some_and(|first| first <= acked + 1 + SLACK)
    }

    /// Lends it: the first number.
    pub(super) fn lend(&mut self, credit: u64) -> Option<(u64, Arc<Feedback>)> {
        let first = self.numbers.lend()?;
        let feedback = Arc::<Feedback>::default();
        self.account = Account::new(credit);
        self.holder = Holder::RealServer(Loan::new(feedback.clone(), credit, self.ecn));
        Some((first, feedback))
    }

    pub(super) fn loan(&mut self) -> Option<&mut Loan> {
        match &mut self.holder {
            Holder::RealServer(loan) => Some(loan),
            _ => None,
        }
    }

    /// Bytes that the real server waits for.
    pub(super) fn wants(&self) -> u64 {
        match &self.holder {
            Holder::RealServer(loan) => loan.wanted.saturating_sub(self.account.credit),
            _ => 0,
        }
    }

    /// The real server may send as many bytes more.
    pub(super) fn raise(&mut self, bytes: u64) {
        self.account.credit += bytes;
        self.account.reserve(bytes);
        if let Holder::RealServer(loan) = &self.holder {
            loan.feedback.credit(self.account.credit);
        }
    }

    /// The real server sent nothing from `next` on, and will not.
    pub(super) fn give_back(&mut self, next: u64) {
        self.spend();
        self.holder = Holder::Settling { next };
        self.settle();
    }

    /// It ends. If it is noq's, what noq still says of that belongs here.
    pub(super) fn abandon(&mut self) {
        self.over = true;
        if !matches!(self.holder, Holder::Balancer) {
            self.spend();
        }
    }

    /// The real server does not send any more, and neither does anybody else.
    pub(super) fn spend(&mut self) {
        self.numbers.end();
        if let Holder::RealServer(loan) = std::mem::replace(&mut self.holder, Holder::Spent) {
            loan.feedback.close();
        }
    }

    /// Packets up to this number have come. How many numbers of a real server's these are more than before.
    pub(super) fn acked(&mut self, largest: u64, ecn: Option<[u64; 3]>) -> u64 {
        let before = self.acked.map_or(0, |acked| acked + 1);
        let more = match &mut self.holder {
            Holder::RealServer(loan) => {
                let more = (largest + 1).saturating_sub(before.max(self.numbers.begin()));
                if more > 0 {
                    loan.heard();
                }
                more
            }
            _ => 0,
        };
        self.acked = self.acked.max(Some(largest));
        self.ecn = ecn.unwrap_or(self.ecn);
        self.settle();
        more
    }

    /// Whether the client has acknowledged a number from `next` on, of whoever has the path.
    pub(super) fn is_acked_from(&self, next: u64) -> bool {
        let first = self.numbers.begin().max(next);
        self.acked.is_some_and(|acked| acked >= first)
    }

    fn settle(&mut self) {
        if let Holder::Settling { next } = self.holder
            && self.acked.is_some_and(|acked| next <= acked + 1 + SLACK)
        {
            self.numbers.resume(next);
            self.holder = Holder::Balancer;
        }
    }

    /// Counts of ECN without those before the loan.
    pub(super) fn counts(&self, ecn: [u64; 3]) -> Option<[u64; 3]> {
        match &self.holder {
            Holder::RealServer(loan) => Some(loan.counts(ecn)),
            _ => None,
        }
    }

    /// noq sends a packet here: by which nonce, if the path is noq's. `weighty` if it holds what is sent again when lost.
    pub(super) fn seal(&mut self, outgoing: &mut Outgoing<'_>, weighty: bool) -> Option<Nonce> {
        self.notice(outgoing.header);
        let number = self.numbers.send(outgoing.number)?;
        if number != outgoing.number {
            let length = usize::from(outgoing.header[0] & 0x03) + 1;
            let at = outgoing.header.len() - length;
            outgoing.header[at..].copy_from_slice(&number.to_be_bytes()[8 - length..]);
        }
        if weighty {
            self.weighty = Some(number);
        }
        Some(Nonce {
            path: self.id,
            number,
        })
    }

    /// noq sends by this header: its connection id, if it is another.
    pub(super) fn notice(&mut self, header: &[u8]) -> Option<ConnectionId> {
        let id = self.ids.notice(header);
        self.address(id);
        id
    }

    /// The client has another connection id for the path, and takes those below `retire_prior_to` no more.
    pub(super) fn identify(&mut self, sequence: u64, retire_prior_to: u64, id: ConnectionId) {
        let id = self.ids.identify(sequence, retire_prior_to, id);
        self.address(id);
    }

    /// The client has another id now, if any.
    fn address(&self, id: Option<ConnectionId>) {
        if let (Some(id), Holder::RealServer(loan)) = (id, &self.holder) {
            loan.feedback.connection_id(id);
        }
    }

    /// noq asks whether the client is there.
    pub(super) fn challenge(&mut self, data: [u8; 8]) {
        self.validation.challenge(data);
    }

    /// The client answers; whether that is noq's question.
    pub(super) fn response(&mut self, data: [u8; 8]) -> bool {
        self.validation.response(data)
    }

    /// The client answers a question of the real server's, by which that knows whether it is where noq sees it to be. noq, whose own the client never got, hears its
    /// newest answered. What noq is to hear is not proven to it, so nobody else sends there afterwards.
    pub(super) fn response_elsewhere(&mut self) -> Option<[u8; 8]> {
        self.has_moved = true;
        self.validation.unanswered()
    }
}

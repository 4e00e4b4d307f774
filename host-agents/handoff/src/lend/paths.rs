//! The paths of a connection, and who has each.

use std::sync::Arc;

use frontage_quic::session::{Nonce, Outgoing};
use noq::ConnectionId;

use super::feedback::Feedback;
use super::numbers::Numbers;

/// Numbers above the largest acknowledged one at which a path changes hands. Who begins there abridges them as if the client had all before, in a byte at
/// first, and 128 above what it has the client takes them for others (RFC 9000, appendix A.3); so the new owner has 96 until it hears from the client.
pub(super) const SLACK: u64 = 32;

/// Questions and connection ids that are remembered of a path.
const REMEMBERED: usize = 8;
/// Paths that are remembered, those that ended among them.
const PATHS: usize = 64;

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

/// A path of which a real server sends.
#[derive(Debug)]
pub(super) struct Loan {
    pub(super) feedback: Arc<Feedback>,
    /// Bytes that it wants to be allowed in all.
    pub(super) wanted: u64,
    /// Counts of ECN before.
    ecn: [u64; 3],
}

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
    fn new(credit: u64) -> Self {
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

#[derive(Debug)]
pub(super) struct Path {
    pub(super) id: u32,
    pub(super) numbers: Numbers,
    pub(super) holder: Holder,
    pub(super) account: Account,
    /// The client's, that noq uses.
    pub(super) connection_id: Option<ConnectionId>,
    /// The client's others, by their numbers.
    connection_ids: Vec<(u64, ConnectionId)>,
    /// The largest number that the client has.
    acked: Option<u64>,
    /// The largest of a packet of noq's that holds what would have to be sent again.
    weighty: Option<u64>,
    challenges: Vec<[u8; 8]>,
    validated: bool,
    /// The newest counts of ECN.
    ecn: [u64; 3],
    /// Either side abandoned it.
    over: bool,
}

impl Path {
    fn new(id: u32) -> Self {
        Self {
            id,
            numbers: Numbers::default(),
            holder: Holder::Balancer,
            account: Account::default(),
            connection_id: None,
            connection_ids: Vec::new(),
            acked: None,
            weighty: None,
            challenges: Vec::new(),
            validated: false,
            ecn: [0; 3],
            over: false,
        }
    }

    /// Whether it may be lent: the client is there (RFC 9000, section 8.2), has or is known not to have whatever noq sent it by this path, and can tell
    /// the numbers that follow.
    pub(super) fn free(&self) -> bool {
        let Some(acked) = self
            .acked
            .filter(|_| self.id != 0 && self.validated && !self.over)
        else {
            return false;
        };
        self.connection_id.is_some()
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
        self.holder = Holder::RealServer(Loan {
            feedback: feedback.clone(),
            wanted: credit,
            ecn: self.ecn,
        });
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

    /// Packets up to this number have come.
    pub(super) fn acked(&mut self, largest: u64, ecn: Option<[u64; 3]>) {
        self.acked = self.acked.max(Some(largest));
        self.ecn = ecn.unwrap_or(self.ecn);
        self.settle();
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
            Holder::RealServer(loan) => {
                let counts = std::array::from_fn(|i| ecn[i].saturating_sub(loan.ecn[i]));
                Some(counts)
            }
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

    /// By what connection id noq sends, between the first octet and the number (RFC 9000, section 17.3.1).
    fn notice(&mut self, header: &[u8]) {
        let length = usize::from(header[0] & 0x03) + 1;
        let id = &header[1..header.len() - length];
        if self.connection_id.as_deref() != Some(id) {
            self.address(ConnectionId::new(id));
        }
    }

    fn address(&mut self, id: ConnectionId) {
        self.connection_id = Some(id);
        if let Holder::RealServer(loan) = &self.holder {
            loan.feedback.connection_id(id);
        }
    }

    /// The client has another connection id for the path, and takes those below `retire_prior_to` no more. noq takes up the next, but need not send a packet
    /// here that would show it.
    pub(super) fn identify(&mut self, sequence: u64, retire_prior_to: u64, id: ConnectionId) {
        let known = &mut self.connection_ids;
        if !known.iter().any(|(other, _)| *other == sequence) {
            if known.len() == REMEMBERED {
                known.remove(0);
            }
            known.push((sequence, id));
        }
        let retired = |(sequence, _): &(u64, ConnectionId)| *sequence < retire_prior_to;
        let used = self.connection_id;
        let lost = known.iter().any(|one| retired(one) && Some(one.1) == used);
        known.retain(|one| !retired(one));
        if lost && let Some((_, id)) = known.iter().min_by_key(|(sequence, _)| *sequence) {
            let id = *id;
            self.address(id);
        }
    }

    /// noq asks whether the client is there.
    pub(super) fn challenge(&mut self, data: [u8; 8]) {
        if self.challenges.len() == REMEMBERED {
            self.challenges.remove(0);
        }
        self.challenges.push(data);
    }

    /// The client answers.
    pub(super) fn response(&mut self, data: [u8; 8]) {
        self.validated |= self.challenges.contains(&data);
    }
}

/// All that noq has sent on, or the client named.
#[derive(Debug, Default)]
pub(super) struct Paths {
    known: Vec<Path>,
    /// Those up to this one that are not known are forgotten; who had their numbers, too.
    forgotten: u32,
}

impl Paths {
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Path> {
        self.known.iter_mut().find(|path| path.id == id)
    }

    /// `None` if it is forgotten.
    pub(super) fn get_or_new(&mut self, id: u32) -> Option<&mut Path> {
        let at = match self.known.iter().position(|path| path.id == id) {
            Some(at) => at,
            None if id != 0 && id <= self.forgotten => return None,
            None => {
                if self.known.len() == PATHS {
                    self.forget();
                }
                self.known.push(Path::new(id));
                self.known.len() - 1
            }
        };
        Some(&mut self.known[at])
    }

    /// By which noq itself sends: path 0 as long as the client keeps it.
    pub(super) fn own(&self) -> Option<u32> {
        let held = |path: &&Path| !path.over && matches!(path.holder, Holder::Balancer);
        self.known.iter().filter(held).map(|path| path.id).min()
    }

    /// The first that may be lent.
    pub(super) fn free(&self) -> Option<u32> {
        let own = self.own();
        let free = |path: &&Path| path.free() && Some(path.id) != own;
        self.known.iter().find(free).map(|path| path.id)
    }

    /// The oldest: ids rise (draft-ietf-quic-multipath, section 3.1).
    fn forget(&mut self) {
        let paths = self
            .known
            .iter()
            .enumerate()
            .filter(|(_, path)| path.id != 0);
        if let Some((at, _)) = paths.min_by_key(|(_, path)| path.id) {
            let mut path = self.known.remove(at);
            path.spend();
            self.forgotten = self.forgotten.max(path.id);
        }
    }

    pub(super) fn iter(&mut self) -> impl Iterator<Item = &mut Path> {
        self.known.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// noq sends a packet on a path; by which nonce.
    fn send(path: &mut Path, number: u64, header: &mut [u8], weighty: bool) -> Option<u64> {
        let mut outgoing = Outgoing {
            path: path.id,
            number,
            generation: 0,
            header,
            payload: &mut [],
        };
        Some(path.seal(&mut outgoing, weighty)?.number)
    }

    fn ready() -> Path {
        let mut path = Path::new(1);
        path.challenge([7; 8]);
        assert_eq!(send(&mut path, 0, &mut [0x40, 9, 9, 0], false), Some(0));
        assert!(!path.free());
        path.response([7; 8]);
        path.acked(0, None);
        path
    }

    #[test]
    fn a_path_is_free_once_nothing_can_be_missing() {
        let mut path = ready();
        assert!(path.free());
        assert_eq!(path.connection_id, Some(ConnectionId::new(&[9, 9])));
        // What is lost there noq would never learn if the path was lent.
        assert_eq!(send(&mut path, 1, &mut [0x40, 9, 9, 1], true), Some(1));
        assert!(!path.free());
        path.acked(1, None);
        assert!(path.free());
        for number in 2..=2 + SLACK {
            assert!(path.free());
            send(&mut path, number, &mut [0x40, 9, 9, 0], false);
        }
        assert!(!path.free());
    }

    #[test]
    fn numbers_go_on_close_to_what_the_client_has() {
        let mut path = ready();
        let (first, _) = path.lend(100).expect("it is free");
        assert_eq!(first, 1);
        assert_eq!(send(&mut path, 1, &mut [0x40, 9, 9, 1], true), None);
        path.give_back(1000);
        assert!(matches!(path.holder, Holder::Settling { next: 1000 }));
        path.acked(999 - SLACK - 1, None);
        assert_eq!(send(&mut path, 2, &mut [0x40, 9, 9, 2], true), None);
        path.acked(999 - SLACK, None);
        let mut header = [0x41, 9, 9, 0, 3];
        assert_eq!(send(&mut path, 3, &mut header, false), Some(1000));
        assert_eq!(header, [0x41, 9, 9, 0x03, 0xe8]);
        assert!(!path.free());
        path.acked(1000, None);
        assert!(path.free());
    }

    #[test]
    fn a_connection_id_that_ends_is_replaced() {
        let mut path = ready();
        let ids: Vec<_> = (0..3u8).map(|i| ConnectionId::new(&[9, 9 + i])).collect();
        for (sequence, id) in (0..).zip(&ids[..2]) {
            path.identify(sequence, 0, *id);
        }
        assert_eq!(path.connection_id, Some(ids[0]));
        path.identify(2, 1, ids[2]);
        assert_eq!(path.connection_id, Some(ids[1]));
    }

    #[test]
    fn noq_keeps_a_path() {
        let mut paths = Paths::default();
        for id in [1, 0] {
            let path = paths.get_or_new(id).expect("it is new");
            *path = Path { id, ..ready() };
        }
        assert_eq!((paths.own(), paths.free()), (Some(0), Some(1)));
        paths.get(0).expect("it is known").abandon();
        assert_eq!((paths.own(), paths.free()), (Some(1), None));
    }

    #[test]
    fn a_forgotten_path_is_nobodys() {
        let mut paths = Paths::default();
        for id in 0..PATHS as u32 + 3 {
            assert!(paths.get_or_new(id).is_some());
        }
        assert!(paths.get_or_new(1).is_none() && paths.get_or_new(3).is_none());
        assert!(paths.get_or_new(0).is_some() && paths.get_or_new(4).is_some());
        assert_eq!(paths.iter().count(), PATHS);
    }
}

//! Packet numbers that come one by one, where others send by the same (QDSR, appendix A). None is kept for later: it is asked for when noq's packet is there,
//! and sealed by as it comes, or else the client would take it for one that it has.
//!
//! Between the two is a round trip to the balancer. Packets wait for it here, not noq, which makes the next ones meanwhile, as many as congestion control
//! lets it: so the round trip becomes longer, but no less may be under way.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use frontage_quic::session::Observer;
use noq::udp::EcnCodepoint;
use tokio::sync::Notify;

use super::Error;
use crate::numbers::Table;

/// Of one borrowed connection.
pub struct Pool {
    /// Of the packets that they are for.
    pub observer: Arc<dyn Observer>,
    state: Mutex<State>,
    wanted: Notify,
    news: Notify,
}

/// A packet of noq's that has no number yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Unnumbered {
    /// As the sealer left it.
    pub octets: Box<[u8]>,
    /// Its mark.
    pub ecn: Option<EcnCodepoint>,
}

#[derive(Default)]
struct State {
    packets: VecDeque<Unnumbered>,
    numbers: VecDeque<Range<u64>>,
    count: u64,
    /// Above all that came.
    next: u64,
    /// To ask the balancer for.
    wanted: u64,
    /// It was asked for so many, each time, and has not answered.
    asked: VecDeque<u64>,
    over: bool,
    table: Table,
}

impl Pool {
    /// Numbers will be `next` at least.
    pub fn new(next: u64, observer: Arc<dyn Observer>) -> Self {
        let state = State {
            next,
            ..State::default()
        };
        Self {
            observer,
            state: Mutex::new(state),
            wanted: Notify::new(),
            news: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    fn want(&self, state: &mut State, count: u64) {
        if count > 0 {
            state.wanted += count;
            self.wanted.notify_one();
        }
    }

    /// These packets wait from now on, unless the grant is over.
    pub fn add(&self, packets: impl Iterator<Item = Unnumbered>) {
        let state = &mut *self.state();
        if !state.over {
            let before = state.packets.len();
            state.packets.extend(packets);
            let count = (state.packets.len() - before) as u64;
            self.want(state, count);
        }
    }

    /// Until there is a packet, and a number for it. False once the grant is over.
    pub async fn ready(&self) -> bool {
        loop {
            let news = self.news.notified();
            {
                let state = self.state();
                if state.over {
                    return false;
                }
                if state.count > 0 && !state.packets.is_empty() {
                    return true;
                }
            }
            news.await;
        }
    }

    /// The next packet, if there is a number for it and it `fits`.
    pub fn pop(&self, fits: impl FnOnce(&Unnumbered) -> bool) -> Option<Unnumbered> {
        let state = &mut *self.state();
        let is_next = state.count > 0 && state.packets.front().is_some_and(fits);
        is_next.then(|| state.packets.pop_front()).flatten()
    }

    /// The next, for noq's packet `own`.
    pub fn take(&self, own: u64) -> Option<u64> {
        let state = &mut *self.state();
        let range = state.numbers.front_mut()?;
        let number = range.next()?;
        if range.is_empty() {
            state.numbers.pop_front();
        }
        state.count -= 1;
        state.table.sent(own, number);
        Some(number)
    }

    /// How many are wanted, once some are. The balancer is asked for them then.
    pub async fn wanted(&self) -> u64 {
        loop {
            self.wanted.notified().await;
            let state = &mut *self.state();
            let wanted = std::mem::take(&mut state.wanted);
            if wanted > 0 {
                state.asked.push_back(wanted);
                return wanted;
            }
        }
    }

    /// These are given, for what was asked first; fewer than that, it may be.
    pub fn give(&self, numbers: Range<u64>) -> Result<(), Error> {
        let state = &mut *self.state();
        if numbers.start < state.next {
            return Err(Error::Number(numbers.start));
        }
        state.next = numbers.end.max(state.next);
        let count = numbers.end.saturating_sub(numbers.start);
        let missing = state.asked.pop_front().unwrap_or(0).saturating_sub(count);
        self.want(state, missing);
        if count > 0 {
            state.count += count;
            state.numbers.push_back(numbers);
        }
        self.news.notify_one();
        Ok(())
    }

    /// What came and was not used is for nobody any more. The packets get others.
    pub fn forget(&self) {
        let state = &mut *self.state();
        state.numbers.clear();
        let count = std::mem::take(&mut state.count);
        self.want(state, count);
    }

    /// Nothing leaves any more.
    pub fn end(&self) {
        let state = &mut *self.state();
        state.over = true;
        state.packets.clear();
        self.news.notify_one();
    }

    /// noq's numbers of those on the wire, the highest first.
    pub fn own(&self, wire: &[Range<u64>]) -> Vec<Range<u64>> {
        self.state().table.own(wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(count: usize) -> impl Iterator<Item = Unnumbered> {
        (0..count).map(|n| Unnumbered {
            octets: [n as u8].into(),
            ecn: None,
        })
    }

    #[tokio::test]
    async fn what_is_missing_is_asked_for_once() {
        let pool = Pool::new(10, Arc::new(()));
        pool.add(packets(3));
        assert_eq!(pool.wanted().await, 3);
        pool.add(packets(2));
        assert_eq!(pool.wanted().await, 2);
        assert_eq!(pool.give(9..12), Err(Error::Number(9)));
        assert_eq!(pool.pop(|_| true), None);
        // Of the first three, then of the other two.
        pool.give(20..22).unwrap();
        pool.give(30..32).unwrap();
        assert!(pool.ready().await);
        assert_eq!(pool.wanted().await, 1);
        assert_eq!(pool.pop(|_| false), None);
        for (own, (octet, number)) in [(0, 20), (1, 21), (2, 30), (0, 31)].into_iter().enumerate() {
            let popped = pool.pop(|_| true).expect("it has a number");
            assert_eq!((*popped.octets)[0], octet);
            assert_eq!(pool.take(own as u64), Some(number));
        }
        assert_eq!((pool.pop(|_| true), pool.take(4)), (None, None));
        assert_eq!(pool.own(&[31..40, 20..21]), [3..4, 0..1]);
        pool.give(40..41).unwrap();
        assert_eq!(pool.give(40..42), Err(Error::Number(40)));
        pool.forget();
        assert_eq!((pool.pop(|_| true), pool.wanted().await), (None, 1));
        pool.end();
        pool.add(packets(1));
        pool.give(50..52).unwrap();
        assert!(!pool.ready().await && pool.pop(|_| true).is_none());
    }
}

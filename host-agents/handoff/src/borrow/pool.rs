//! Packet numbers that come one by one, where others send by the same (QDSR, appendix A). None is kept for later: it is asked for when noq's packet is there,
//! and sealed by as it comes, or else the client would take it for one that it has.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use frontage_quic::session::Observer;
use tokio::sync::Notify;

use super::Error;
use crate::numbers::Table;

/// Of one borrowed connection.
pub struct Pool {
    /// Of the packets that they are for.
    pub observer: Arc<dyn Observer>,
    state: Mutex<State>,
    asked: Notify,
}

#[derive(Default)]
struct State {
    numbers: VecDeque<Range<u64>>,
    count: u64,
    /// Above all that came.
    next: u64,
    /// To ask the balancer for.
    wanted: u64,
    /// It was asked, and has not answered.
    is_asked: bool,
    waiting: Option<Waker>,
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
            asked: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// So many numbers are there, or the grant is over.
    pub fn poll(&self, count: u64, cx: &Context<'_>) -> Poll<()> {
        let state = &mut *self.state();
        if state.over || state.count >= count {
            return Poll::Ready(());
        }
        state.waiting = Some(cx.waker().clone());
        if !state.is_asked {
            state.is_asked = true;
            state.wanted = count - state.count;
            self.asked.notify_one();
        }
        Poll::Pending
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

    /// How many are wanted, once some are.
    pub async fn wanted(&self) -> u64 {
        loop {
            self.asked.notified().await;
            let wanted = std::mem::take(&mut self.state().wanted);
            if wanted > 0 {
                return wanted;
            }
        }
    }

    /// These are given; fewer than were asked for, it may be.
    pub fn give(&self, numbers: Range<u64>) -> Result<(), Error> {
        let state = &mut *self.state();
        if numbers.start < state.next {
            return Err(Error::Number(numbers.start));
        }
        state.is_asked = false;
        state.next = numbers.end.max(state.next);
        if !numbers.is_empty() {
            state.count += numbers.end - numbers.start;
            state.numbers.push_back(numbers);
        }
        if let Some(waker) = state.waiting.take() {
            waker.wake();
        }
        Ok(())
    }

    /// What came and was not used is for nobody any more. Who waits asks again.
    pub fn forget(&self) {
        let state = &mut *self.state();
        state.numbers.clear();
        state.count = 0;
        if let Some(waker) = state.waiting.take() {
            waker.wake();
        }
    }

    /// Nobody waits any more.
    pub fn end(&self) {
        let state = &mut *self.state();
        state.over = true;
        if let Some(waker) = state.waiting.take() {
            waker.wake();
        }
    }

    /// noq's numbers of those on the wire, the highest first.
    pub fn own(&self, wire: &[Range<u64>]) -> Vec<Range<u64>> {
        self.state().table.own(wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frontage_quic::session::Packet;

    struct Blind;

    impl Observer for Blind {
        fn sent(&self, _: &Packet<'_>) {}

        fn received(&self, _: &Packet<'_>) {}
    }

    #[tokio::test]
    async fn what_is_missing_is_asked_for_once() {
        let pool = Pool::new(10, Arc::new(Blind));
        let cx = Context::from_waker(Waker::noop());
        assert!(pool.poll(5, &cx).is_pending() && pool.poll(5, &cx).is_pending());
        assert_eq!(pool.wanted().await, 5);
        assert_eq!(pool.give(9..12), Err(Error::Number(9)));
        pool.give(20..23).unwrap();
        assert!(pool.poll(5, &cx).is_pending());
        assert_eq!(pool.wanted().await, 2);
        pool.give(30..32).unwrap();
        assert!(pool.poll(5, &cx).is_ready());
        let taken: Vec<_> = (0..6).map(|own| pool.take(own)).collect();
        let expected = [Some(20), Some(21), Some(22), Some(30), Some(31), None];
        assert_eq!(taken, expected);
        assert_eq!(pool.own(&[30..40, 20..22]), [3..5, 0..2]);
        assert_eq!(pool.give(31..33), Err(Error::Number(31)));
        pool.give(40..43).unwrap();
        pool.forget();
        assert!(pool.poll(1, &cx).is_pending() && pool.take(6).is_none());
        assert_eq!(pool.wanted().await, 1);
        pool.end();
        assert!(pool.poll(1, &cx).is_ready());
    }
}

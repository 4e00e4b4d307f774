// SPDX-License-Identifier: Apache-2.0
//! Larger batches than noq's.
//!
//! noq hands at most ten packets to one system call (segmentation offload, udp(7)), and at most twenty each time a
//! connection's task runs. A system call costs as much as several packets. Where the client's socket receives such a batch as
//! a whole, it also acknowledges the batch with one packet.
//!
//! [`GatheringRuntime`] lets a connection's task continue after twenty packets, and [`GatheringSocket`] joins what the
//! connection sends in that time. A batch never waits for the next time that the task runs, unless the socket is busy.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use noq::udp::{EcnCodepoint, RecvMeta, Transmit};
use noq::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpSender};
use parking_lot::Mutex;

/// Datagrams after which noq lets other tasks run.
const TURN: usize = 20;
/// Turns for which a task continues.
const TURNS: usize = 2;
/// Most bytes of a batch, which a UDP datagram must be able to hold before it is cut into segments.
const MAX_BATCH: usize = 64_000;
/// Most segments of a batch (`UDP_MAX_SEGMENTS` of Linux).
const MAX_SEGMENTS: usize = 64;
/// Least datagrams of a transmit that another one may follow.
const MIN_DATAGRAMS: usize = 10;

thread_local! {
    /// The turn of the task that this thread runs, if it is one of [`GatheringRuntime`].
    static TASK: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Turn {
    /// Datagrams that noq has sent in this turn.
    datagrams: usize,
    /// The sender whose batch may be incomplete.
    sender: Option<SharedSender>,
}

type SharedSender = Arc<Mutex<Sender>>;

/// Return whether the task that this thread runs has datagrams that join the next batch.
pub(crate) fn is_gathering() -> bool {
    with_batch(|batch| !batch.contents.is_empty()).unwrap_or(false)
}

/// Send the datagrams that join the next batch, if there are any, from the address `source`.
pub(crate) fn set_source(source: Option<IpAddr>) {
    with_batch(|batch| batch.head.source = source);
}

fn with_batch<T>(visit: impl FnOnce(&mut Sender) -> T) -> Option<T> {
    TASK.with_borrow(|turn| Some(visit(&mut turn.as_ref()?.sender.as_ref()?.lock())))
}

/// noq's runtime on Tokio, whose tasks continue while there is more to send in the same batch.
#[derive(Clone, Copy, Debug)]
pub struct GatheringRuntime;

impl Runtime for GatheringRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        tokio::spawn(Task::new(future));
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

/// A task of noq's.
struct Task {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The sender of a batch for which the socket was busy.
    unsent: Option<SharedSender>,
}

impl Task {
    fn new(future: Pin<Box<dyn Future<Output = ()> + Send>>) -> Self {
        Self {
            future,
            unsent: None,
        }
    }

    /// Let noq run once. Return the number of datagrams that it sent.
    fn turn(&mut self, cx: &mut Context<'_>) -> (Poll<()>, usize) {
        /// Ends the turn, also if noq panics.
        struct End;

        impl Drop for End {
            fn drop(&mut self) {
                TASK.set(None);
            }
        }

        let _end = End;
        TASK.set(Some(Turn {
            datagrams: 0,
            sender: self.unsent.take(),
        }));
        let polled = self.future.as_mut().poll(cx);
        let turn = TASK.take().unwrap_or_default();
        self.unsent = turn.sender;
        (polled, turn.datagrams)
    }
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut polled = Poll::Pending;
        for _ in 0..TURNS {
            let (now, datagrams) = self.turn(cx);
            polled = now;
            if polled.is_ready() || datagrams < TURN {
                break;
            }
        }
        if let Some(sender) = self.unsent.take() {
            let is_busy = sender.lock().flush(cx).is_pending();
            self.unsent = is_busy.then_some(sender);
        }
        polled
    }
}

/// A socket that joins what a task of [`GatheringRuntime`] sends in one turn. It changes nothing for other tasks.
#[derive(Debug)]
pub struct GatheringSocket(Box<dyn AsyncUdpSocket>);

impl GatheringSocket {
    /// Join batches over the socket `below`.
    pub fn new(below: Box<dyn AsyncUdpSocket>) -> Self {
        Self(below)
    }
}

impl AsyncUdpSocket for GatheringSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(GatheringSender(Arc::new(Mutex::new(Sender {
            below: self.0.create_sender(),
            head: Head::default(),
            contents: Vec::new(),
        }))))
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_recv(cx, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.0.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.0.may_fragment()
    }
}

#[derive(Debug)]
struct GatheringSender(SharedSender);

impl UdpSender for GatheringSender {
    fn poll_send(
        self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let sent = self.0.lock().send(transmit, cx);
        if sent.is_ready() {
            TASK.with_borrow_mut(|turn| {
                if let Some(turn) = turn {
                    turn.datagrams += datagrams(transmit);
                    turn.sender.get_or_insert_with(|| self.0.clone());
                }
            });
        }
        sent
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.0.lock().below.max_transmit_segments()
    }
}

/// Everything about a batch but its contents.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    destination: Option<SocketAddr>,
    source: Option<IpAddr>,
    ecn: Option<EcnCodepoint>,
    segment_size: usize,
}

/// The sender of one connection, and the batch that it gathers.
#[derive(Debug)]
struct Sender {
    below: Pin<Box<dyn UdpSender>>,
    head: Head,
    contents: Vec<u8>,
}

fn segment_size(transmit: &Transmit<'_>) -> usize {
    transmit.segment_size.unwrap_or(transmit.contents.len())
}

fn datagrams(transmit: &Transmit<'_>) -> usize {
    transmit
        .contents
        .len()
        .div_ceil(segment_size(transmit).max(1))
}

impl Sender {
    fn send(&mut self, transmit: &Transmit<'_>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.takes(transmit) {
            self.contents.extend_from_slice(transmit.contents);
            if !self.has_room() {
                // If the socket is busy, the batch waits, but noq must not send this transmit again.
                let _ = self.flush(cx)?;
            }
            return Poll::Ready(Ok(()));
        }
        ready!(self.flush(cx))?;
        let size = segment_size(transmit);
        let may_continue = TASK.with_borrow(Option::is_some)
            && datagrams(transmit) >= MIN_DATAGRAMS
            && transmit.contents.len().is_multiple_of(size);
        if !may_continue {
            return self.below.as_mut().poll_send(transmit, cx);
        }
        self.head = Head {
            destination: Some(transmit.destination),
            source: transmit.src_ip,
            ecn: transmit.ecn,
            segment_size: size,
        };
        self.contents.extend_from_slice(transmit.contents);
        Poll::Ready(Ok(()))
    }

    /// Return whether `transmit` can join the batch. Only the last segment of a batch may be shorter than the others.
    fn takes(&self, transmit: &Transmit<'_>) -> bool {
        let Head {
            destination,
            source,
            ecn,
            segment_size: size,
        } = self.head;
        let length = self.contents.len() + transmit.contents.len();
        let is_whole = transmit.segment_size.is_none() && transmit.contents.len() <= size;
        !self.contents.is_empty()
            && self.contents.len().is_multiple_of(size)
            && destination == Some(transmit.destination)
            && source == transmit.src_ip
            && ecn == transmit.ecn
            && (is_whole || transmit.segment_size == Some(size))
            && length <= MAX_BATCH
            && length.div_ceil(size) <= MAX_SEGMENTS
    }

    /// Return whether a transmit of noq's may still join the batch.
    fn has_room(&self) -> bool {
        let size = self.head.segment_size;
        let length = self.contents.len() + MIN_DATAGRAMS * size;
        self.contents.len().is_multiple_of(size)
            && length <= MAX_BATCH
            && length / size <= MAX_SEGMENTS
    }

    /// Send the batch.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(destination) = self.head.destination.filter(|_| !self.contents.is_empty()) else {
            return Poll::Ready(Ok(()));
        };
        let transmit = Transmit {
            destination,
            ecn: self.head.ecn,
            contents: &self.contents,
            segment_size: Some(self.head.segment_size),
            src_ip: self.head.source,
        };
        let sent = ready!(self.below.as_mut().poll_send(&transmit, cx));
        self.contents.clear();
        Poll::Ready(sent)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Waker;

    use super::*;

    const SIZE: usize = 1452;

    /// A socket that records what is sent while it is not busy.
    #[derive(Clone, Debug, Default)]
    struct Recorder(Arc<Mutex<Record>>);

    #[derive(Debug, Default)]
    struct Record {
        is_busy: bool,
        /// Length and source of each batch.
        sent: Vec<(usize, Option<IpAddr>)>,
    }

    impl Recorder {
        fn sent(&self) -> Vec<(usize, Option<IpAddr>)> {
            std::mem::take(&mut self.0.lock().sent)
        }

        fn set_busy(&self, is_busy: bool) {
            self.0.lock().is_busy = is_busy;
        }
    }

    impl AsyncUdpSocket for Recorder {
        fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
            Box::pin(self.clone())
        }

        fn poll_recv(
            &mut self,
            _: &mut Context<'_>,
            _: &mut [IoSliceMut<'_>],
            _: &mut [RecvMeta],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Ok(destination())
        }
    }

    impl UdpSender for Recorder {
        fn poll_send(
            self: Pin<&mut Self>,
            transmit: &Transmit<'_>,
            _: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            let record = &mut *self.0.lock();
            if record.is_busy {
                return Poll::Pending;
            }
            let batch = (transmit.contents.len(), transmit.src_ip);
            record.sent.push(batch);
            Poll::Ready(Ok(()))
        }
    }

    fn destination() -> SocketAddr {
        "[2001:db8::1]:1".parse().unwrap()
    }

    fn transmit(contents: &[u8]) -> Transmit<'_> {
        Transmit {
            destination: destination(),
            ecn: None,
            contents,
            segment_size: (contents.len() >= 2 * SIZE).then_some(SIZE),
            src_ip: None,
        }
    }

    /// Run a task that sends transmits of these lengths, at most [`TURN`] datagrams in a turn, as noq does.
    fn run(recorder: &Recorder, lengths: Vec<usize>) -> Task {
        let mut sender = GatheringSocket::new(Box::new(recorder.clone())).create_sender();
        let mut left = lengths.into_iter().peekable();
        let future = poll_fn(move |cx| {
            let mut sent = 0;
            while let Some(length) = left.peek().filter(|_| sent < TURN) {
                let contents = vec![7; *length];
                let transmit = transmit(&contents);
                ready!(sender.as_mut().poll_send(&transmit, cx)).unwrap();
                sent += datagrams(&transmit);
                left.next();
            }
            Poll::Pending
        });
        let mut task = Task::new(Box::pin(future));
        poll(&mut task);
        task
    }

    fn poll(task: &mut Task) {
        assert!(
            Pin::new(task)
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }

    fn lengths(recorder: &Recorder) -> Vec<usize> {
        recorder
            .sent()
            .into_iter()
            .map(|(length, _)| length)
            .collect()
    }

    #[test]
    fn full_transmits_join_until_the_batch_is_full_or_ends() {
        let recorder = Recorder::default();
        let full = 10 * SIZE;
        run(&recorder, vec![full; 4]);
        assert_eq!(lengths(&recorder), [4 * full]);
        run(&recorder, vec![full, full, full, 3 * SIZE + 1]);
        assert_eq!(lengths(&recorder), [3 * full + 3 * SIZE + 1]);
        run(&recorder, vec![full, 100, 100, full]);
        assert_eq!(lengths(&recorder), [full + 100, 100, full]);
        // A packet that probes for a larger MTU.
        run(&recorder, vec![full, SIZE + 8]);
        assert_eq!(lengths(&recorder), [full, SIZE + 8]);
        run(&recorder, vec![3 * SIZE, full]);
        assert_eq!(lengths(&recorder), [3 * SIZE, full]);
    }

    #[test]
    fn batch_waits_in_order_while_the_socket_is_busy() {
        let recorder = Recorder::default();
        let full = 10 * SIZE;
        recorder.set_busy(true);
        let mut task = run(&recorder, vec![full, full, 100, 200]);
        assert!(lengths(&recorder).is_empty());
        poll(&mut task);
        recorder.set_busy(false);
        poll(&mut task);
        assert_eq!(lengths(&recorder), [2 * full + 100, 200]);
        poll(&mut task);
        assert!(lengths(&recorder).is_empty());
    }

    #[test]
    fn other_tasks_send_at_once() {
        let recorder = Recorder::default();
        let mut sender = GatheringSocket::new(Box::new(recorder.clone())).create_sender();
        let contents = vec![0; 10 * SIZE];
        let mut cx = Context::from_waker(Waker::noop());
        assert!(
            sender
                .as_mut()
                .poll_send(&transmit(&contents), &mut cx)
                .is_ready()
        );
        assert!(!is_gathering());
        assert_eq!(lengths(&recorder), [10 * SIZE]);
    }

    #[test]
    fn batch_leaves_from_the_address_that_was_set_last() {
        let recorder = Recorder::default();
        let source = |last: u8| Some(IpAddr::from([10, 0, 0, last]));
        let mut sender = GatheringSocket::new(Box::new(recorder.clone())).create_sender();
        let mut task = Task::new(Box::pin(poll_fn(move |cx| {
            let contents = vec![0; 10 * SIZE];
            for last in [1, 2] {
                let transmit = Transmit {
                    src_ip: source(last),
                    ..transmit(&contents)
                };
                set_source(transmit.src_ip);
                assert!(sender.as_mut().poll_send(&transmit, cx).is_ready());
            }
            // Another address that was not announced.
            let transmit = Transmit {
                src_ip: source(3),
                ..transmit(&contents)
            };
            assert!(sender.as_mut().poll_send(&transmit, cx).is_ready());
            Poll::Ready(())
        })));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut task).poll(&mut cx).is_ready());
        let full = 10 * SIZE;
        assert_eq!(recorder.sent(), [(2 * full, source(2)), (full, source(3))]);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Packets cause no allocations once the buffers have grown to the window, with and without losses.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use frontage_transport::tcp::{Config, Connection};
use frontage_transport::{Nanos, quic};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Length of a round in packets; every 100th is lost.
const STEP: Nanos = 10_000;

/// Returns the number of allocations in 100,000 rounds, after as many rounds of warm-up.
fn allocations(mut round: impl FnMut(Nanos, bool)) -> usize {
    let mut rounds =
        |from: u64| (from..from + 100_000).for_each(|n| round(n * STEP, n % 100 == 99));
    rounds(1);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    rounds(100_001);
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn steady_state_does_not_allocate() {
    let config = Config {
        receive_window: 1 << 17,
        ..Config::default()
    };
    let mut client = Connection::connect(&config, 1, 0);
    let syn = client.poll_transmit(0).expect("a SYN");
    let mut server = Connection::accept(&config, 2, &syn, 0);
    client.write(1 << 40);
    let mut wire = VecDeque::with_capacity(1000);
    let tcp = allocations(|now, lost| {
        while let Some(segment) = server.poll_transmit(now) {
            client.receive(now, &segment);
        }
        client.on_timeout(now);
        server.on_timeout(now);
        wire.extend(std::iter::from_fn(|| client.poll_transmit(now)));
        if let Some(segment) = wire.pop_front().filter(|_| !lost) {
            server.receive(now, &segment);
        }
    });
    assert!(
        client.statistics().retransmitted > 1000,
        "{:?}",
        client.statistics()
    );
    assert_eq!(tcp, 0, "TCP");

    let config = quic::Config::default();
    let mut client = quic::Connection::connect(&config);
    client.send_stream(0, 1 << 40);
    let hello = client.poll_transmit(0).expect("a handshake");
    let mut server = quic::Connection::accept(&config, &hello, 0);
    let mut wire = VecDeque::with_capacity(1000);
    let quic = allocations(|now, lost| {
        while let Some(packet) = server.poll_transmit(now) {
            client.receive(now, &packet);
        }
        client.on_timeout(now);
        server.on_timeout(now);
        wire.extend(std::iter::from_fn(|| client.poll_transmit(now)));
        if let Some(packet) = wire.pop_front().filter(|_| !lost) {
            server.receive(now, &packet);
        }
    });
    assert!(client.statistics().lost > 1000, "{:?}", client.statistics());
    assert_eq!(quic, 0, "QUIC");
}

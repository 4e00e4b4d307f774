// SPDX-License-Identifier: Apache-2.0
//! Memory is allocated at start: a hundred thousand connections need no more than one.

use frontage_dispatcher::outbox::Outbox;
use frontage_dispatcher::outcome::Outcome;
use frontage_first_flight::Version;
use frontage_first_flight::compose::{crypto, hello as hello_of, initial, whole};
use frontage_tunnel::vxlan;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::testbed::{SWITCH, Testbed, dcid, encapsulate, ip};

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static ALLOCATED: Cell<isize> = const { Cell::new(0) };
}

struct CountingAllocator;

fn add(bytes: isize) {
    // A thread may free memory after its counter was destroyed.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + bytes));
}

// SAFETY: all calls are passed to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Changes the client of `packet`: sets the source address, clears the UDP checksum (RFC 768), updates the IPv4 checksum.
fn set_client(packet: &mut [u8], client: u32) {
    let ip = &mut packet[vxlan::LEN..];
    ip[12..16].copy_from_slice(&(0x0b00_0000 + client).to_be_bytes());
    ip[26..28].fill(0);
    ip[10..12].fill(0);
    let words = ip[..20]
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Every third client never completes its flight.
#[test]
fn memory_does_not_grow_with_connections() {
    const CLIENTS: u32 = 100_000;
    let mut testbed = Testbed::with_replicas();
    let view = testbed.view();
    let (mut out, mut baseline) = (Outbox::default(), None);
    let hello = [(51, vec![5; 1500])];
    let half = initial(
        Version::V1,
        &dcid(1),
        b"",
        0,
        &crypto(0, &hello_of(&hello)[..1000]),
    );
    let whole = whole(Version::V1, &dcid(1), b"films.example", &[b"h3"]);
    let mut packets =
        [&half, &whole, &whole].map(|datagram| encapsulate(1, "11.0.0.0:40000", datagram));
    for client in 0..CLIENTS {
        let packet = &mut packets[client as usize % 3];
        set_client(packet, client);
        testbed
            .engine
            .process(Some(&view), ip(SWITCH), packet, &mut out);
        out.clear();
        // Each kind of packet was processed once.
        if client == 2 {
            baseline = Some(ALLOCATED.get());
        }
    }
    assert_eq!(baseline, Some(ALLOCATED.get()));
    testbed.expect_count(Outcome::Held, u64::from(CLIENTS.div_ceil(3)));
    testbed.expect_count(Outcome::Forwarded, u64::from(CLIENTS - CLIENTS.div_ceil(3)));
}

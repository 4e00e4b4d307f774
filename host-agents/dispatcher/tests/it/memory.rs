//! Memory is taken at the start: a hundred thousand connections need no byte more than one.

use frontage_dispatcher::counts::Outcome;
use frontage_dispatcher::outbox::Outbox;
use frontage_first_flight::Version;
use frontage_first_flight::compose::{crypto, hello as hello_of, initial, whole};
use frontage_tunnel::vxlan;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::world::{SWITCH, World, dcid, ip, tunnelled};

thread_local! {
    /// Bytes that this thread has and has not given back.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn add(bytes: isize) {
    // A thread that ends frees what it had when its counter is gone.
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes `packet` another client's: source address, no UDP checksum (RFC 768), the IPv4 header's own.
fn readdress(packet: &mut [u8], client: u32) {
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

/// Every third client never finishes its flight.
#[test]
fn memory_is_flat() {
    const CLIENTS: u32 = 100_000;
    let mut world = World::served();
    let view = world.view();
    let (mut out, mut live) = (Outbox::default(), None);
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
        [&half, &whole, &whole].map(|datagram| tunnelled(1, "11.0.0.0:40000", datagram));
    for client in 0..CLIENTS {
        let packet = &mut packets[client as usize % 3];
        readdress(packet, client);
        world.engine.take(Some(&view), ip(SWITCH), packet, &mut out);
        out.clear();
        // Each kind has come once.
        if client == 2 {
            live = Some(LIVE.get());
        }
    }
    assert_eq!(live, Some(LIVE.get()));
    world.expect(Outcome::Held, u64::from(CLIENTS.div_ceil(3)));
    world.expect(Outcome::Forwarded, u64::from(CLIENTS - CLIENTS.div_ceil(3)));
}

// SPDX-License-Identifier: Apache-2.0
//! Prints the load time and the packets per second on one core of a program: the router of `tests/programs`, or any BMv2
//! JSON given as argument (with empty tables and the router's packets).

use std::time::Instant;

use softswitch_pipeline::{
    ActionCall, EgressOutcome, EgressOutput, Entry, EntryAction, EntryKey, MatchField, Options,
    Pipeline, Program, QueueInfo, Value,
};

const ROUTES: u32 = 1000;
const NEXT_HOPS: u32 = 16;
const PACKETS: usize = 5_000_000;

/// An Ethernet frame with an IPv4 packet to `dst`, of `len` bytes.
fn frame(dst: u32, len: usize) -> Vec<u8> {
    let mut f = vec![0; len];
    f[12..14].copy_from_slice(&[0x08, 0x00]);
    f[14] = 0x45;
    f[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    f[22] = 64;
    f[23] = 17;
    f[26..30].copy_from_slice(&[10, 0, 0, 1]);
    f[30..34].copy_from_slice(&dst.to_be_bytes());
    let sum: u32 = f[14..34]
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    f
}

/// The destination of route `i`: prefixes of 16, 20 and 24 bits.
fn route(i: u32) -> (u32, u32) {
    let prefix_len = [16, 20, 24][i as usize % 3];
    (0x1400_0000 + (i << 16), prefix_len)
}

fn router(program: Program) -> Pipeline {
    let mut p = Pipeline::new(program, Options::default());
    let info = p.program().info().clone();
    let routes = info.table("I.routes").expect("the router's table");
    let next_hops = info.table("I.next_hops").expect("the router's table");
    let call = |table: usize, action: &str, args: Vec<Value>| {
        let action = info.tables[table]
            .action(action)
            .expect("the router's action");
        EntryAction::Direct(ActionCall { action, args })
    };
    for i in 0..ROUTES {
        let (dst, prefix_len) = route(i);
        let fields = vec![MatchField::Lpm {
            value: dst.into(),
            prefix_len,
        }];
        let action = call(
            routes.index(),
            "I.set_next_hop",
            vec![(i % NEXT_HOPS).into()],
        );
        let entry = Entry {
            key: EntryKey {
                fields,
                priority: 0,
            },
            action,
            idle_timeout: 0,
        };
        p.insert_entry(routes, entry, 0).expect("a new route");
    }
    for i in 0..NEXT_HOPS {
        let fields = vec![MatchField::Exact(i.into())];
        let args = vec![
            (i + 1).into(),
            0x0200_0000_0001u64.into(),
            0x0200_0000_0002u64.into(),
        ];
        let action = call(next_hops.index(), "I.forward", args);
        let entry = Entry {
            key: EntryKey {
                fields,
                priority: 0,
            },
            action,
            idle_timeout: 0,
        };
        p.insert_entry(next_hops, entry, 0).expect("a new next hop");
    }
    p
}

fn measure(p: &mut Pipeline, len: usize) -> (f64, usize) {
    let frames: Vec<Vec<u8>> = (0..ROUTES).map(|i| frame(route(i).0 + 7, len)).collect();
    let (mut queue, mut out) = (Vec::new(), EgressOutput::default());
    let mut sent = 0;
    let start = Instant::now();
    for i in 0..PACKETS {
        let now = i as u64 * 100;
        p.ingress(1, &frames[i % frames.len()], now, &mut queue);
        for d in queue.drain(..) {
            if let EgressOutcome::Transmit { .. } = p.egress(d, QueueInfo::default(), now, &mut out)
            {
                sent += 1;
            }
        }
    }
    (PACKETS as f64 / start.elapsed().as_secs_f64(), sent)
}

fn main() {
    let path = std::env::args().nth(1);
    let json = match &path {
        Some(path) => std::fs::read_to_string(path).expect("the program's JSON"),
        None => include_str!("../tests/programs/router.json").to_owned(),
    };
    let start = Instant::now();
    let program = Program::load(&json).unwrap_or_else(|e| panic!("{e}"));
    let loaded = start.elapsed();
    let mut p = match path {
        Some(_) => Pipeline::new(program, Options::default()),
        None => router(program),
    };
    println!(
        "loaded in {} ms, compiled and filled in {} ms",
        loaded.as_millis(),
        (start.elapsed() - loaded).as_millis()
    );
    for len in [64, 1500] {
        let (rate, sent) = measure(&mut p, len);
        println!(
            "{len:5} bytes: {:.2} million packets/s, {sent} of {PACKETS} sent",
            rate / 1e6
        );
    }
}

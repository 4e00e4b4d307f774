// SPDX-License-Identifier: Apache-2.0
//! Time per packet and per table write for the programs in `tests/programs`.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_pipeline::{
    ActionCall, EgressOutput, Entry, EntryAction, EntryKey, MatchField, Options, Pipeline, Program,
    QueueInfo, TableId, Value,
};

fn pipeline(json: &str) -> Pipeline {
    Pipeline::new(
        Program::load(json).expect("the program"),
        Options::default(),
    )
}

fn entry(p: &Pipeline, table: TableId, field: MatchField, action: &str, args: &[u64]) -> Entry {
    let table = &p.program().info().tables[table.index()];
    let action = table.action(action).expect("the action");
    let args = args.iter().map(|&a| Value::from(a)).collect();
    let priority = i32::from(table.needs_priority);
    let key = EntryKey {
        fields: vec![field],
        priority,
    };
    Entry {
        key,
        action: EntryAction::Direct(ActionCall { action, args }),
        idle_timeout: 0,
    }
}

fn prefix(value: u32, prefix_len: u32) -> MatchField {
    MatchField::Lpm {
        value: value.into(),
        prefix_len,
    }
}

/// Returns an Ethernet frame of 64 bytes with an IPv4 header and a correct checksum.
fn frame() -> Vec<u8> {
    let mut f = vec![0; 64];
    f[12] = 0x08;
    f[14..34].copy_from_slice(&[
        0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0x5c, 0xba, 10, 0, 0, 1, 20, 0, 0, 1,
    ]);
    f
}

fn through(p: &mut Pipeline, frame: &[u8], out: &mut EgressOutput) -> usize {
    let mut queue = Vec::with_capacity(2);
    p.ingress(1, frame, 0, &mut queue);
    let sent = queue.len();
    for d in queue {
        p.egress(d, QueueInfo::default(), 0, out);
    }
    sent
}

fn packets(c: &mut Criterion) {
    let mut group = c.benchmark_group("packets");
    group.throughput(Throughput::Elements(1));
    let mut router = pipeline(include_str!("../tests/programs/router.json"));
    let info = router.program().info().clone();
    let (routes, hops) = (
        info.table("I.routes").expect("a table"),
        info.table("I.next_hops").expect("a table"),
    );
    for i in 0..10_000u32 {
        let e = entry(
            &router,
            routes,
            prefix(0x1400_0000 + (i << 8), 24),
            "I.set_next_hop",
            &[1],
        );
        router.insert_entry(routes, e, 0).expect("a new route");
    }
    let field = MatchField::Exact(1u64.into());
    let e = entry(&router, hops, field, "I.forward", &[2, 3, 4]);
    router.insert_entry(hops, e, 0).expect("a new next hop");
    let (frame, mut out) = (frame(), EgressOutput::default());
    assert_eq!(through(&mut router, &frame, &mut out), 1);
    group.bench_function("router", |b| {
        b.iter(|| through(&mut router, &frame, &mut out))
    });
    let mut everything = pipeline(include_str!("../tests/programs/everything.json"));
    group.bench_function("everything", |b| {
        b.iter(|| through(&mut everything, &frame, &mut out))
    });
    group.finish();
}

/// Compiles the program for Tofino.
fn tofino() -> Program {
    let text = include_str!("../tests/programs/tofino_pipes.p4").to_owned();
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let options = softswitch_p4c::Options::default();
    let output = softswitch_p4c::compile("tofino_pipes.p4", text, &options, &sources, &diags);
    let json = output.and_then(|o| o.json).expect("valid program");
    Program::load(&json.to_string()).expect("the program")
}

/// Packets from pipe 0 to the last pipe.
fn pipes(c: &mut Criterion) {
    let mut group = c.benchmark_group("pipes");
    group.throughput(Throughput::Elements(1));
    for pipes in [1, 4] {
        let options = Options {
            pipes,
            ..Options::default()
        };
        let mut p = Pipeline::new(tofino(), options);
        let mut frame = [0; 64];
        frame[2..4].copy_from_slice(&400u16.to_be_bytes());
        let mut out = EgressOutput::default();
        assert_eq!(through(&mut p, &frame, &mut out), 1);
        group.bench_function(pipes.to_string(), |b| {
            b.iter(|| through(&mut p, &frame, &mut out))
        });
    }
    group.finish();
}

fn writes(c: &mut Criterion) {
    const COUNT: u32 = 10_000;
    let program =
        Program::load(include_str!("../tests/programs/router.json")).expect("the program");
    let routes = program.info().table("I.routes").expect("a table");
    let fresh = || Pipeline::new(program.clone(), Options::default());
    let p = fresh();
    let entries: Vec<Entry> = (0..COUNT)
        .map(|i| {
            entry(
                &p,
                routes,
                prefix(i << 8, 24),
                "I.set_next_hop",
                &[u64::from(i)],
            )
        })
        .collect();
    let mut group = c.benchmark_group("table writes");
    group.throughput(Throughput::Elements(COUNT.into()));
    group.bench_function("insert", |b| {
        let insert = |mut p: Pipeline| {
            for e in &entries {
                p.insert_entry(routes, e.clone(), 0).expect("a new route");
            }
            p
        };
        b.iter_batched(fresh, insert, BatchSize::LargeInput);
    });
    group.finish();
}

criterion_group!(benches, packets, pipes, writes);
criterion_main!(benches);

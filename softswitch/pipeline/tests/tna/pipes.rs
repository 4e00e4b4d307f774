// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_pipes.p4`: state of several pipes.

use softswitch_pipeline::{
    ActionCall, CounterValue, Entry, EntryAction, EntryKey, MatchField, MulticastBranch,
    MulticastNode, MulticastTree, Options, PipeSet, Pipeline, RegisterId, TableId, Value,
};

use super::common::{options, through};
use super::{compiled_with, replicas};

/// A port of each pipe.
const PORTS: [u32; 2] = [7, 128 + 7];

fn pipeline(pipes: u32) -> Pipeline {
    let options = Options { pipes, ..options() };
    compiled_with("tofino_pipes", options)
}

/// A packet as it leaves: its port, and what the program wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Visit {
    port: u32,
    tag: u16,
    arrivals: u16,
    departures: u16,
}

fn visit(port: u32, tag: u16, arrivals: u16, departures: u16) -> Visit {
    Visit {
        port,
        tag,
        arrivals,
        departures,
    }
}

/// Sends a packet with a key to ports, or to a group.
fn send(p: &mut Pipeline, from: u32, key: u16, [first, second, group]: [u16; 3]) -> Vec<Visit> {
    let words = [key, first, second, group, 0, 0, 0];
    let frame: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
    let parse = |(port, frame): (u32, Vec<u8>)| {
        let word = |i: usize| u16::from_be_bytes([frame[2 * i], frame[2 * i + 1]]);
        visit(port, word(4), word(5), word(6))
    };
    let sent = through(p, from, &frame, 0);
    sent.into_iter().map(parse).collect()
}

fn table(p: &Pipeline) -> TableId {
    p.program().info().table("Ingress.tags").expect("it has it")
}

fn register(p: &Pipeline, name: &str) -> RegisterId {
    let mut all = p.program().info().registers.iter();
    let position = all.position(|r| r.name.ends_with(name));
    RegisterId(position.expect("it has it") as u32)
}

fn on<T>(p: &mut Pipeline, pipe: u32, f: impl FnOnce(&mut Pipeline) -> T) -> T {
    p.on_pipes(PipeSet::one(pipe), f).expect("the pipe exists")
}

fn key(value: u16) -> EntryKey {
    EntryKey {
        fields: vec![MatchField::Exact(u32::from(value).into())],
        priority: 0,
    }
}

fn entry(p: &Pipeline, value: u16, tag: u16, idle_timeout: u64) -> Entry {
    let action = p.program().info().action("Ingress.set_tag");
    Entry {
        key: key(value),
        action: EntryAction::Direct(ActionCall {
            action: action.expect("it has it"),
            args: vec![u32::from(tag).into()],
        }),
        idle_timeout,
    }
}

fn insert(p: &mut Pipeline, value: u16, tag: u16) {
    let entry = entry(p, value, tag, 0);
    p.insert_entry(table(p), entry, 0).expect("a new entry");
}

fn packets(packets: u64) -> CounterValue {
    CounterValue {
        packets,
        ..CounterValue::default()
    }
}

#[test]
fn ingress_uses_the_pipe_of_its_port_and_egress_that_of_the_egress_port() {
    let mut p = pipeline(2);
    assert_eq!((p.pipes(), p.pipe_of(127), p.pipe_of(128)), (2, 0, 1));
    assert_eq!(send(&mut p, 7, 0, [1, 0, 0]), [visit(1, 0, 1, 1)]);
    assert_eq!(send(&mut p, 7, 0, [130, 0, 0]), [visit(130, 0, 2, 1)]);
    assert_eq!(send(&mut p, 135, 0, [130, 0, 0]), [visit(130, 0, 1, 2)]);
    assert_eq!(send(&mut p, 135, 0, [1, 0, 0]), [visit(1, 0, 2, 2)]);
}

#[test]
fn single_pipe_has_all_ports() {
    let mut p = pipeline(1);
    assert_eq!((p.pipes(), p.pipe_of(400)), (1, 0));
    for (i, from) in (1..).zip([7, 135, 263, 400]) {
        assert_eq!(send(&mut p, from, 0, [1, 0, 0]), [visit(1, 0, i, i)]);
    }
}

#[test]
fn recirculated_packet_stays_in_the_pipe_of_its_port() {
    let mut p = pipeline(4);
    send(&mut p, 7, 0, [1, 0, 0]);
    let second_pipe = 128 + 68;
    let sent = send(&mut p, 7, 0, [second_pipe, 2, 0]);
    assert_eq!(sent, [visit(2, 0, 1, 2)], "ingress in pipe 1");
    assert_eq!(send(&mut p, 7, 0, [68, 2, 0]), [visit(2, 0, 4, 4)]);
}

#[test]
fn loopback_port_leads_back_to_its_pipe() {
    let mut p = pipeline(2);
    let port = 128 + 5;
    assert_eq!(
        send(&mut p, 7, 0, [port, 2, 0]),
        [visit(port.into(), 0, 1, 1)]
    );
    assert!(!p.set_port_loopback(port.into(), true));
    assert!(p.is_loopback(port.into()) && p.is_loopback(128 + 68));
    assert_eq!(
        send(&mut p, 7, 0, [port, 2, 0]),
        [visit(2, 0, 1, 1)],
        "ingress in pipe 1"
    );
    assert!(p.set_port_loopback(port.into(), false));
    assert_eq!(
        send(&mut p, 7, 0, [port, 2, 0]),
        [visit(port.into(), 0, 3, 3)]
    );
}

#[test]
fn multicast_trees_belong_to_all_pipes() {
    let mut p = pipeline(2);
    let tree = MulticastTree {
        branches: vec![MulticastBranch {
            exclusion: None,
            nodes: vec![Some(MulticastNode {
                ports: vec![1, 129],
                ..MulticastNode::default()
            })],
        }],
    };
    p.set_multicast_tree(5, Some(tree));
    for from in PORTS {
        let sent = send(&mut p, from, 0, [0, 0, 5]);
        let ports: Vec<u32> = sent.iter().map(|visit| visit.port).collect();
        assert_eq!(ports, [1, 129]);
    }
}

#[test]
fn copies_leave_through_the_pipes_of_their_ports() {
    let mut p = pipeline(4);
    let group = replicas(&[(1, 0), (129, 0), (130, 0), (385, 0)]);
    p.insert_multicast_group(5, group).unwrap();
    let expected = [(1, 1), (129, 1), (130, 2), (385, 1)];
    assert_eq!(
        send(&mut p, 263, 0, [0, 0, 5]),
        expected.map(|(port, departures)| visit(port, 0, 1, departures))
    );
}

#[test]
fn registers_are_written_in_all_pipes_and_read_in_one() {
    let mut p = pipeline(2);
    let arrivals = register(&p, "arrivals");
    p.set_register(arrivals, 1, &Value::from(10u32)).unwrap();
    assert_eq!(send(&mut p, 7, 0, [1, 0, 0]), [visit(1, 0, 11, 1)]);
    assert_eq!(send(&mut p, 135, 0, [1, 0, 0]), [visit(1, 0, 11, 2)]);
    let value = Value::from(20u32);
    on(&mut p, 1, |p| p.set_register(arrivals, 1, &value)).unwrap();
    assert_eq!(p.register(arrivals, 1).unwrap(), Value::from(11u32));
    let of_pipe = [0, 1].map(|pipe| on(&mut p, pipe, |p| p.register(arrivals, 1)).unwrap());
    assert_eq!(of_pipe, [11u32, 20].map(Value::from));
    p.reset_register(arrivals).unwrap();
    assert_eq!(send(&mut p, 135, 0, [1, 0, 0]), [visit(1, 0, 1, 3)]);
}

#[test]
fn counters_are_sums_over_the_pipes() {
    let mut p = pipeline(2);
    let tags_table = table(&p);
    let counter = p.program().info().counter("Ingress.counter");
    let counter = counter.expect("it has it");
    insert(&mut p, 3, 9);
    for from in [7, 135, 135] {
        assert_eq!(send(&mut p, from, 3, [1, 0, 0])[0].tag, 9);
    }
    let (count, hits) = (
        |p: &Pipeline| p.counter(counter, 2).unwrap().packets,
        |p: &Pipeline| p.direct_counter(table(p), Some(&key(3))).unwrap(),
    );
    assert_eq!((count(&p), hits(&p).unwrap().packets), (3, 3));
    assert_eq!(p.entry(table(&p), &key(3)).unwrap().counter, hits(&p));
    let of_pipe = [0, 1].map(|pipe| on(&mut p, pipe, |p| (count(p), hits(p).unwrap().packets)));
    assert_eq!(of_pipe, [(1, 1), (2, 2)]);
    p.set_counter(counter, 2, packets(100)).unwrap();
    p.set_direct_counter(tags_table, Some(&key(3)), packets(50))
        .unwrap();
    assert_eq!((count(&p), hits(&p).unwrap().packets), (100, 50));
    send(&mut p, 135, 3, [1, 0, 0]);
    assert_eq!((count(&p), hits(&p).unwrap().packets), (101, 51));
}

#[test]
fn entry_of_one_pipe_is_not_in_the_others() {
    let mut p = pipeline(2);
    let tags_table = table(&p);
    on(&mut p, 1, |p| insert(p, 3, 9));
    let tags = |p: &mut Pipeline| PORTS.map(|from| send(p, from, 3, [1, 0, 0])[0].tag);
    assert_eq!(tags(&mut p), [0, 9]);
    // A change of all pipes fails as a whole.
    let everywhere = entry(&p, 3, 8, 0);
    p.insert_entry(tags_table, everywhere.clone(), 0)
        .unwrap_err();
    p.modify_entry(tags_table, everywhere, 0).unwrap_err();
    p.delete_entry(tags_table, &key(3)).unwrap_err();
    assert_eq!(tags(&mut p), [0, 9]);
    on(&mut p, 0, |p| insert(p, 3, 7));
    assert_eq!(tags(&mut p), [7, 9]);
    p.delete_entry(tags_table, &key(3)).unwrap();
    assert_eq!(tags(&mut p), [0, 0]);
}

#[test]
fn default_action_applies_to_all_pipes() {
    let mut p = pipeline(2);
    let tags_table = table(&p);
    let EntryAction::Direct(call) = entry(&p, 0, 5, 0).action else {
        panic!("an action")
    };
    p.set_default_action(tags_table, Some(EntryAction::Direct(call)))
        .unwrap();
    let tags = PORTS.map(|from| send(&mut p, from, 3, [1, 0, 0])[0].tag);
    assert_eq!(tags, [5, 5]);
}

#[test]
fn entry_is_idle_if_no_pipe_hits_it() {
    let mut p = pipeline(2);
    let tags_table = table(&p);
    let mortal = entry(&p, 3, 9, 100);
    p.insert_entry(tags_table, mortal, 0).unwrap();
    let frame = [&3u16.to_be_bytes()[..], &[0; 12]].concat();
    through(&mut p, 135, &frame, 60);
    assert!(p.poll_idle(150).is_empty());
    let idle = p.poll_idle(160);
    assert_eq!(idle.len(), 1);
    assert!(!idle[0].is_repeated);
    assert!(p.poll_idle(260)[0].is_repeated);
}

#[test]
fn missing_pipe_is_refused() {
    let mut p = pipeline(2);
    let error = p.on_pipes(PipeSet::one(2), |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "pipe: it does not exist: use 0 to 1");
    assert!(PipeSet::one(99).is_empty());
}

#[test]
fn reset_restarts_all_pipes() {
    let mut p = pipeline(2);
    insert(&mut p, 3, 9);
    send(&mut p, 135, 3, [1, 0, 0]);
    p.reset_state();
    let sent = PORTS.map(|from| send(&mut p, from, 3, [1, 0, 0])[0]);
    assert_eq!(sent, [visit(1, 0, 1, 1), visit(1, 0, 1, 2)]);
}

// SPDX-License-Identifier: Apache-2.0
//! TNA, with small programs as JSON, and with P4 programs.

mod checksums;
#[path = "../common/mod.rs"]
mod common;
mod counts;
mod generator;
mod ghost;
mod hashes;
mod mirrors;
mod parsers;
mod paths;
mod pipelines;
mod pipes;
mod queues;
mod registers;
mod state;
mod traffic;
mod transport;

use std::path::Path;

use common::tna::{HEADER_BYTES, Tna, assign, field};
use common::{compile, options, through};
use softswitch_pipeline::{Options, Pipeline, Program, Replica};

const TM: &str = "ig_intr_md_for_tm";

/// A pipeline of a P4 program that runs in native code.
fn compiled(name: &str) -> Pipeline {
    compiled_with(name, options())
}

fn program(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.p4"));
    compile(&path, path.parent().expect("a folder")).expect("valid program")
}

fn compiled_with(name: &str, options: Options) -> Pipeline {
    let program = program(name);
    assert_eq!(
        program.native_blocks(),
        (6, 6),
        "parsers, controls and deparsers"
    );
    Pipeline::new(program, options)
}

/// A program that forwards to the port in `hdr.x`.
fn forwarding() -> Tna {
    to_port("tna")
}

fn to_port(architecture: &str) -> Tna {
    let port = field("hdr", "x");
    Tna::new(architecture).ingress(vec![assign((TM, "ucast_egress_port"), port)])
}

fn replicas(list: &[(u32, u16)]) -> Vec<Replica> {
    let replica = |&(port, instance): &(u32, u16)| Replica { port, instance };
    list.iter().map(replica).collect()
}

/// The ports of the transmitted packets.
fn ports(p: &mut Pipeline, frame: &[u8]) -> Vec<u32> {
    through(p, 7, frame, 0).into_iter().map(|s| s.0).collect()
}

/// `hdr.y` of a transmitted packet.
fn y(sent: &(u32, Vec<u8>)) -> u32 {
    u32::from_be_bytes(sent.1[4..HEADER_BYTES].try_into().expect("four bytes"))
}

/// `hdr.y` of the only packet that a program sends.
fn result(p: &mut Pipeline, frame: &[u8]) -> u32 {
    let sent = through(p, 7, frame, 0);
    assert_eq!(sent.len(), 1, "{sent:?}");
    y(&sent[0])
}

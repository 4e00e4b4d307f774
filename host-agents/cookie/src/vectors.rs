// SPDX-License-Identifier: Apache-2.0
//! The test vectors for all implementations of the cookie (`docs/cookie-vectors.json`).
//!
//! All numbers are plain integers, secrets and 64-bit words are hexadecimal strings without prefix, and times in the
//! IPv6 and TCP cases are in microseconds. The generator has a fixed seed, so the file changes only if the cookie
//! does.

mod generate;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Secret;
use crate::syn;
use crate::tcp::Tuple;

pub use generate::generate;

/// The content of the file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Vectors {
    pub quantisation: Vec<Quantisation>,
    pub tcp_dynamic: Vec<TcpDynamic>,
    pub tcp_tables: Vec<TcpTables>,
    pub tcp_static: Vec<TcpStatic>,
    pub tcp_invalid: Vec<TcpInvalid>,
    pub ipv6_tables: Vec<Ipv6Tables>,
    pub ipv6: Vec<Ipv6>,
    pub ipv6_invalid: Vec<Ipv6Invalid>,
    pub cid: Vec<Cid>,
    pub cid_invalid: Vec<CidInvalid>,
    pub syn: Vec<Syn>,
}

/// One value in one field.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantisation {
    /// `tcp_count`, `tcp_rpt` or `ipv6`.
    pub field: String,
    pub w: u32,
    pub m: u32,
    pub value: u64,
    pub code: u32,
    pub decoded: u64,
}

/// TSval between server and edge switch.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpDynamic {
    pub ts: u32,
    pub rpt_us: u64,
    pub n_af: u64,
    pub n_ff: u64,
    pub tsval: u32,
}

/// A secret's TCP tables: the first 8 bytes of each, and the XOR of all 256.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpTables {
    pub secret: String,
    pub heads: [String; 4],
    pub xors: [u8; 4],
}

/// TSval between edge switch and client.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpStatic {
    pub secret: String,
    pub key_id: u32,
    pub client: IpAddr,
    pub vip: IpAddr,
    pub client_port: u16,
    pub vip_port: u16,
    pub sid: u16,
    pub coarse_clock: u16,
    pub tweak: u32,
    pub code: u16,
    pub tsval: u32,
}

/// A code that must not open.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpInvalid {
    pub secret: String,
    pub key_id: u32,
    pub client: IpAddr,
    pub vip: IpAddr,
    pub client_port: u16,
    pub vip_port: u16,
    pub code: u16,
    /// `check`, `epoch` or `connection` (sealed for another one).
    pub reason: String,
}

/// A secret's IPv6 tables: the first word of each, in the order `T[0][0], T[0][1], ...`, and the XOR of all words.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Ipv6Tables {
    pub secret: String,
    pub heads: Vec<u32>,
    pub xor: u32,
}

/// An interface id, before and after sealing. RPT and loads are zero in the static form.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Ipv6 {
    pub secret: String,
    pub key_id: u32,
    pub dynamic: bool,
    pub sid: u16,
    pub rpt_us: u64,
    pub n_af: u64,
    pub n_ff: u64,
    pub x: u8,
    pub plain: String,
    pub interface_id: String,
}

/// An interface id that must not open.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Ipv6Invalid {
    pub secret: String,
    pub key_id: u32,
    pub interface_id: String,
    /// `check`, `epoch` or `version`.
    pub reason: String,
}

/// A connection id; in the plaintext form the nonce is all of its last 9 bytes, in the sealed form 24 bits.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Cid {
    pub secret: String,
    pub key_id: u32,
    /// `sealed` or `plain`.
    pub form: String,
    pub sid: u16,
    pub nonce: String,
    /// The last 3 bytes of the sealed form.
    pub random: String,
    pub id: String,
}

/// A connection id that must not open.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct CidInvalid {
    pub secret: String,
    pub key_id: u32,
    pub id: String,
    /// `check`, `epoch` (of another key), `config` (an unknown configuration), `length`, or `cookie` (a static
    /// cookie's bits under another version).
    pub reason: String,
}

/// The initial sequence number of the answer to a SYN (docs/syn-flood.md).
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Syn {
    pub secret: String,
    pub client: IpAddr,
    pub client_port: u16,
    pub client_isn: u32,
    pub epoch: u8,
    pub age: u8,
    pub mss_code: u8,
    pub timestamps: bool,
    /// 15 without the option; 15 and no SACK without timestamps.
    pub window_scale: u8,
    pub sack: bool,
    pub isn: u32,
}

impl Syn {
    /// Return the SYN and the clear part of the answer's sequence number.
    pub fn parts(&self) -> (syn::Syn, syn::Head) {
        let options = syn::Options {
            window_scale: (self.window_scale != 15).then_some(self.window_scale),
            sack: self.sack,
        };
        let syn = syn::Syn {
            client: self.client,
            client_port: self.client_port,
            client_isn: self.client_isn,
            options: self.timestamps.then_some(options),
        };
        let head = syn::Head {
            epoch: self.epoch,
            age: self.age,
            mss: self.mss_code,
        };
        (syn, head)
    }
}

/// Return the text of the file, with one case per line, so that a diff shows the changed cases.
pub fn to_json(vectors: &Vectors) -> String {
    let sections = [
        section("quantisation", &vectors.quantisation),
        section("tcp_dynamic", &vectors.tcp_dynamic),
        section("tcp_tables", &vectors.tcp_tables),
        section("tcp_static", &vectors.tcp_static),
        section("tcp_invalid", &vectors.tcp_invalid),
        section("ipv6_tables", &vectors.ipv6_tables),
        section("ipv6", &vectors.ipv6),
        section("ipv6_invalid", &vectors.ipv6_invalid),
        section("cid", &vectors.cid),
        section("cid_invalid", &vectors.cid_invalid),
        section("syn", &vectors.syn),
    ];
    format!("{{\n{}\n}}\n", sections.join(",\n"))
}

fn section<T: Serialize>(name: &str, cases: &[T]) -> String {
    let line = |case| format!("    {}", serde_json::to_string(case).expect("plain data"));
    let lines: Vec<_> = cases.iter().map(line).collect();
    format!("  \"{name}\": [\n{}\n  ]", lines.join(",\n"))
}

/// Return the bytes of a hexadecimal string.
pub fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hexadecimal digits"))
        .collect()
}

/// Return the secret with these hexadecimal bytes.
pub fn secret(hex: &str) -> Secret {
    Secret::new(&bytes(hex)).expect("16 to 32 bytes")
}

/// Return the tuple of a connection between `client` and `vip`, which must be of one address family.
pub fn tuple(client: IpAddr, vip: IpAddr, client_port: u16, vip_port: u16) -> Tuple {
    match (client, vip) {
        (IpAddr::V4(c), IpAddr::V4(v)) => Tuple::v4(c, v, client_port, vip_port),
        (IpAddr::V6(c), IpAddr::V6(v)) => Tuple::v6(c, v, client_port, vip_port),
        _ => panic!("{client} and {vip} are of different families"),
    }
}

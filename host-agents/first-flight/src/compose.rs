// SPDX-License-Identifier: Apache-2.0
//! Synthetic first flights, for tests and benchmarks of readers.

use crate::keys::{Salts, Side, TAG};
use crate::packet::{self, MAX_CID};
use crate::{MIN_DATAGRAM, Version, frames};

/// An extension of a ClientHello.
pub type Extension = (u16, Vec<u8>);

/// Return the `server_name` extension.
pub fn server_name(name: &[u8]) -> Extension {
    (0, vector(2, &[&[0], vector(2, name).as_slice()].concat()))
}

/// Return the ALPN extension.
pub fn alpn(names: &[&[u8]]) -> Extension {
    let names: Vec<u8> = names.iter().flat_map(|name| vector(1, name)).collect();
    (16, vector(2, &names))
}

/// Return a ClientHello with `extensions`.
pub fn hello(extensions: &[Extension]) -> Vec<u8> {
    let extensions: Vec<u8> = extensions
        .iter()
        .flat_map(|(kind, content)| [&kind.to_be_bytes(), vector(2, content).as_slice()].concat())
        .collect();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &vector(1, &[]),
        &vector(2, &[0x13, 0x01]),
        &vector(1, &[0]),
        &vector(2, &extensions),
    ];
    [&[1], vector(3, &body.concat()).as_slice()].concat()
}

/// Return `content` after its length, which takes `bytes` bytes.
fn vector(bytes: usize, content: &[u8]) -> Vec<u8> {
    [&content.len().to_be_bytes()[8 - bytes..], content].concat()
}

/// Return a CRYPTO frame.
pub fn crypto(offset: usize, data: &[u8]) -> Vec<u8> {
    [
        &[frames::CRYPTO],
        varint(offset).as_slice(),
        &varint(data.len()),
        data,
    ]
    .concat()
}

fn varint(n: usize) -> [u8; 4] {
    (0x8000_0000 | n as u32).to_be_bytes()
}

/// Return a datagram with one Initial of packet number `number`, which holds `frames` and is padded to 1200 bytes.
///
/// # Panics
/// If the connection ids are longer than 20 bytes, or the frames than a datagram.
pub fn initial(version: Version, dcid: &[u8], scid: &[u8], number: u32, frames: &[u8]) -> Vec<u8> {
    assert!(dcid.len().max(scid.len()) <= MAX_CID);
    let mut datagram = vec![packet::initial(version, 4)];
    datagram.extend(version.number().to_be_bytes());
    datagram.extend(vector(1, dcid));
    datagram.extend(vector(1, scid));
    datagram.push(0); // no token
    let head = datagram.len() + 4 + 4;
    let size = MIN_DATAGRAM.max(head + frames.len() + TAG);
    datagram.extend(varint(size - head + 4));
    let number_at = datagram.len();
    datagram.extend(number.to_be_bytes());
    datagram.extend(frames);
    datagram.resize(size, 0);
    let keys = Salts::default().keys(version, dcid, Side::Client);
    keys.seal(&mut datagram, number_at);
    datagram
}

/// Return one datagram with a complete ClientHello, with name and ALPN, for a connection whose client chose `dcid`.
pub fn whole(version: Version, dcid: &[u8], name: &[u8], alpn_names: &[&[u8]]) -> Vec<u8> {
    let hello = hello(&[server_name(name), alpn(alpn_names)]);
    initial(version, dcid, &[], 0, &crypto(0, &hello))
}

// SPDX-License-Identifier: Apache-2.0
//! First flights: synthetic ones, those of third-party clients, and damaged ones.

mod clients;
mod damage;
mod hellos;
mod refusals;
mod retries;

use frontage_first_flight::{Crypto, Fault, Reader, hello};

/// The content of a first flight: server name, protocols, and true if there is an encrypted ClientHello.
type Said = (Option<Vec<u8>>, Vec<Vec<u8>>, bool);

/// Read datagrams in order, until name and ALPN are known.
fn read(datagrams: &[Vec<u8>]) -> Result<Option<Said>, Fault> {
    let (mut reader, mut crypto) = (Reader::default(), Crypto::default());
    for datagram in datagrams {
        reader.read(datagram, &mut crypto)?;
        if let Some(hello) = hello::read(crypto.prefix())? {
            let names = |alpn: hello::Alpn<'_>| alpn.iter().map(<[u8]>::to_vec).collect();
            let alpn = hello.alpn.map(names).unwrap_or_default();
            return Ok(Some((hello.name.map(<[u8]>::to_vec), alpn, hello.ech)));
        }
    }
    Ok(None)
}

fn said(name: &str, alpn: &[&str]) -> Said {
    let alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    (Some(name.as_bytes().to_vec()), alpn, false)
}

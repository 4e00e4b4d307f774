//! First flights: made here, made by clients that others wrote, and damaged.

mod clients;
mod damage;
mod hellos;
mod refusals;
mod retries;

use frontage_first_flight::{Crypto, Fault, Reader, hello};

/// What a flight says: name, protocols, whether an encrypted ClientHello was seen.
type Said = (Option<Vec<u8>>, Vec<Vec<u8>>, bool);

/// Reads datagrams as they come, until name and ALPN are known.
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

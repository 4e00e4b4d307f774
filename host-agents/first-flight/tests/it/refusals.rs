// SPDX-License-Identifier: Apache-2.0
//! Refusals as noq's client processes them, without a network.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use frontage_first_flight::answer::{self, Refusal};
use frontage_first_flight::packet::{Invariants, Packet};
use frontage_first_flight::{Reader, Version};
use noq_proto::crypto::rustls::QuicClientConfig;
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint,
    EndpointConfig, Event, FourTuple,
};

use crate::{read, said};

/// A client whose packets the test receives in place of a server.
pub struct Client {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    server: SocketAddr,
}

impl Client {
    pub fn new(name: &str, alpn: &[&[u8]], version: u32) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        config.version(version);
        let mut endpoint = EndpointConfig::default();
        endpoint.supported_versions(vec![1, version]);
        let mut endpoint = Endpoint::new(Arc::new(endpoint), None, false);
        let server: SocketAddr = "[2001:db8:a::1]:443".parse().unwrap();
        let connected = endpoint.connect(Instant::now(), config, server, name);
        let (handle, connection) = connected.unwrap();
        Self {
            endpoint,
            handle,
            connection,
            server,
        }
    }

    /// Return the datagrams of the first flight.
    pub fn flight(&mut self) -> Vec<Vec<u8>> {
        let mut flight = Vec::new();
        let mut buffer = Vec::new();
        while let Some(sent) =
            self.connection
                .poll_transmit(Instant::now(), NonZeroUsize::MIN, &mut buffer)
        {
            flight.push(buffer[..sent.size].to_vec());
            buffer.clear();
        }
        flight
    }

    /// Deliver a response, and return the error with which the connection ended, if it did.
    pub fn take(&mut self, answer: &[u8]) -> Option<ConnectionError> {
        let path = FourTuple::from_remote(self.server);
        let mut buffer = Vec::new();
        let event = self
            .endpoint
            .handle(Instant::now(), path, None, answer.into(), &mut buffer);
        let Some(DatagramEvent::ConnectionEvent(handle, event)) = event else {
            panic!("the answer does not reach its connection");
        };
        assert_eq!(handle, self.handle);
        self.connection.handle_event(event);
        std::iter::from_fn(|| self.connection.poll()).find_map(|event| match event {
            Event::ConnectionLost { reason } => Some(reason),
            _ => None,
        })
    }
}

#[test]
fn first_flight_of_noq_is_read() {
    let flight = Client::new("films.example", &[b"h3"], 1).flight();
    assert_eq!(read(&flight), Ok(Some(said("films.example", &["h3"]))));
    // Clients do not send an address as server name (RFC 6066, 3).
    let flight = Client::new("2001:db8::1", &[b"h3"], 1).flight();
    assert_eq!(read(&flight), Ok(Some((None, vec![b"h3".to_vec()], false))));
}

#[test]
fn refused_client_gets_the_error_code_at_once() {
    for refusal in [
        Refusal::Name,
        Refusal::Alpn,
        Refusal::Hello,
        Refusal::TooLong,
        Refusal::NoServer,
    ] {
        let mut client = Client::new("films.example", &[b"h3"], 1);
        let flight = client.flight();
        let (packet, _) = Packet::parse(&flight[0]).unwrap();
        let mut out = [0; answer::MAX];
        let n = answer::close(&Reader::default(), &packet, refusal, &mut out);
        assert!(3 * flight[0].len() > n);
        match client.take(&out[..n]) {
            Some(ConnectionError::ConnectionClosed(close)) => {
                assert_eq!(u64::from(close.error_code), u64::from(refusal.code()));
            }
            other => panic!("{refusal:?}: {other:?}"),
        }
    }
}

#[test]
fn client_with_an_unknown_version_gets_version_negotiation() {
    let mut client = Client::new("films.example", &[b"h3"], 0xff00_001d);
    let flight = client.flight();
    let invariants = Invariants::parse(&flight[0]).unwrap();
    assert_eq!(Version::from_number(invariants.version), None);
    let mut out = [0; answer::MAX];
    let n = answer::version_negotiation(&invariants, 0x2a, &mut out);
    let reason = client.take(&out[..n]);
    assert!(
        matches!(reason, Some(ConnectionError::VersionMismatch)),
        "{reason:?}"
    );
    // The longest connection ids that RFC 8999 allows fit.
    let (dcid, scid) = ([1; 255], [2; 255]);
    let longest = Invariants {
        version: 0x1a2a_3a4a,
        dcid: &dcid,
        scid: &scid,
    };
    let n = answer::version_negotiation(&longest, 0, &mut out);
    let answered = Invariants::parse(&out[..n]).unwrap();
    assert_eq!(
        (answered.version, answered.dcid, answered.scid),
        (0, &scid[..], &dcid[..])
    );
}

// SPDX-License-Identifier: Apache-2.0
//! The endpoints, each with its own socket.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use frontage_quic::cid::Form;
use frontage_quic::gather::GatheringRuntime;
use frontage_quic::keys::Keys;
use frontage_quic::meter::Loads;
use frontage_quic::migration::PathTable;
use frontage_quic::socket::{Addressing, CookiePrefix, Counts, Socket, Tunnel};
use noq::{AsyncUdpSocket, Endpoint, EndpointConfig};

use crate::artemis::Artemis;
use crate::artemis::socket::add_tunnel;
use crate::config::{Config, Cookie};

/// Open an endpoint for each address of the configuration. Also returns the sockets' counters.
pub(super) fn open(
    config: &Config,
    keys: Option<&Arc<Keys>>,
    artemis: Option<&Artemis>,
    loads: &Arc<Loads>,
    path_table: &Arc<PathTable>,
) -> Result<(Vec<Endpoint>, Vec<Arc<Counts>>)> {
    let cookie = config.cookie.as_ref().zip(keys);
    let sockets = config.listen.iter().map(|listen| {
        let addresses = addresses(*listen, cookie, artemis, loads, path_table)
            .or_else(|| config.moves.as_ref().map(|_| plain(path_table)));
        Socket::bind(*listen, addresses).with_context(|| format!("cannot listen at UDP {listen}"))
    });
    let sockets = sockets.collect::<Result<Vec<_>>>()?;
    let counts = sockets.iter().map(Socket::counts).collect();
    let sockets: Vec<Box<dyn AsyncUdpSocket>> = match artemis {
        None => sockets
            .into_iter()
            .map(|socket| Box::new(socket) as _)
            .collect(),
        Some(artemis) => {
            let families = config.listen.iter().map(SocketAddr::is_ipv4);
            let sockets = families.zip(sockets).collect();
            let sockets = add_tunnel(&artemis.tunnel, path_table, sockets).into_iter();
            sockets.map(|socket| Box::new(socket) as _).collect()
        }
    };
    let endpoints = config.listen.iter().zip(sockets);
    let endpoints = endpoints.map(|(listen, socket)| {
        endpoint(*listen, cookie, socket).with_context(|| format!("cannot listen at UDP {listen}"))
    });
    Ok((endpoints.collect::<Result<_>>()?, counts))
}

/// Return the source addresses of a socket at `listen`. Over IPv6, packets carry signals.
fn addresses(
    listen: SocketAddr,
    cookie: Option<(&Cookie, &Arc<Keys>)>,
    artemis: Option<&Artemis>,
    loads: &Arc<Loads>,
    path_table: &Arc<PathTable>,
) -> Option<Addressing> {
    let cookie_prefix = cookie_prefix(listen, cookie, loads);
    let tunnel = artemis.map(|artemis| artemis.tunnel.clone() as Arc<dyn Tunnel>);
    (cookie_prefix.is_some() || tunnel.is_some()).then(|| Addressing {
        path_table: path_table.clone(),
        cookie_prefix,
        tunnel,
    })
}

/// Return the addresses of a server without cookies whose clients move. noq rejects packets at another address of the server
/// than the one at which the connection began.
fn plain(path_table: &Arc<PathTable>) -> Addressing {
    Addressing {
        path_table: path_table.clone(),
        cookie_prefix: None,
        tunnel: None,
    }
}

/// Return the contents of source addresses of packets from `listen`: cookies over IPv6.
pub(super) fn cookie_prefix(
    listen: SocketAddr,
    cookie: Option<(&Cookie, &Arc<Keys>)>,
    loads: &Arc<Loads>,
) -> Option<CookiePrefix> {
    let (cookie, keys) = cookie.filter(|_| listen.is_ipv6())?;
    Some(CookiePrefix {
        prefix: cookie.server_prefix.0,
        keys: keys.clone(),
        loads: loads.clone(),
        bandwidth: cookie.bandwidth.0,
    })
}

/// Create an endpoint on `socket` whose connection ids contain the server id.
fn endpoint(
    listen: SocketAddr,
    cookie: Option<(&Cookie, &Arc<Keys>)>,
    socket: Box<dyn AsyncUdpSocket>,
) -> std::io::Result<Endpoint> {
    let config = cookie.map_or_else(EndpointConfig::default, |(cookie, keys)| {
        let sid_v4 = cookie.sid_v4.filter(|_| listen.is_ipv4());
        Form::sealed(keys.clone(), sid_v4.unwrap_or(cookie.sid)).endpoint_config()
    });
    Endpoint::new_with_abstract_socket(config, None, socket, Arc::new(GatheringRuntime))
}

// SPDX-License-Identifier: Apache-2.0
//! Opens the ports that the options ask for.

use std::sync::Arc;

use anyhow::Context;
use softswitch::cli::{Interface, Options};
use softswitch::dataplane::PortSetup;
use softswitch::log::Log;
use softswitch::port::dump::Dump;
use softswitch::port::files::{self, Feed};
use softswitch::port::{self, Receive, Transmit, capture, loopback};
use softswitch_queue::LinkConfig;

/// Opened ports.
pub struct Ports {
    /// The ports.
    pub setups: Vec<PortSetup>,
    /// The files from which ports receive packets.
    pub feeds: Vec<Feed>,
}

impl Ports {
    /// Opens interfaces, or files in their place, and loopback ports.
    pub fn open(options: &Options, log: Option<&Arc<Log>>) -> anyhow::Result<Self> {
        let (mut setups, mut feeds) = (Vec::new(), Vec::new());
        for interface in &options.interface {
            let (receiver, transmitter) = if options.use_files.is_some() {
                let port = files::open(&interface.name).context("--use-files")?;
                feeds.push(port.feed);
                (port.receiver, port.transmitter)
            } else {
                let Interface { port, name } = interface;
                let opened = port::open(name, options.sockets);
                opened.with_context(|| format!("--interface {port}@{name}"))?
            };
            setups.push(observed(options, log, interface, receiver, transmitter)?);
        }
        for &number in &options.loopback {
            let opened = loopback().with_context(|| format!("--loopback {number}"));
            let (receiver, transmitter) = opened?;
            setups.push(PortSetup {
                number,
                name: format!("loopback-{number}"),
                receiver: Box::new(receiver),
                transmitter: Box::new(transmitter),
                link: link_of(options, number),
            });
        }
        Ok(Self { setups, feeds })
    }
}

/// Adds the captures and the log of a port's packets.
fn observed(
    options: &Options,
    log: Option<&Arc<Log>>,
    interface: &Interface,
    mut receiver: Box<dyn Receive>,
    mut transmitter: Box<dyn Transmit>,
) -> anyhow::Result<PortSetup> {
    let Interface { port, name } = interface;
    // With files, the output is such a capture already.
    if let Some(dir) = options
        .pcap
        .as_ref()
        .filter(|_| options.use_files.is_none())
    {
        receiver = capture::received(receiver, dir, name).context("--pcap")?;
        transmitter = capture::sent(transmitter, dir, name).context("--pcap")?;
    }
    let bytes = options.log.dump_packet_data;
    if let Some(log) = log.filter(|_| bytes > 0) {
        let dump = Dump {
            log: Arc::clone(log),
            port: *port,
            bytes,
        };
        receiver = dump.clone().received(receiver);
        transmitter = dump.sent(transmitter);
    }
    Ok(PortSetup {
        number: *port,
        name: name.clone(),
        receiver,
        transmitter,
        link: link_of(options, *port),
    })
}

fn link_of(options: &Options, port: u32) -> LinkConfig {
    let link = options.link.iter().find(|link| link.port == port);
    link.map(|link| link.link).unwrap_or_default()
}

// SPDX-License-Identifier: Apache-2.0
//! Workers: each has a thread, a socket and an engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, thread};

use anyhow::{Context as _, Result};
use parking_lot::{Mutex, RwLock};
use socket2::Socket;

use crate::config::Config;
use crate::engine::Engine;
use crate::outbox::Outbox;
use crate::outcome::{Counters, add};
use crate::udp::{Receiver, Sender, bind};
use crate::view::View;

/// Number of packets after which a batch is sent.
///
/// One receive call can return two thousand datagrams, and the first should not wait for all others. GSO sends this many packets
/// to one destination as one.
const SEND_BATCH: usize = 64;

/// Passes the newest view to the workers, which check its generation before each batch.
#[derive(Debug, Default)]
pub struct ViewChannel {
    generation: AtomicU64,
    newest: RwLock<Option<Arc<View>>>,
    /// Old views that workers may still use. Workers must not free them, because freeing a large view would delay packets.
    retired: Mutex<Vec<Arc<View>>>,
}

impl ViewChannel {
    /// Replaces the newest view.
    pub fn publish(&self, view: Arc<View>) {
        let mut newest = self.newest.write();
        let last = newest.replace(view);
        drop(newest);
        self.generation.fetch_add(1, Ordering::Release);
        let mut retired = self.retired.lock();
        retired.extend(last);
        retired.retain(|view| Arc::strong_count(view) > 1);
    }

    /// Creates a receiver.
    pub fn subscribe(self: &Arc<Self>) -> ViewReceiver {
        ViewReceiver {
            channel: self.clone(),
            generation: 0,
            view: None,
        }
    }
}

/// Receiver of the newest view.
#[derive(Debug)]
pub struct ViewReceiver {
    channel: Arc<ViewChannel>,
    generation: u64,
    view: Option<Arc<View>>,
}

impl ViewReceiver {
    /// Returns the newest view, or `None` before the first.
    #[inline]
    pub fn view(&mut self) -> Option<&View> {
        let generation = self.channel.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.generation = generation;
            self.view.clone_from(&self.channel.newest.read());
        }
        self.view.as_deref()
    }
}

/// Starts the workers and returns their counters.
///
/// # Errors
/// Returns an error if a socket cannot be opened or a thread not be started.
pub fn start(config: &Config, views: &Arc<ViewChannel>) -> Result<Vec<Arc<Counters>>> {
    let listen = *config.tunnel.listen.get_ref();
    let start = |n| {
        let socket =
            bind(listen).with_context(|| format!("tunnel.listen: cannot open {listen}"))?;
        let counters = Arc::new(Counters::default());
        let engine = Engine::new(&config.limits, counters.clone());
        let (receiver, own_counters) = (views.subscribe(), counters.clone());
        thread::Builder::new()
            .name(format!("worker-{n}"))
            .spawn(move || {
                let error = serve(&socket, engine, receiver, &own_counters);
                // Without this worker, the dispatcher would silently drop a share of all flights.
                tracing::error!("tunnel: {error}");
                std::process::exit(1);
            })?;
        Ok(counters)
    };
    (0..config.threads).map(start).collect()
}

/// Processes packets until receiving fails; returns the error.
pub fn serve(
    socket: &Socket,
    mut engine: Engine,
    mut views: ViewReceiver,
    counters: &Counters,
) -> io::Error {
    let (mut receiver, mut sender, mut out) =
        (Receiver::default(), Sender::new(true), Outbox::default());
    loop {
        match receiver.receive(socket) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return error,
        }
        let view = views.view();
        let mut send = |out: &mut Outbox| {
            let unsent = sender.send(socket, out);
            if unsent > 0 {
                add(&counters.unsent, unsent);
            }
        };
        for (peer, datagram) in receiver.datagrams() {
            engine.process(view, peer, datagram, &mut out);
            if out.entries().len() >= SEND_BATCH {
                send(&mut out);
            }
        }
        send(&mut out);
    }
}

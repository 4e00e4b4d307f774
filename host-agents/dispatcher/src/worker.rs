//! A worker: one socket, one engine, one thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::{io, thread};

use anyhow::{Context as _, Result};
use socket2::Socket;

use crate::config::Config;
use crate::counts::{Counts, add};
use crate::engine::Engine;
use crate::outbox::Outbox;
use crate::udp::{Receiver, Sender, bind};
use crate::view::View;

/// Packets that wait for each other before they are sent. Trains of datagrams can bring two thousand at once, of which the first would wait for
/// all others; this many go as one where they go to one end.
const AT_ONCE: usize = 64;

/// The newest view, from who makes it to those who use it: they look at a number before each batch.
#[derive(Debug, Default)]
pub struct Views {
    number: AtomicU64,
    newest: RwLock<Option<Arc<View>>>,
    /// Those that somebody may still use: a large one is not freed by a worker, whose packets would wait.
    retired: Mutex<Vec<Arc<View>>>,
}

impl Views {
    /// Puts a view in the last one's place.
    pub fn publish(&self, view: Arc<View>) {
        let mut newest = self.newest.write().unwrap_or_else(PoisonError::into_inner);
        let last = newest.replace(view);
        drop(newest);
        self.number.fetch_add(1, Ordering::Release);
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.extend(last);
        retired.retain(|view| Arc::strong_count(view) > 1);
    }

    /// A follower that has not seen any.
    pub fn follow(self: &Arc<Self>) -> Follower {
        Follower {
            views: self.clone(),
            number: 0,
            view: None,
        }
    }
}

/// One user of the newest view.
#[derive(Debug)]
pub struct Follower {
    views: Arc<Views>,
    number: u64,
    view: Option<Arc<View>>,
}

impl Follower {
    /// The newest view; nothing before the first.
    #[inline]
    pub fn view(&mut self) -> Option<&View> {
        let number = self.views.number.load(Ordering::Acquire);
        if number != self.number {
            self.number = number;
            self.view.clone_from(
                &self
                    .views
                    .newest
                    .read()
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
        self.view.as_deref()
    }
}

/// Starts the workers of `config`; the counters of each.
///
/// # Errors
/// If the tunnel's end cannot be opened, or a thread not be started.
pub fn start(config: &Config, views: &Arc<Views>) -> Result<Vec<Arc<Counts>>> {
    let listen = *config.tunnel.listen.get_ref();
    let start = |n| {
        let socket =
            bind(listen).with_context(|| format!("tunnel.listen: cannot open {listen}"))?;
        let counts = Arc::new(Counts::default());
        let engine = Engine::new(&config.limits, counts.clone());
        let (follower, own) = (views.follow(), counts.clone());
        thread::Builder::new()
            .name(format!("worker-{n}"))
            .spawn(move || {
                let error = serve(&socket, engine, follower, &own);
                // Half a dispatcher would drop half of all flights in silence.
                tracing::error!("tunnel: {error}");
                std::process::exit(1);
            })?;
        Ok(counts)
    };
    (0..config.threads).map(start).collect()
}

/// Serves until receiving fails; why it did.
pub fn serve(
    socket: &Socket,
    mut engine: Engine,
    mut follower: Follower,
    counts: &Counts,
) -> io::Error {
    let (mut receiver, mut sender, mut out) =
        (Receiver::default(), Sender::new(false), Outbox::default());
    loop {
        match receiver.receive(socket) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return error,
        }
        let view = follower.view();
        let mut send = |out: &mut Outbox| {
            let unsent = sender.send(socket, out);
            if unsent > 0 {
                add(&counts.unsent, unsent);
            }
        };
        for (peer, datagram) in receiver.datagrams() {
            engine.take(view, peer, datagram, &mut out);
            if out.entries().len() >= AT_ONCE {
                send(&mut out);
            }
        }
        send(&mut out);
    }
}

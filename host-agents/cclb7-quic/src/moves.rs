// SPDX-License-Identifier: Apache-2.0
//! Moves of clients to another address of this server, and their hand-over to another server, at any time
//! (docs/moves.md).
//!
//! The order file says where clients should be. [`Moves`] announces that to each client, at most `per_second` of them in a
//! second, and counts the outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, Result};
use frontage_quic::announce::{AnnounceError, Announcer};
use frontage_quic::keys::Keys;
use frontage_quic::migration::LocalAddress;
use frontage_quic_wire::server_addresses::Announcement;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

mod config;
mod order;

pub use config::Config;
pub use order::CookieAddress;
use order::Order;

/// Time for a client to migrate after it has acknowledged the address.
const MOVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Outcomes of the announcements of one kind.
#[derive(Debug, Default)]
pub struct Counts {
    /// Clients to which addresses were announced.
    pub offered: AtomicU64,
    /// Clients that have migrated, or that have left for the other server after their last request.
    pub completed: AtomicU64,
    /// Clients that do not understand the announcement.
    pub unsupported: AtomicU64,
    /// Clients that did not acknowledge the announcement, or did not act in time.
    pub failed: AtomicU64,
}

/// Moves and hand-overs of one server's clients.
pub struct Moves {
    config: Config,
    /// Prefix and port of the cookie addresses.
    cookie: Option<CookieAddress>,
    keys: Option<Arc<Keys>>,
    order: watch::Sender<Option<Arc<Order>>>,
    /// When the next announcement may be sent.
    next_turn: Mutex<Instant>,
    moves: Counts,
    hand_overs: Counts,
}

impl Moves {
    /// Read the order file. `keys` and `cookie` make the address for which the word `cookie` stands in it.
    ///
    /// # Errors
    /// If the order file is invalid.
    pub fn new(
        config: Config,
        keys: Option<Arc<Keys>>,
        cookie: Option<CookieAddress>,
    ) -> Result<Self> {
        let moves = Self {
            config,
            cookie,
            keys,
            order: watch::Sender::new(None),
            next_turn: Mutex::new(Instant::now()),
            moves: Counts::default(),
            hand_overs: Counts::default(),
        };
        moves.reload()?;
        Ok(moves)
    }

    /// Read the order file again, and carry out the order if it has changed.
    ///
    /// # Errors
    /// If the order file is invalid. The previous order stays in force then.
    pub fn reload(&self) -> Result<()> {
        let path = self.config.order.as_path();
        let cookie = self.keys.as_ref().zip(self.cookie.as_ref());
        let cookie = cookie.map(|(keys, cookie)| cookie.with(keys));
        let order = order::load(path, cookie).context("moves.order")?;
        self.order.send_if_modified(|current| {
            let is_new = current.as_deref() != order.as_ref();
            if is_new {
                *current = order.map(Arc::new);
            }
            is_new
        });
        Ok(())
    }

    /// Return the counts of `announcement`.
    pub const fn counts(&self, announcement: Announcement) -> &Counts {
        match announcement {
            Announcement::Move => &self.moves,
            Announcement::HandOver => &self.hand_overs,
        }
    }

    /// Carry out the order, and each later one, for the client of `connection`. `local` returns the address of the server
    /// that the client uses. Return once the client has been handed over: it should send no more requests.
    pub async fn run(
        &self,
        connection: &noq::Connection,
        announcer: &Announcer,
        local: impl Fn() -> LocalAddress,
    ) -> HandOver<'_> {
        let mut orders = self.order.subscribe();
        orders.mark_changed();
        loop {
            if orders.changed().await.is_err() {
                return std::future::pending().await;
            }
            let Some(order) = orders.borrow_and_update().clone() else {
                continue;
            };
            if self.is_carried_out(&order, local()) {
                continue;
            }
            self.wait_for_turn().await;
            let counts = self.counts(order.announcement);
            counts.offered.fetch_add(1, Relaxed);
            let announced = announcer.announce(connection, order.announcement, &order.addresses);
            let announced = announced.await;
            match (&announced, order.announcement) {
                (Err(AnnounceError::Unsupported), _) => &counts.unsupported,
                (Err(_), _) => &counts.failed,
                (Ok(()), Announcement::Move) => {
                    match timeout(MOVE_TIMEOUT, announcer.moved()).await {
                        Ok(()) => &counts.completed,
                        Err(_) => &counts.failed,
                    }
                }
                (Ok(()), Announcement::HandOver) => {
                    announcer.stop_watching();
                    return HandOver(Some(counts));
                }
            }
            .fetch_add(1, Relaxed);
            announcer.stop_watching();
            if order.announcement == Announcement::HandOver {
                // GOAWAY still makes the client open its next connection, at the address that it knows.
                return HandOver(None);
            }
            sleep(Duration::from_secs(self.config.min_interval_seconds)).await;
        }
    }

    /// Return whether a client at `local` is already where it should be.
    fn is_carried_out(&self, order: &Order, local: LocalAddress) -> bool {
        let is_at = |ip| order.addresses.iter().any(|address| address.ip() == ip);
        order.announcement == Announcement::Move
            && match local {
                LocalAddress::Plain(ip) => is_at(ip),
                LocalAddress::Cookie(epoch) => order.cookie_epoch == Some(epoch),
                LocalAddress::Vip | LocalAddress::Tunnel(_) => false,
            }
    }

    /// Wait until another announcement may be sent.
    async fn wait_for_turn(&self) {
        let turn = {
            let mut next = self.next_turn.lock();
            let turn = (*next).max(Instant::now());
            *next = turn + Duration::from_secs(1) / self.config.per_second.get();
            turn
        };
        sleep_until(turn).await;
    }
}

/// A client that knows the next server, or at least that it should leave this one.
pub struct HandOver<'a>(Option<&'a Counts>);

impl HandOver<'_> {
    /// Count the hand-over. It is completed if the client has closed the connection itself.
    pub fn end(self, is_completed: bool) {
        if let Some(counts) = self.0 {
            let counter = match is_completed {
                true => &counts.completed,
                false => &counts.failed,
            };
            counter.fetch_add(1, Relaxed);
        }
    }
}

//! What the controller and the replicas told: one state, from which the workers' views are made.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use crate::measurements::{Measured, Measurements, OfSite};
use crate::message::{Difference, Sizes, Whole};
use crate::replicas::{Heartbeat, Replicas, Shown};
use crate::table::Table;
use crate::view::View;
use crate::worker::Views;

#[derive(Debug, Default)]
struct State {
    table: Option<Arc<Table>>,
    replicas: Replicas,
    measurements: Measurements,
}

/// Why a difference was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is from another version than this one; nothing before the first table.
    Version(Option<u64>),
    /// It contradicts itself, or what is there.
    Wrong(String),
}

/// State and views.
#[derive(Debug)]
pub struct Control {
    own: IpAddr,
    peers: Vec<IpAddr>,
    state: Mutex<State>,
    views: Arc<Views>,
    /// A heartbeat may have become the next that expires.
    beaten: Notify,
}

impl Control {
    /// Of the dispatcher whose tunnels end at `own` and whose site's switches are `peers`.
    pub fn new(own: IpAddr, peers: Vec<IpAddr>, views: Arc<Views>) -> Self {
        Self {
            own,
            peers,
            state: Mutex::default(),
            views,
            beaten: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, state: &State) {
        if let Some(table) = &state.table {
            let view = View::new(table.clone(), &state.replicas, &self.peers);
            self.views.publish(Arc::new(view));
        }
    }

    /// Takes a whole table in the last one's place.
    ///
    /// # Errors
    /// What contradicts itself, in words; nothing has changed then.
    pub fn replace(&self, whole: Whole) -> Result<Sizes, String> {
        let table = Table::new(whole, self.own)?;
        let mut state = self.state();
        let sizes = table.sizes();
        state.table = Some(Arc::new(table));
        self.publish(&state);
        Ok(sizes)
    }

    /// Takes a difference to the table.
    ///
    /// # Errors
    /// See [`Refused`]; nothing has changed then.
    pub fn change(&self, difference: Difference) -> Result<Sizes, Refused> {
        let mut state = self.state();
        let table = match &state.table {
            Some(table) if table.version == difference.from => table,
            other => return Err(Refused::Version(other.as_ref().map(|table| table.version))),
        };
        let table = table.with(difference, self.own).map_err(Refused::Wrong)?;
        let sizes = table.sizes();
        state.table = Some(Arc::new(table));
        self.publish(&state);
        Ok(sizes)
    }

    /// How large the table is, once there is one.
    pub fn sizes(&self) -> Option<Sizes> {
        self.state().table.as_ref().map(|table| table.sizes())
    }

    /// Takes a replica's heartbeat, with what it measured.
    ///
    /// # Errors
    /// What is wrong with it, in words; nothing has changed then.
    pub fn beat(&self, sid: u16, mut heartbeat: Heartbeat) -> Result<(), String> {
        let rtts = std::mem::take(&mut heartbeat.rtts);
        let mut state = self.state();
        state
            .replicas
            .beat(sid, heartbeat, Instant::now(), self.own)?;
        rtts.into_iter()
            .for_each(|measured| state.measurements.add(measured));
        self.publish(&state);
        self.beaten.notify_one();
        Ok(())
    }

    /// Forgets a replica; whether it was there.
    pub fn remove(&self, sid: u16) -> bool {
        let mut state = self.state();
        let was = state.replicas.remove(sid);
        if was {
            self.publish(&state);
        }
        was
    }

    /// All replicas.
    pub fn replicas(&self) -> Vec<Shown> {
        self.state().replicas.show(Instant::now())
    }

    /// Adds what was measured.
    pub fn measured(&self, measured: impl IntoIterator<Item = Measured>) {
        let mut state = self.state();
        measured.into_iter().for_each(|m| state.measurements.add(m));
    }

    /// Takes the measurements out; nothing before the first table, which says whose they are.
    pub fn take_measurements(&self) -> Option<Vec<OfSite>> {
        let mut state = self.state();
        let site = state.table.as_ref()?.site;
        Some(state.measurements.take(site))
    }

    /// Measurements that found no room.
    pub fn dropped_measurements(&self) -> u64 {
        self.state().measurements.dropped
    }

    /// Takes replicas out whose time is over, as it passes.
    pub async fn expire(&self) -> ! {
        loop {
            let next = self.state().replicas.next_expiry();
            match next {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at.into()) => {}
                    () = self.beaten.notified() => continue,
                },
                None => self.beaten.notified().await,
            }
            let mut state = self.state();
            if state.replicas.expire(Instant::now()) {
                self.publish(&state);
            }
        }
    }
}

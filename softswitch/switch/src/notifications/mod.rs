// SPDX-License-Identifier: Apache-2.0
//! BMv2's notifications of digests, idle entries and ports, over the wire protocol of nanomsg (publish and subscribe).
//!
//! Controllers that use Thrift, such as those of p4-utils, receive digests in this way. The buffers follow BMv2: a learn list
//! sends a message when its buffer is full or has waited long enough, and the same sample again only after the controller
//! has acknowledged it.

mod ageing;
mod header;
mod learning;
mod ports;
mod publisher;

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use softswitch_pipeline::{Digest, IdleEntry, Nanos, ParallelPipeline};
use tokio::sync::Notify;

use crate::address::NanomsgAddress;
use crate::dataplane::{PortStatus, SharedPipeline};

pub use learning::Lists;
use publisher::Publisher;

/// Interval at which the states of ports are compared, as in BMv2.
const PORT_INTERVAL: Duration = Duration::from_millis(200);

/// The notifications of a switch.
#[derive(Debug)]
pub struct Notifications {
    device_id: u64,
    publisher: Publisher,
    state: Mutex<State>,
    changed: Notify,
}

/// The state of the program that processes packets.
#[derive(Debug, Default)]
struct State {
    of: Weak<ParallelPipeline>,
    lists: Lists,
    ageing: ageing::Buffers,
}

impl State {
    /// Returns the state of a program: an empty one if it is new.
    fn of(&mut self, pipeline: &SharedPipeline) -> &mut Self {
        if !std::ptr::eq(self.of.as_ptr(), Arc::as_ptr(pipeline)) {
            *self = Self {
                of: Arc::downgrade(pipeline),
                ..Self::default()
            };
        }
        self
    }
}

impl Notifications {
    /// Binds the address; subscribers can connect afterwards.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub async fn bind(address: NanomsgAddress, device_id: u64) -> std::io::Result<Self> {
        Ok(Self {
            device_id,
            publisher: Publisher::bind(address).await?,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Returns the address for subscribers, with the actual port.
    pub fn address(&self) -> &NanomsgAddress {
        self.publisher.address()
    }

    /// Adds digests of a program, and sends the messages that they complete.
    pub fn learn(&self, pipeline: &SharedPipeline, digests: &[Digest], now: Nanos) {
        let program = pipeline.lock().program().clone();
        let infos = &program.info().digests;
        let mut state = self.state.lock();
        let lists = &mut state.of(pipeline).lists;
        for digest in digests {
            let Some(info) = infos.get(digest.id.index()) else {
                continue;
            };
            let sample = learning::sample(&info.fields, &digest.fields);
            if let Some(message) = lists.push(info.id, sample, now) {
                self.publisher.send(message.encode(self.device_id));
            }
        }
        self.changed.notify_one();
    }

    /// Changes the learn lists of a program.
    pub fn with_lists<R>(&self, pipeline: &SharedPipeline, f: impl FnOnce(&mut Lists) -> R) -> R {
        let result = f(&mut self.state.lock().of(pipeline).lists);
        self.changed.notify_one();
        result
    }

    /// Forgets what a program has sent; the settings of its learn lists stay.
    pub fn reset(&self, pipeline: &SharedPipeline) {
        let mut state = self.state.lock();
        let state = state.of(pipeline);
        state.lists.reset();
        state.ageing = ageing::Buffers::default();
    }

    /// Sends the idle entries of a program.
    pub fn age(&self, pipeline: &SharedPipeline, idle: &[IdleEntry]) {
        let program = pipeline.lock().program().clone();
        let tables = &program.info().tables;
        let idle = idle.iter().filter_map(|entry| {
            let table = tables.get(entry.table.index())?;
            Some((table.id, entry.handle))
        });
        for message in self.state.lock().of(pipeline).ageing.messages(idle) {
            self.publisher.send(message.encode(self.device_id));
        }
    }

    /// Sends the changes of the ports' states, which `ports` returns. It never ends.
    pub async fn serve_ports(&self, ports: impl Fn() -> Vec<PortStatus>) {
        let mut states = ports::States::default();
        loop {
            tokio::time::sleep(PORT_INTERVAL).await;
            let changes = states.update(&ports());
            if !changes.is_empty() {
                self.publisher.send(ports::encode(&changes, self.device_id));
            }
        }
    }

    /// Sends the buffers that have waited long enough. It never ends. `now` is the clock of [`learn`](Self::learn).
    pub async fn serve(&self, now: impl Fn() -> Nanos) {
        loop {
            let deadline = self.state.lock().lists.next_deadline();
            let wait = async {
                match deadline {
                    Some(at) => {
                        tokio::time::sleep(Duration::from_nanos(at.saturating_sub(now()))).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = wait => {}
            }
            for message in self.state.lock().lists.poll(now()) {
                self.publisher.send(message.encode(self.device_id));
            }
        }
    }
}

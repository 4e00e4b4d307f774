// SPDX-License-Identifier: Apache-2.0
//! The ports of the data plane, which the packet threads share.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{anyhow, bail};
use parking_lot::{Mutex, MutexGuard};
use softswitch_pipeline::Nanos;
use softswitch_queue::LinkConfig;

use super::counters::PortCounters;
use super::outlet::Outlet;
use super::port_queue::PortQueue;
use super::port_view::PortView;
use crate::port::Transmit;

/// Number of ports that can be added while the switch runs, including those that replace others.
const SPARE_SLOTS: usize = 1 << 16;

/// The value for "never" of a time that threads share.
pub(super) const NEVER: Nanos = Nanos::MAX;

/// A port.
pub(super) struct Port {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) counters: Arc<PortCounters>,
    /// The thread that serves its queue when a packet is due, and that runs the packets that recirculate at this port.
    pub(super) owner: usize,
    pub(super) outlet: Outlet,
    /// Held while a clone of the port is enqueued elsewhere, to keep the order of clones.
    pub(super) cloning: Mutex<()>,
    pub(super) is_up: AtomicBool,
    pub(super) is_attached: AtomicBool,
    /// The time of the queue's next event.
    next_event: AtomicU64,
    queue: Mutex<PortQueue>,
}

impl Port {
    pub(super) fn new(
        view: &PortView,
        transmitter: Box<dyn Transmit>,
        link: LinkConfig,
        seed: u64,
        owner: usize,
    ) -> Self {
        let counters = || Arc::clone(&view.counters);
        Self {
            number: view.number,
            name: view.name.clone(),
            counters: counters(),
            owner,
            outlet: Outlet::new(view.number, view.name.clone(), counters(), transmitter),
            cloning: Mutex::default(),
            is_up: AtomicBool::new(true),
            is_attached: AtomicBool::new(true),
            next_event: AtomicU64::new(NEVER),
            queue: Mutex::new(PortQueue::new(link, mix(seed, view.number))),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Acquire)
    }

    pub(super) fn is_attached(&self) -> bool {
        self.is_attached.load(Ordering::Acquire)
    }

    /// Returns the time of the queue's next event without waiting for the queue, or [`NEVER`].
    pub(super) fn next_event(&self) -> Nanos {
        self.next_event.load(Ordering::Acquire)
    }

    /// Locks the queue. A thread may wait here inside a pipeline, so it must not wait for a pipeline while it has a queue.
    pub(super) fn queue(&self) -> LockedQueue<'_> {
        LockedQueue {
            queue: self.queue.lock(),
            next_event: &self.next_event,
        }
    }
}

/// The queue of a port, whose next event the port publishes when it is unlocked.
pub(super) struct LockedQueue<'a> {
    queue: MutexGuard<'a, PortQueue>,
    next_event: &'a AtomicU64,
}

impl Deref for LockedQueue<'_> {
    type Target = PortQueue;

    fn deref(&self) -> &PortQueue {
        &self.queue
    }
}

impl DerefMut for LockedQueue<'_> {
    fn deref_mut(&mut self) -> &mut PortQueue {
        &mut self.queue
    }
}

impl Drop for LockedQueue<'_> {
    fn drop(&mut self) {
        let next = self.queue.next_event().unwrap_or(NEVER);
        // All threads look at it, so it should change rarely.
        if self.next_event.load(Ordering::Relaxed) != next {
            self.next_event.store(next, Ordering::Release);
        }
    }
}

/// The attached ports: their slots, by number.
pub(super) type SlotsByNumber = Arc<HashMap<u32, usize>>;

/// All ports, attached or not.
pub(super) struct Ports {
    slots: Box<[OnceLock<Box<Port>>]>,
    attached: Mutex<Attached>,
}

#[derive(Default)]
struct Attached {
    by_number: SlotsByNumber,
    /// Number of slots of attached and detached ports.
    used: usize,
}

impl Ports {
    /// Creates slots for these ports, and for others that are added later.
    pub(super) fn new(count: usize) -> Self {
        let slots = std::iter::repeat_with(OnceLock::new);
        Self {
            slots: slots.take(count + SPARE_SLOTS).collect(),
            attached: Mutex::default(),
        }
    }

    /// Adds a port, made for a slot, and returns the slot.
    ///
    /// # Errors
    /// If the port's number is in use, or all slots are.
    pub(super) fn add(
        &self,
        number: u32,
        make: impl FnOnce(usize) -> Port,
    ) -> anyhow::Result<usize> {
        let mut attached = self.attached.lock();
        if attached.by_number.contains_key(&number) {
            bail!("port {number} exists already: remove it first");
        }
        let slot = attached.used;
        let place = self.slots.get(slot);
        let place =
            place.ok_or_else(|| anyhow!("too many ports were added: restart the switch"))?;
        place.get_or_init(|| Box::new(make(slot)));
        attached.used += 1;
        Arc::make_mut(&mut attached.by_number).insert(number, slot);
        Ok(slot)
    }

    /// Removes the number of a port, and returns its slot.
    pub(super) fn remove(&self, number: u32) -> Option<usize> {
        Arc::make_mut(&mut self.attached.lock().by_number).remove(&number)
    }

    /// Returns the attached ports.
    pub(super) fn by_number(&self) -> SlotsByNumber {
        Arc::clone(&self.attached.lock().by_number)
    }

    /// Returns the port in a slot that has one.
    pub(super) fn get(&self, slot: usize) -> &Port {
        self.slots[slot].get().expect("a slot with a port")
    }

    /// Returns all ports with their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Port)> {
        let ports = self.slots.iter().map_while(OnceLock::get);
        ports.map(Box::as_ref).enumerate()
    }
}

/// Returns a port's seed. The finalizer of SplitMix64 makes the seeds of adjacent ports independent.
fn mix(seed: u64, port: u32) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(port) + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

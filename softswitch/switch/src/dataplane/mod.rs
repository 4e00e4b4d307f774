// SPDX-License-Identifier: Apache-2.0
//! The data plane: moves packets from ports through the pipeline and the queues to ports.
//!
//! The pipeline and the queues are one state machine (`switching.rs`) that processes one packet after the other, with any
//! number of threads: a thread locks it for a batch. Each thread receives on its own ports. It sends the resulting frames
//! after it has released the lock, because sending takes most of the time. Frames leave a port in the order in which the
//! state machine produced them (`outlet.rs`).

mod alarm;
mod clock;
pub mod counters;
mod engine;
mod observers;
mod outlet;
mod port_view;
mod shared;
mod switching;
mod worker;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};
use parking_lot::Mutex;
use prost::bytes::Bytes;
use softswitch_pipeline::{Digest, Nanos, Pipeline};
use tokio::sync::mpsc;
use tonic::Code;

use crate::port::{Receive, Transmit};
use clock::Clock;
use counters::SwitchCounters;
use softswitch_queue::LinkConfig;

pub use engine::{Ends, Engine};
pub use observers::Observers;
pub use port_view::PortView;

/// A pipeline that the data plane and the control plane share. Locks must be short.
pub type SharedPipeline = Arc<Mutex<Pipeline>>;

/// Maximum number of packet-outs that wait for the data plane.
const PACKET_OUT_BACKLOG: usize = 4096;

/// The control plane's handle of the data plane.
#[derive(Debug)]
pub struct Handle {
    clock: Clock,
    cpu_port: Option<u32>,
    counters: SwitchCounters,
    /// One per thread.
    wakes: Vec<EventFd>,
    stop: AtomicBool,
    pipeline: Mutex<Option<SharedPipeline>>,
    /// Incremented with every new pipeline, so that the data plane can check for one without a lock.
    version: AtomicU64,
    packet_outs: Mutex<VecDeque<Vec<u8>>>,
    observers: Observers,
}

/// A message from the data plane to the control plane.
#[derive(Debug)]
pub enum Event {
    /// A packet to the CPU port.
    PacketIn(SharedPipeline, Bytes),
    /// Digests of a program.
    Digests(SharedPipeline, Vec<Digest>),
}

/// A port to attach.
pub struct PortSetup {
    /// The port's number.
    pub number: u32,
    /// The interface's name, for messages.
    pub name: String,
    /// The receiving side.
    pub receiver: Box<dyn Receive>,
    /// The sending side.
    pub transmitter: Box<dyn Transmit>,
    /// The outgoing link.
    pub link: LinkConfig,
}

/// The configuration of a data plane.
pub struct Setup {
    /// The ports.
    pub ports: Vec<PortSetup>,
    /// Number of packet threads; the ports are distributed among them.
    pub threads: NonZeroUsize,
    /// The port for packet-in and packet-out.
    pub cpu_port: Option<u32>,
    /// Seed of the links' losses.
    pub seed: u64,
    /// The channel for packets and digests to the control plane.
    pub events: mpsc::Sender<Event>,
    /// The outputs for traces of packets.
    pub observers: Observers,
}

/// Why a packet-out was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketOutError {
    /// There is no CPU port.
    #[error("packet-out is disabled: start the switch with --cpu-port")]
    NoCpuPort,
    /// Too many packet-outs are waiting.
    #[error("too many packet-outs are waiting")]
    Busy,
}

impl PacketOutError {
    /// Returns the canonical code.
    pub fn code(self) -> Code {
        match self {
            Self::NoCpuPort => Code::FailedPrecondition,
            Self::Busy => Code::ResourceExhausted,
        }
    }
}

impl Handle {
    fn new(
        cpu_port: Option<u32>,
        threads: NonZeroUsize,
        observers: Observers,
    ) -> nix::Result<Self> {
        let wake = |_| EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        Ok(Self {
            clock: Clock::start(),
            cpu_port,
            counters: SwitchCounters::default(),
            wakes: (0..threads.get()).map(wake).collect::<nix::Result<_>>()?,
            stop: AtomicBool::new(false),
            pipeline: Mutex::default(),
            version: AtomicU64::new(0),
            packet_outs: Mutex::default(),
            observers,
        })
    }

    /// Returns the switch's time.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Returns the counters of the whole switch.
    pub fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// Sets the pipeline for packets that arrive from now on. Packets in queues leave through the pipeline
    /// through which they entered.
    pub fn set_pipeline(&self, pipeline: SharedPipeline) {
        *self.pipeline.lock() = Some(pipeline);
        self.version.fetch_add(1, Ordering::Release);
        self.counters.programs.add(1);
        self.wake();
    }

    /// Sends a packet into the pipeline through the CPU port.
    ///
    /// # Errors
    /// If there is no such port, or too many packets are waiting.
    pub fn packet_out(&self, frame: Vec<u8>) -> Result<(), PacketOutError> {
        if self.cpu_port.is_none() {
            return Err(PacketOutError::NoCpuPort);
        }
        let mut waiting = self.packet_outs.lock();
        if waiting.len() >= PACKET_OUT_BACKLOG {
            return Err(PacketOutError::Busy);
        }
        waiting.push_back(frame);
        drop(waiting);
        self.wake();
        Ok(())
    }

    /// Stops the data plane's threads.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wakes.iter().for_each(wake);
    }

    /// Writes the traces of a pipeline's packets, if enabled.
    fn write_trace(&self, pipeline: &mut Pipeline) {
        if self.observers.exist() {
            let lost = self.observers.write(&pipeline.take_trace());
            self.counters.trace_lost.add(lost);
        }
    }

    /// Wakes the first thread, which serves the control plane.
    fn wake(&self) {
        wake(&self.wakes[0]);
    }
}

fn wake(thread: &EventFd) {
    // It fails only if the counter would overflow, and then the thread is awake anyway.
    let _ = thread.write(1);
}

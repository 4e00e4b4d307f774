//! The data plane: packets from ports through the pipeline and the queues to ports.
//!
//! Pipeline and queues are one machine (`switching.rs`) that handles one packet after another, whatever
//! the number of threads: a thread locks it for a batch. Each thread takes frames from ports of its own,
//! and sends what came of them when it has let go, which is where most of the time goes. Frames leave a
//! port in the order in which the machine made them (`outlet.rs`).

mod alarm;
mod clock;
pub mod counters;
mod engine;
mod outlet;
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
use crate::trace::TraceLog;
use clock::Clock;
use counters::SwitchCounters;
use softswitch_queue::LinkConfig;

pub use engine::{Ends, Engine, PortView};

/// A pipeline that packets and the control plane share. Whoever locks it lets go soon.
pub type SharedPipeline = Arc<Mutex<Pipeline>>;

/// Packets from controllers that wait for the data plane.
const PACKET_OUT_BACKLOG: usize = 4096;

/// What the control plane holds of the data plane.
#[derive(Debug)]
pub struct Handle {
    clock: Clock,
    cpu_port: Option<u32>,
    counters: SwitchCounters,
    /// One for each thread.
    wakes: Vec<EventFd>,
    stop: AtomicBool,
    pipeline: Mutex<Option<SharedPipeline>>,
    /// Incremented with every new pipeline, so that the data plane need not lock to look.
    version: AtomicU64,
    packet_outs: Mutex<VecDeque<Vec<u8>>>,
    trace: Option<TraceLog>,
}

/// What the data plane sends to the control plane.
#[derive(Debug)]
pub enum Event {
    /// A packet to the CPU port.
    PacketIn(SharedPipeline, Bytes),
    /// Digests of a program.
    Digests(SharedPipeline, Vec<Digest>),
}

/// A port to be attached.
pub struct PortSetup {
    /// Its number.
    pub number: u32,
    /// Its interface's name, for messages.
    pub name: String,
    /// Where frames enter.
    pub receiver: Box<dyn Receive>,
    /// Where frames leave.
    pub transmitter: Box<dyn Transmit>,
    /// Its outgoing link.
    pub link: LinkConfig,
}

/// What a data plane is made of.
pub struct Setup {
    /// The ports.
    pub ports: Vec<PortSetup>,
    /// Threads that move packets; the ports are dealt out to them.
    pub threads: NonZeroUsize,
    /// The port by which packets go to and come from controllers.
    pub cpu_port: Option<u32>,
    /// Decides which frames links lose.
    pub seed: u64,
    /// Where packets and digests for the control plane go.
    pub events: mpsc::Sender<Event>,
    /// Where traces of packets go, if they are wanted.
    pub trace: Option<TraceLog>,
}

/// Why a packet from a controller was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketOutError {
    /// No port for it.
    #[error("the switch was started without --cpu-port, so it takes no packets from controllers")]
    NoCpuPort,
    /// Too many.
    #[error("too many packet-outs are waiting")]
    Busy,
}

impl PacketOutError {
    /// The canonical code.
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
        trace: Option<TraceLog>,
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
            trace,
        })
    }

    /// The switch's time.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Counters of the whole switch.
    pub fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// Lets packets that arrive from now on run through another pipeline. Those that wait in queues
    /// leave by the one that they came in by.
    pub fn set_pipeline(&self, pipeline: SharedPipeline) {
        *self.pipeline.lock() = Some(pipeline);
        self.version.fetch_add(1, Ordering::Release);
        self.counters.programs.add(1);
        self.wake();
    }

    /// Sends a packet into the pipeline by the CPU port.
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

    /// Ends the data plane's threads.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wakes.iter().for_each(wake);
    }

    /// Writes what a pipeline's packets went through, if that is wanted.
    fn write_trace(&self, pipeline: &mut Pipeline) {
        if let Some(trace) = &self.trace {
            let lost = trace.write(&pipeline.take_trace());
            self.counters.trace_lost.add(lost);
        }
    }

    /// Wakes the thread that serves the control plane: the first.
    fn wake(&self) {
        wake(&self.wakes[0]);
    }
}

fn wake(thread: &EventFd) {
    // It fails only if the counter would overflow; then the thread is awake anyway.
    let _ = thread.write(1);
}

// SPDX-License-Identifier: Apache-2.0
//! The data plane: moves packets from ports through the pipeline and the queues to ports.
//!
//! Each thread receives on its own ports, and takes a batch of packets through the whole switch (`switching.rs`): ingress,
//! the queue of the egress port, egress, link. Threads run packets of a program at the same time in lanes of its pipeline if
//! the program allows it. Otherwise, one thread at a time is in the pipeline. A thread that has a queue runs the packets that
//! leave it through egress, one after the other, so frames leave a port in the order of its queue (`port.rs`,
//! `port_queue.rs`). The thread sends them after the batch (`outlet.rs`).

mod alarm;
mod captures;
mod clock;
pub mod counters;
mod current;
mod engine;
mod entrance;
mod observers;
mod outlet;
mod packet_stream;
mod port;
mod port_control;
mod port_queue;
mod port_view;
mod queue_limit;
mod shared;
mod slot_set;
mod switching;
mod worker;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use parking_lot::Mutex;
use prost::bytes::Bytes;
use softswitch_pipeline::{Digest, Nanos, ParallelPipeline, Pipeline, Program, Trace};
use tokio::sync::mpsc;
use tonic::Code;

use crate::port::{Receive, Transmit};
pub use clock::Clock;
use counters::SwitchCounters;
use softswitch_queue::LinkConfig;

pub use captures::{Captures, Sought, parse as parse_value};
pub use engine::{Ends, Engine};
pub use observers::Observers;
pub use packet_stream::{PacketStream, StreamPacket};
pub use port_control::PortControl;
pub use port_view::{PortStatus, PortView};
pub use queue_limit::QueueLimit;

/// A pipeline that the data plane and the control plane share. The control plane should lock it only for a short time, because
/// packets wait.
pub type SharedPipeline = Arc<ParallelPipeline>;

/// Maximum number of packet-outs that wait for the data plane.
const PACKET_OUT_BACKLOG: usize = 4096;

/// Pause before a further attempt to pass a packet to a data plane with too many of them.
const FULL_STREAM_PAUSE: Duration = Duration::from_millis(1);

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
    /// Incremented with every new pipeline and every change of ports, so that the data plane can check for one without a
    /// lock.
    version: AtomicU64,
    packet_outs: Mutex<VecDeque<Vec<u8>>>,
    observers: Observers,
    packet_stream: Option<PacketStream>,
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
    /// The clock that packets see.
    pub clock: Clock,
    /// The ports.
    pub ports: Vec<PortSetup>,
    /// Number of packet threads, among which the ports are distributed.
    pub threads: NonZeroUsize,
    /// The port for packet-in and packet-out.
    pub cpu_port: Option<u32>,
    /// Seed of the links' losses.
    pub seed: u64,
    /// The channel for packets and digests to the control plane.
    pub events: mpsc::Sender<Event>,
    /// The outputs for traces of packets.
    pub observers: Observers,
    /// The client's packets, if they replace network interfaces.
    pub packet_stream: Option<PacketStream>,
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
        clock: Clock,
        cpu_port: Option<u32>,
        threads: NonZeroUsize,
        observers: Observers,
        packet_stream: Option<PacketStream>,
    ) -> nix::Result<Self> {
        let wake = |_| EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        Ok(Self {
            clock,
            cpu_port,
            counters: SwitchCounters::default(),
            wakes: (0..threads.get()).map(wake).collect::<nix::Result<_>>()?,
            stop: AtomicBool::new(false),
            pipeline: Mutex::default(),
            version: AtomicU64::new(0),
            packet_outs: Mutex::default(),
            observers,
            packet_stream,
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
        self.save_coverage();
        if self.observers.coverage.is_some() {
            pipeline.lock().set_coverage(true);
        }
        self.report_obstacles(pipeline.lock().program());
        *self.pipeline.lock() = Some(pipeline);
        self.counters.programs.add(1);
        self.look_again();
    }

    /// Logs why threads cannot run packets of a program at the same time, if so.
    fn report_obstacles(&self, program: &Program) {
        let parallelism = program.parallelism();
        if self.wakes.len() > 1 && !parallelism.is_parallel() {
            let obstacles = parallelism.obstacles.join("; ");
            tracing::info!("the packet threads run one packet after the other: {obstacles}");
        }
    }

    /// Returns the pipeline for packets that arrive now.
    fn pipeline(&self) -> Option<SharedPipeline> {
        self.pipeline.lock().clone()
    }

    /// Adds the counts of the current pipeline, which begins to count anew, to the file of `--coverage`, if there is one.
    pub fn save_coverage(&self) {
        let (Some(file), Some(pipeline)) = (&self.observers.coverage, self.pipeline()) else {
            return;
        };
        // Packets do not wait for the file.
        let coverage = {
            let mut pipeline = pipeline.lock();
            let coverage = pipeline.coverage();
            pipeline.set_coverage(true);
            coverage
        };
        if let Some(coverage) = coverage {
            file.add(&coverage);
        }
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

    /// Lets a client take the packets that ports send; returns `None` if there is another one.
    pub fn open_packet_stream(&self) -> Option<mpsc::Receiver<StreamPacket>> {
        self.packet_stream.as_ref()?.open()
    }

    /// Receives a client's packet on its port, as soon as not too many are waiting.
    pub async fn receive_packet(&self, mut packet: StreamPacket) {
        let Some(stream) = &self.packet_stream else {
            return;
        };
        while let Err(refused) = stream.add(packet) {
            packet = refused;
            tokio::time::sleep(FULL_STREAM_PAUSE).await;
        }
        self.wake();
    }

    /// Ends a client's stream when its packets have been processed.
    pub async fn close_packet_stream(&self) {
        if let Some(stream) = &self.packet_stream {
            let processed = stream.processed();
            self.wake();
            // The data plane may have stopped.
            let _ = processed.await;
            stream.close();
        }
    }

    /// Sets the state of a client's port.
    pub fn set_port_up(&self, port: u32, is_up: bool) {
        if let Some(stream) = &self.packet_stream {
            stream.set_port_up(port, is_up);
        }
        if let Some(pipeline) = self.pipeline() {
            pipeline.lock().set_port_up(port, is_up);
        }
        // The state of a port can start packet generators.
        self.wake();
    }

    /// Starts to follow a packet; returns `None` if another packet is being followed.
    pub fn start_capture(&self, sought: Sought) -> Option<mpsc::Receiver<Trace>> {
        let passes = self.observers.captures.start(sought)?;
        self.look_again();
        Some(passes)
    }

    /// Ends the capture.
    pub fn end_capture(&self) {
        self.observers.captures.end();
        self.look_again();
    }

    /// Lets the threads look again at the pipeline, the ports, and whether packets must be traced.
    fn look_again(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.wake();
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

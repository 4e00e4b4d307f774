// SPDX-License-Identifier: Apache-2.0
//! The P4Runtime device: its configs, its controllers, and the messages to and from them.

mod events;
mod listener;
mod requests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use softswitch_pipeline::PipeSet;
use tokio::sync::{Notify, mpsc};
use tonic::Status;

use super::arbitration::{Arbitration, ClientId, Notice};
use super::deployment::{Deployment, LoadedProgram, Target};
use super::digest::DigestBuffers;
use super::error::{NO_PIPELINE, P4Error, P4Result};
use super::role::Role;
use crate::dataplane::Handle;
use crate::notifications::Notifications;
use crate::proto::p4::v1::{
    MasterArbitrationUpdate, StreamMessageResponse, stream_message_response::Update as Message,
};

pub use listener::EventListener;

/// Maximum number of packets, digests and time-outs that wait for a controller; further ones are dropped.
const STREAM_BACKLOG: usize = 8192;

/// A P4Runtime device. Its methods need neither sockets nor an async runtime, and may block.
#[derive(Debug)]
pub struct Device {
    /// The primary controllers.
    pub arbitration: Mutex<Arbitration>,
    /// The data plane.
    pub dataplane: Arc<Handle>,
    /// Held during a batch, so that a new primary is notified only after the batch.
    writes: Mutex<()>,
    /// Digests that are being collected or sent.
    pub digests: Mutex<DigestBuffers>,
    /// BMv2's notifications, if enabled.
    pub notifications: Option<Notifications>,
    /// Another control plane that receives events.
    listener: Option<Arc<dyn EventListener>>,
    target: Target,
    configs: RwLock<Configs>,
    changed: Notify,
    streams: Mutex<HashMap<ClientId, StreamSender>>,
    next_client: AtomicU64,
}

#[derive(Debug, Default)]
struct Configs {
    /// The committed config, which processes packets.
    committed: Option<Arc<Deployment>>,
    /// The saved config, which reads and writes refer to until it is committed.
    saved: Option<Arc<Deployment>>,
    /// The program without P4Info that processes packets while no config is committed.
    bare: Option<Arc<Deployment>>,
}

/// The sending ends of one controller's messages.
#[derive(Debug, Clone)]
pub struct StreamSender {
    /// Arbitration and errors: few, and never dropped.
    pub control: mpsc::UnboundedSender<Result<StreamMessageResponse, Status>>,
    /// All other messages: many, and dropped if the controller is too slow.
    pub bulk: mpsc::Sender<StreamMessageResponse>,
}

/// The receiving ends of one controller's messages.
#[derive(Debug)]
pub struct StreamReceiver {
    /// See [`StreamSender::control`].
    pub control: mpsc::UnboundedReceiver<Result<StreamMessageResponse, Status>>,
    /// See [`StreamSender::bulk`].
    pub bulk: mpsc::Receiver<StreamMessageResponse>,
}

impl Device {
    /// Creates a device without pipeline config and controllers.
    pub fn new(
        id: u64,
        dataplane: Arc<Handle>,
        target: Target,
        notifications: Option<Notifications>,
        listener: Option<Arc<dyn EventListener>>,
    ) -> Self {
        Self {
            arbitration: Mutex::new(Arbitration::new(id)),
            dataplane,
            writes: Mutex::default(),
            digests: Mutex::default(),
            notifications,
            listener,
            target,
            configs: RwLock::default(),
            changed: Notify::new(),
            streams: Mutex::default(),
            next_client: AtomicU64::new(1),
        }
    }

    /// Returns the deployment that reads and writes refer to.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if no config has been set.
    pub fn deployment(&self) -> Result<Arc<Deployment>, Status> {
        let configs = self.configs.read();
        let current = configs.saved.as_ref().or(configs.committed.as_ref());
        current
            .cloned()
            .ok_or_else(|| Status::failed_precondition(NO_PIPELINE))
    }

    /// Returns the deployment that processes packets, if a config has been committed.
    pub fn committed(&self) -> Option<Arc<Deployment>> {
        self.configs.read().committed.clone()
    }

    /// Returns the deployment that processes packets, with or without P4Info.
    pub fn running(&self) -> Option<Arc<Deployment>> {
        let configs = self.configs.read();
        configs.committed.clone().or_else(|| configs.bare.clone())
    }

    /// Returns the number of pipes for programs for Tofino.
    pub fn pipes(&self) -> u32 {
        self.target.options.pipes
    }

    /// Checks that the device has the pipes that a program needs.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it has fewer.
    pub fn check_pipes(&self, program: &LoadedProgram) -> P4Result<()> {
        let checked = self.target.check_pipes(&program.program);
        checked.map_err(P4Error::invalid)
    }

    /// Returns a program without P4Info in its initial state.
    pub fn deployment_of(&self, program: LoadedProgram) -> Deployment {
        Deployment::without_p4info(program, &self.target)
    }

    /// Returns programs without P4Info in their initial state, which run in different pipes.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a pipe does not have exactly one program, or the programs are not for the same chip.
    pub fn deployments_of(
        &self,
        programs: Vec<(LoadedProgram, PipeSet)>,
    ) -> P4Result<Vec<Deployment>> {
        Deployment::of_pipes(programs, &self.target)
    }

    /// Processes packets by a program without P4Info. P4Runtime then has no config.
    pub fn run(&self, deployment: Arc<Deployment>) {
        let _writing = self.writes.lock();
        let mut configs = self.configs.write();
        self.dataplane
            .set_pipeline(Arc::clone(deployment.pipeline()));
        *configs = Configs {
            bare: Some(deployment),
            ..Configs::default()
        };
        *self.digests.lock() = DigestBuffers::default();
        self.changed.notify_one();
    }

    /// Returns the device's id.
    pub fn id(&self) -> u64 {
        self.arbitration.lock().device_id()
    }

    /// Registers a new stream.
    pub fn open_stream(&self) -> (ClientId, StreamSender, StreamReceiver) {
        let client = ClientId(self.next_client.fetch_add(1, Ordering::Relaxed));
        let (control, control_rx) = mpsc::unbounded_channel();
        let (bulk, bulk_rx) = mpsc::channel(STREAM_BACKLOG);
        let sender = StreamSender { control, bulk };
        self.streams.lock().insert(client, sender.clone());
        let receiver = StreamReceiver {
            control: control_rx,
            bulk: bulk_rx,
        };
        (client, sender, receiver)
    }

    /// Removes a stream, and notifies the others if it was a primary's.
    pub fn close_stream(&self, client: ClientId) {
        self.streams.lock().remove(&client);
        // The lock is held until all notices are sent, so that their order is right.
        let mut arbitration = self.arbitration.lock();
        for notice in arbitration.disconnect(client) {
            self.notify(notice);
        }
    }

    /// Handles an arbitration update.
    ///
    /// # Errors
    /// The status with which the stream must end.
    pub fn arbitrate(
        &self,
        client: ClientId,
        update: &MasterArbitrationUpdate,
    ) -> Result<(), Status> {
        let to_primary = {
            let mut arbitration = self.arbitration.lock();
            let notices = arbitration.update(client, update)?;
            let is_primary = |notice: &Notice| arbitration.is_primary(notice.0);
            let (to_primary, to_others): (Vec<_>, Vec<_>) =
                notices.into_iter().partition(is_primary);
            to_others.into_iter().for_each(|notice| self.notify(notice));
            to_primary
        };
        if !to_primary.is_empty() {
            // Writes of the previous primary that have begun are finished first.
            drop(self.writes.lock());
            // The new primary does not know which digests the previous one has received.
            self.digests.lock().forget_sent();
            to_primary
                .into_iter()
                .for_each(|notice| self.notify(notice));
        }
        Ok(())
    }

    fn notify(&self, (client, update): Notice) {
        if let Some(stream) = self.streams.lock().get(&client) {
            // The controller may have disconnected.
            let _ = stream
                .control
                .send(Ok(response(Message::Arbitration(update))));
        }
    }

    /// Sends a message to the primary of every role for which `message` returns one; returns the number of primaries whose
    /// queue was full.
    pub fn send_to_primaries(&self, message: impl Fn(&Role) -> Option<Message>) -> u64 {
        let primaries = self.arbitration.lock().primaries();
        let streams = self.streams.lock();
        let full = primaries.iter().filter(|(client, role)| {
            let Some((stream, message)) = streams.get(client).zip(message(role)) else {
                return false;
            };
            let sent = stream.bulk.try_send(response(message));
            matches!(sent, Err(mpsc::error::TrySendError::Full(_)))
        });
        full.count() as u64
    }
}

/// Builds a stream message.
pub fn response(update: Message) -> StreamMessageResponse {
    StreamMessageResponse {
        update: Some(update),
    }
}

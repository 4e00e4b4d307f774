//! The device that controllers see: its configs, its controllers, and what flows to and from them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use prost::bytes::Bytes;
use softswitch_pipeline::{Digest, Options};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tonic::Status;

use super::arbitration::{Arbitration, ClientId, Notice};
use super::deployment::Deployment;
use super::digest::DigestBuffers;
use super::error::{NO_PIPELINE, P4Error};
use crate::dataplane::{Event, Handle, SharedPipeline};
use crate::proto::p4::v1::{
    ForwardingPipelineConfig, IdleTimeoutNotification, MasterArbitrationUpdate, PacketIn,
    SetForwardingPipelineConfigRequest, StreamMessageResponse,
    set_forwarding_pipeline_config_request::Action, stream_message_response::Update as Message,
};

/// Packets, digests and time-outs that wait for a controller to take them; more are dropped.
const STREAM_BACKLOG: usize = 8192;

/// How often idle entries are looked for, where a table has idle time-outs.
const IDLE_SCAN: Duration = Duration::from_millis(50);

/// A P4Runtime device.
#[derive(Debug)]
pub struct Device {
    /// Who is primary.
    pub arbitration: Mutex<Arbitration>,
    /// The data plane.
    pub dataplane: Arc<Handle>,
    /// Held while a batch is written, so that a new primary is told only when it is done.
    pub writes: tokio::sync::Mutex<()>,
    /// Digests on their way.
    pub digests: Mutex<DigestBuffers>,
    options: Options,
    configs: RwLock<Configs>,
    changed: Notify,
    streams: Mutex<HashMap<ClientId, StreamSender>>,
    next_client: AtomicU64,
}

#[derive(Debug, Default)]
struct Configs {
    /// Packets run through it.
    committed: Option<Arc<Deployment>>,
    /// Reads and writes go to it until it is committed.
    saved: Option<Arc<Deployment>>,
}

/// Where messages to one controller go.
#[derive(Debug, Clone)]
pub struct StreamSender {
    /// Few and never dropped: arbitration, errors.
    pub control: mpsc::UnboundedSender<Result<StreamMessageResponse, Status>>,
    /// Many, dropped if the controller is too slow.
    pub bulk: mpsc::Sender<StreamMessageResponse>,
}

/// Where one controller's messages come from.
#[derive(Debug)]
pub struct StreamReceiver {
    /// See [`StreamSender::control`].
    pub control: mpsc::UnboundedReceiver<Result<StreamMessageResponse, Status>>,
    /// See [`StreamSender::bulk`].
    pub bulk: mpsc::Receiver<StreamMessageResponse>,
}

impl Device {
    /// A device without pipeline config and controllers.
    pub fn new(id: u64, dataplane: Arc<Handle>, options: Options) -> Self {
        Self {
            arbitration: Mutex::new(Arbitration::new(id)),
            dataplane,
            writes: tokio::sync::Mutex::new(()),
            digests: Mutex::default(),
            options,
            configs: RwLock::default(),
            changed: Notify::new(),
            streams: Mutex::default(),
            next_client: AtomicU64::new(1),
        }
    }

    /// What reads and writes refer to.
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

    /// What packets run through, if a config has been committed.
    pub fn committed(&self) -> Option<Arc<Deployment>> {
        self.configs.read().committed.clone()
    }

    /// Carries out a request whose sender has been checked.
    ///
    /// # Errors
    /// If the config cannot be realized; then nothing has changed.
    pub fn set_config(&self, request: SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        let action = request.action();
        if action == Action::Commit {
            if request.config.is_some() {
                return Err(Status::invalid_argument(
                    "COMMIT takes no config; it commits the saved one",
                ));
            }
            let saved = self.configs.read().saved.clone();
            let saved = saved.ok_or_else(|| {
                Status::not_found("no config is saved; use VERIFY_AND_SAVE before COMMIT")
            })?;
            self.commit(saved);
            return Ok(());
        }
        let load = || -> Result<Deployment, Status> {
            let config: ForwardingPipelineConfig = (request.config.clone())
                .ok_or_else(|| P4Error::invalid("the request has no config"))?;
            Ok(Deployment::new(config, self.options.clone())?)
        };
        match action {
            Action::Verify => drop(load()?),
            Action::VerifyAndSave => self.configs.write().saved = Some(Arc::new(load()?)),
            Action::VerifyAndCommit => self.commit(Arc::new(load()?)),
            Action::ReconcileAndCommit => {
                let new = load()?;
                if let Some(old) = self.committed() {
                    new.adopt(&old, self.dataplane.now())?;
                }
                self.commit(Arc::new(new));
            }
            Action::Unspecified | Action::Commit => {
                return Err(Status::invalid_argument(
                    "the request's action is unspecified",
                ));
            }
        }
        Ok(())
    }

    fn commit(&self, deployment: Arc<Deployment>) {
        let mut configs = self.configs.write();
        self.dataplane
            .set_pipeline(Arc::clone(deployment.pipeline()));
        configs.committed = Some(deployment);
        configs.saved = None;
        *self.digests.lock() = DigestBuffers::default();
        self.changed.notify_one();
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

    /// Forgets a stream, and tells the others if it was a primary's.
    pub fn close_stream(&self, client: ClientId) {
        self.streams.lock().remove(&client);
        // The lock is held until all are told, so that nobody is told in the wrong order.
        let mut arbitration = self.arbitration.lock();
        for notice in arbitration.disconnect(client) {
            self.notify(notice);
        }
    }

    /// Handles an arbitration update.
    ///
    /// # Errors
    /// The status with which the stream must end.
    pub async fn arbitrate(
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
            drop(self.writes.lock().await);
            // The new one does not know what the previous one was told.
            self.digests.lock().forget_sent();
            to_primary
                .into_iter()
                .for_each(|notice| self.notify(notice));
        }
        Ok(())
    }

    fn notify(&self, (client, update): Notice) {
        if let Some(stream) = self.streams.lock().get(&client) {
            // If it is gone, there is nobody left to tell.
            let _ = stream
                .control
                .send(Ok(response(Message::Arbitration(update))));
        }
    }

    /// Sends a message to the primary of every role; gives how many of them had no room for it.
    pub fn send_to_primaries(&self, message: Message) -> u64 {
        let primaries = self.arbitration.lock().primaries();
        let streams = self.streams.lock();
        let response = response(message);
        let full = primaries
            .iter()
            .filter_map(|p| streams.get(p))
            .filter(|stream| {
                let sent = stream.bulk.try_send(response.clone());
                matches!(sent, Err(mpsc::error::TrySendError::Full(_)))
            });
        full.count() as u64
    }

    /// Passes what the data plane has for the controllers on, until the data plane ends.
    pub async fn serve_events(&self, mut events: mpsc::Receiver<Event>) {
        let mut idle_scan = Instant::now();
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(Event::PacketIn(pipeline, packet)) => self.packet_in(&pipeline, &packet),
                    Some(Event::Digests(pipeline, digests)) => self.digests(&pipeline, &digests),
                    None => return,
                },
                () = self.changed.notified() => {}
                () = self.next_deadline(idle_scan) => {
                    self.flush_digests();
                    if idle_scan <= Instant::now() {
                        self.notify_idle();
                        idle_scan = Instant::now() + IDLE_SCAN;
                    }
                }
            }
        }
    }

    /// Waits until a digest list is due, or idle entries are to be looked for.
    async fn next_deadline(&self, idle_scan: Instant) {
        let Some(deployment) = self.committed() else {
            return std::future::pending().await;
        };
        let configs = deployment.digest_configs();
        let digest = self.digests.lock().next_deadline(&configs);
        let digest = digest.map(|at| {
            let wait = at.saturating_sub(self.dataplane.now());
            Instant::now() + Duration::from_nanos(wait)
        });
        let idle = deployment.has_idle_timeouts().then_some(idle_scan);
        match digest.into_iter().chain(idle).min() {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// The deployment, if packets still run through this pipeline.
    fn current(&self, pipeline: &SharedPipeline) -> Option<Arc<Deployment>> {
        self.committed()
            .filter(|d| Arc::ptr_eq(d.pipeline(), pipeline))
    }

    /// Passes a packet from the data plane to the controllers.
    fn packet_in(&self, pipeline: &SharedPipeline, packet: &Bytes) {
        let Some(deployment) = self.current(pipeline) else {
            return;
        };
        let (metadata, payload) = match &deployment.schema().packet_in {
            None => (vec![], packet.clone()),
            Some(header) => match header.decode(packet) {
                Ok(parts) => parts,
                Err(len) => {
                    tracing::warn!(
                        "a packet of {len} bytes to the CPU port is shorter than the packet_in header"
                    );
                    return;
                }
            },
        };
        let full = self.send_to_primaries(Message::Packet(PacketIn { payload, metadata }));
        self.dataplane.counters().packet_in_dropped.add(full);
    }

    /// Tells the controllers about idle entries.
    fn notify_idle(&self) {
        let Some(deployment) = self.committed().filter(|d| d.has_idle_timeouts()) else {
            return;
        };
        let table_entry = deployment.idle_entries(self.dataplane.now());
        if !table_entry.is_empty() {
            self.send_to_primaries(Message::IdleTimeoutNotification(IdleTimeoutNotification {
                table_entry,
                timestamp: super::epoch_nanos(),
            }));
        }
    }

    /// Gathers digests from the data plane, and sends the lists that they complete.
    fn digests(&self, pipeline: &SharedPipeline, digests: &[Digest]) {
        let Some(deployment) = self.current(pipeline) else {
            return;
        };
        let now = self.dataplane.now();
        for digest in digests {
            let Some((id, config, data)) = deployment.encode_digest(digest) else {
                continue;
            };
            let list = self.digests.lock().push(id, &config, data, now);
            if let Some(list) = list {
                self.send_to_primaries(Message::Digest(list));
            }
        }
    }

    /// Sends the digest lists that are due.
    fn flush_digests(&self) {
        let Some(deployment) = self.committed() else {
            return;
        };
        let configs = deployment.digest_configs();
        let lists = self.digests.lock().poll(&configs, self.dataplane.now());
        for list in lists {
            self.send_to_primaries(Message::Digest(list));
        }
    }
}

/// A stream message.
pub fn response(update: Message) -> StreamMessageResponse {
    StreamMessageResponse {
        update: Some(update),
    }
}

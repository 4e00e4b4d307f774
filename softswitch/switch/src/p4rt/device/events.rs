// SPDX-License-Identifier: Apache-2.0
//! Events from the data plane to the controllers.

use std::sync::Arc;
use std::time::Duration;

use prost::bytes::Bytes;
use softswitch_pipeline::Digest;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Device;
use crate::dataplane::{Event, SharedPipeline};
use crate::p4rt::deployment::Deployment;
use crate::p4rt::epoch_nanos;
use crate::proto::p4::v1::{
    DigestList, IdleTimeoutNotification, PacketIn, stream_message_response::Update as Message,
};

/// Interval of the search for idle entries, if a table has idle time-outs.
const IDLE_SCAN: Duration = Duration::from_millis(50);

impl Device {
    /// Forwards the data plane's events to the controllers until the data plane ends.
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

    /// Waits until a digest list or the search for idle entries is due.
    async fn next_deadline(&self, idle_scan: Instant) {
        let configs = self.committed().map(|d| d.digest_configs());
        let configs = configs.unwrap_or_default();
        let digest = self.digests.lock().next_deadline(&configs);
        let digest = digest.map(|at| {
            let wait = at.saturating_sub(self.dataplane.now());
            Instant::now() + Duration::from_nanos(wait)
        });
        let idle = self.with_idle_timeouts().map(|_| idle_scan);
        match digest.into_iter().chain(idle).min() {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Returns the deployment if this pipeline still processes packets.
    fn current(&self, pipeline: &SharedPipeline) -> Option<Arc<Deployment>> {
        self.committed()
            .filter(|d| Arc::ptr_eq(d.pipeline(), pipeline))
    }

    /// Forwards a packet from the data plane to the controllers.
    fn packet_in(&self, pipeline: &SharedPipeline, packet: &Bytes) {
        let Some(deployment) = self.current(pipeline) else {
            return;
        };
        let header = &deployment.schema().packet_in;
        let (metadata, payload) = match header {
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
        let header = header.as_ref().map(|header| header.id);
        let packet = PacketIn { payload, metadata };
        let full = self.send_to_primaries(|role| {
            let access = deployment.access(role);
            let is_received = access.receives_packet(header, &packet.metadata);
            is_received.then(|| Message::Packet(packet.clone()))
        });
        self.dataplane.counters().packet_in_dropped.add(full);
    }

    /// Returns the deployment whose idle entries are reported.
    fn with_idle_timeouts(&self) -> Option<Arc<Deployment>> {
        let deployment = match self.notifications.is_some() || self.listener.is_some() {
            true => self.running(),
            false => self.committed(),
        };
        deployment.filter(|d| d.has_idle_timeouts())
    }

    /// Notifies the controllers, the subscribers of [`notifications`](crate::notifications) and the listener of idle entries.
    fn notify_idle(&self) {
        let Some(deployment) = self.with_idle_timeouts() else {
            return;
        };
        let now = self.dataplane.now();
        if let Some(listener) = &self.listener {
            listener.revive(deployment.pipeline());
        }
        let idle = deployment.pipeline().lock().poll_idle(now);
        if idle.is_empty() {
            return;
        }
        if let Some(notifications) = &self.notifications {
            notifications.age(deployment.pipeline(), &idle);
        }
        if let Some(listener) = &self.listener {
            listener.age(deployment.pipeline(), &idle);
        }
        let table_entry = deployment.encode_idle_entries(&idle, now);
        let timestamp = epoch_nanos();
        self.send_to_primaries(|role| {
            let access = deployment.access(role);
            let visible = table_entry.iter();
            let visible = visible.filter(|entry| access.check_object(entry.table_id).is_ok());
            let table_entry: Vec<_> = visible.cloned().collect();
            let notification = IdleTimeoutNotification {
                table_entry,
                timestamp,
            };
            (!notification.table_entry.is_empty())
                .then_some(Message::IdleTimeoutNotification(notification))
        });
    }

    /// Collects digests from the data plane, and sends complete lists.
    fn digests(&self, pipeline: &SharedPipeline, digests: &[Digest]) {
        if let Some(notifications) = &self.notifications {
            notifications.learn(pipeline, digests, self.dataplane.now());
        }
        if let Some(listener) = &self.listener {
            listener.learn(pipeline, digests);
        }
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
                self.send_digest(&deployment, &list);
            }
        }
    }

    /// Sends a list of digests to the roles that may use the digest.
    fn send_digest(&self, deployment: &Deployment, list: &DigestList) {
        self.send_to_primaries(|role| {
            let allowed = deployment.access(role).check_object(list.digest_id);
            allowed.is_ok().then(|| Message::Digest(list.clone()))
        });
    }

    /// Sends the digest lists that are due.
    fn flush_digests(&self) {
        let Some(deployment) = self.committed() else {
            return;
        };
        let configs = deployment.digest_configs();
        let lists = self.digests.lock().poll(&configs, self.dataplane.now());
        for list in lists {
            self.send_digest(&deployment, &list);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The open sessions of a server, and the carriers with which clients resume them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::carrier::{Attachment, Carrier};
use crate::handshake::{HandshakeError, Id, ResumeOpening, Resumption};
use crate::key::Secret;

/// Resumptions of a session that wait; only the last one is of use.
const MAX_ARRIVALS: usize = 4;

/// The open sessions of a server by their ids.
#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<HashMap<Id, Entry>>>);

struct Entry {
    secret: Secret,
    /// Counter of the last resumption.
    counter: u64,
    arrivals: mpsc::Sender<Arrival>,
}

/// A connection with an authenticated resumption.
pub(crate) type Arrival = (TcpStream, Resumption);

/// The resumptions of one session. The server forgets the session when this is dropped.
pub struct Arrivals {
    id: Id,
    sessions: Sessions,
    receiver: mpsc::Receiver<Arrival>,
}

impl Sessions {
    /// Register a session, unless there are `max` already.
    pub(crate) fn insert(&self, id: Id, secret: Secret, max: usize) -> Option<Arrivals> {
        let mut sessions = self.0.lock();
        if sessions.len() >= max {
            return None;
        }
        let (arrivals, receiver) = mpsc::channel(MAX_ARRIVALS);
        let counter = 0;
        sessions.insert(
            id,
            Entry {
                secret,
                counter,
                arrivals,
            },
        );
        Some(Arrivals {
            id,
            sessions: self.clone(),
            receiver,
        })
    }
}

impl Sessions {
    /// Verify a resumption. Return none if there is no such session.
    pub(crate) fn verify(
        &self,
        id: Id,
        opening: &ResumeOpening,
    ) -> Result<Option<(mpsc::Sender<Arrival>, Resumption)>, HandshakeError> {
        let mut sessions = self.0.lock();
        let Some(entry) = sessions.get_mut(&id) else {
            return Ok(None);
        };
        let resumption = opening.verify(&entry.secret, &mut entry.counter)?;
        Ok(Some((entry.arrivals.clone(), resumption)))
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        self.sessions.0.lock().remove(&self.id);
    }
}

impl Arrivals {
    /// Return the next carrier of a session that has received `received` bytes. Cancellation loses nothing.
    pub(crate) async fn next(&mut self, received: u64) -> Result<Attachment, HandshakeError> {
        let arrival = self.receiver.recv().await;
        let (stream, resumption) = arrival.expect("the table of sessions has the sender");
        let peer_received = resumption.received;
        let (message, noise) = resumption.accept(received)?;
        let carrier = Box::new(Carrier::new(stream, noise, &message)?);
        Ok(Attachment {
            carrier,
            peer_received,
        })
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The program that clients see, the clients with a stream, and the messages to them.

mod events;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use softswitch_pipeline::{Nanos, TableId};
use tokio::sync::mpsc;
use tonic::Status;

use super::program::Program;
use crate::p4rt::deployment::Deployment;
use crate::proto::bfrt::stream_message_response::Update as Message;
use crate::proto::bfrt::subscribe::Notifications;
use crate::proto::bfrt::{PortStatusChgNotification, StreamMessageResponse};

/// The name by which clients bind to the tables that do not depend on a program.
const SHARED: &str = "$SHARED";

/// The sending end of a client's stream.
pub type Sender = mpsc::Sender<Result<StreamMessageResponse, Status>>;

/// The program, and the clients with a stream.
#[derive(Debug, Default)]
pub struct Hub {
    program: RwLock<Option<Arc<Program>>>,
    clients: Mutex<BTreeMap<u32, Client>>,
    idle: Mutex<Vec<ReportedIdle>>,
}

/// An entry that was reported as idle.
#[derive(Debug, Clone)]
struct ReportedIdle {
    table: TableId,
    handle: u32,
    last_hit: Nanos,
}

/// A client with a stream.
#[derive(Debug)]
struct Client {
    sender: Sender,
    notifications: Notifications,
    /// The program to which the client is bound.
    program: Option<String>,
}

impl Hub {
    /// Sets the program.
    pub fn set_program(&self, program: Arc<Program>) {
        *self.program.write() = Some(program);
        self.idle.lock().clear();
    }

    /// Returns the program, if it processes packets. Other interfaces may have replaced it.
    pub fn program(&self, running: Option<&Arc<Deployment>>) -> Option<Arc<Program>> {
        let program = self.program.read().clone();
        program.filter(|p| running.is_some_and(|running| Arc::ptr_eq(&p.deployment, running)))
    }

    /// Returns the program of a client's request, which may name it.
    ///
    /// # Errors
    /// NOT_FOUND if the program does not exist, or the client is not bound to a program.
    pub fn program_of(
        &self,
        client: u32,
        name: &str,
        running: Option<&Arc<Deployment>>,
    ) -> Result<Arc<Program>, Status> {
        let program = self.program(running);
        let program = program.ok_or_else(|| Status::not_found("the device has no program"))?;
        let bound = self
            .clients
            .lock()
            .get(&client)
            .and_then(|c| c.program.clone());
        let wanted = match (name, bound) {
            ("", Some(bound)) => bound,
            ("", None) => {
                let message = format!("client {client} is not bound to a program");
                return Err(Status::not_found(message));
            }
            (name, _) => name.to_owned(),
        };
        if wanted == program.name() || wanted == SHARED {
            return Ok(program);
        }
        Err(Status::not_found(format!("unknown program {wanted:?}")))
    }

    /// Registers the stream of a client.
    ///
    /// # Errors
    /// ALREADY_EXISTS if the client has one.
    pub fn subscribe(
        &self,
        id: u32,
        sender: Sender,
        notifications: Notifications,
    ) -> Result<(), Status> {
        let mut clients = self.clients.lock();
        if clients.contains_key(&id) {
            let message = format!("client {id} is already subscribed");
            return Err(Status::already_exists(message));
        }
        let client = Client {
            sender,
            notifications,
            program: None,
        };
        clients.insert(id, client);
        Ok(())
    }

    /// Removes a client.
    pub fn unsubscribe(&self, id: u32) {
        self.clients.lock().remove(&id);
    }

    /// Binds a client to a program.
    ///
    /// # Errors
    /// FAILED_PRECONDITION without a stream, NOT_FOUND if the program does not exist, ALREADY_EXISTS if another client is
    /// bound to it.
    pub fn bind(
        &self,
        id: u32,
        name: &str,
        running: Option<&Arc<Deployment>>,
    ) -> Result<(), Status> {
        let exists = self.program(running).is_some_and(|p| p.name() == name);
        if !exists && name != SHARED {
            return Err(Status::not_found(format!("unknown program {name:?}")));
        }
        let mut clients = self.clients.lock();
        if !clients.contains_key(&id) {
            let message = format!("unknown client {id}: subscribe first");
            return Err(Status::failed_precondition(message));
        }
        let is_bound = |client: &Client| client.program.as_deref() == Some(name);
        let mut others = clients.iter().filter(|(other, _)| **other != id);
        if name != SHARED
            && let Some((other, _)) = others.find(|(_, client)| is_bound(client))
        {
            let message = format!("client {other} is already bound to program {name}");
            return Err(Status::already_exists(message));
        }
        if let Some(client) = clients.get_mut(&id) {
            client.program = Some(name.to_owned());
        }
        Ok(())
    }

    /// Sends a message to a client; drops it if the client is too slow.
    pub fn send(&self, id: u32, message: Message) {
        if let Some(client) = self.clients.lock().get(&id) {
            client.send(message);
        }
    }

    /// Sends a message to the clients of a program that want it.
    fn send_to(&self, program: &Program, wants: fn(&Notifications) -> bool, message: &Message) {
        let clients = self.clients.lock();
        let bound = clients
            .values()
            .filter(|c| c.program.as_deref() == Some(program.name()));
        for client in bound.filter(|client| wants(&client.notifications)) {
            client.send(message.clone());
        }
    }

    /// Sends changes of ports to the clients that want them.
    pub fn notify_ports(&self, program: &Program, changes: Vec<PortStatusChgNotification>) {
        for change in changes {
            let wants = |n: &Notifications| n.enable_port_status_change_notifications;
            self.send_to(
                program,
                wants,
                &Message::PortStatusChangeNotification(change),
            );
        }
    }
}

impl Client {
    fn send(&self, message: Message) {
        let update = Some(message);
        if self
            .sender
            .try_send(Ok(StreamMessageResponse { update }))
            .is_err()
        {
            tracing::debug!("bfrt: a message was dropped, because the client is too slow");
        }
    }
}

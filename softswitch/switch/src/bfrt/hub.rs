// SPDX-License-Identifier: Apache-2.0
//! The programs that clients see, the clients with a stream, and the messages to them.

mod events;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use softswitch_pipeline::{Nanos, TableId};
use tokio::sync::mpsc;
use tonic::Status;

use super::no_program::SHARED;
use super::program::Program;
use super::programs::Programs;
use crate::p4rt::deployment::Deployment;
use crate::proto::bfrt::stream_message_response::Update as Message;
use crate::proto::bfrt::subscribe::Notifications;
use crate::proto::bfrt::{PortStatusChgNotification, StreamMessageResponse};

/// The sending end of a client's stream.
pub type Sender = mpsc::Sender<Result<StreamMessageResponse, Status>>;

/// The programs, and the clients with a stream.
#[derive(Debug, Default)]
pub struct Hub {
    present: RwLock<Option<Present>>,
    /// The tables that exist without a program.
    fixed: OnceLock<Programs>,
    clients: Mutex<BTreeMap<u32, Client>>,
    idle: Mutex<Vec<ReportedIdle>>,
}

/// The programs that clients see.
#[derive(Debug, Clone)]
struct Present {
    programs: Programs,
    /// Their initialization has not ended, and packets are processed by earlier programs.
    is_prepared: bool,
}

/// An entry that was reported as idle.
#[derive(Debug, Clone)]
struct ReportedIdle {
    program: usize,
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
    /// Sets the tables that exist without a program. Only the first call counts.
    pub fn set_fixed(&self, tables: Program) {
        self.fixed.get_or_init(|| tables.into());
    }

    /// Sets the programs, which process packets.
    pub fn set_programs(&self, programs: Programs) {
        *self.present.write() = Some(Present {
            programs,
            is_prepared: false,
        });
        self.idle.lock().clear();
    }

    /// Sets the programs, which do not yet process packets.
    pub fn prepare(&self, programs: Programs) {
        *self.present.write() = Some(Present {
            programs,
            is_prepared: true,
        });
    }

    /// Notes that the prepared programs process packets from now on, and returns their deployment, if there is one.
    pub fn start_prepared(&self) -> Option<Arc<Deployment>> {
        let mut present = self.present.write();
        let present = present.as_mut().filter(|present| present.is_prepared)?;
        present.is_prepared = false;
        self.idle.lock().clear();
        Some(Arc::clone(&present.programs.first().deployment))
    }

    /// Returns the programs, if they process packets or are prepared for that. Other interfaces may have replaced them. If
    /// no program processes packets, there are only the tables that do not depend on a program.
    pub fn programs(&self, running: Option<&Arc<Deployment>>) -> Option<Programs> {
        let run = |programs: &Programs| running.is_some_and(|running| programs.are_of(running));
        let present = self.present.read().clone();
        let present = present.filter(|present| present.is_prepared || run(&present.programs));
        let fixed = || self.fixed.get().filter(|_| running.is_none()).cloned();
        present.map(|present| present.programs).or_else(fixed)
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
        let programs = self.programs(running);
        let programs = programs.ok_or_else(|| Status::not_found("the device has no program"))?;
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
        let found = programs.named(&wanted).cloned();
        found.ok_or_else(|| Status::not_found(format!("unknown program {wanted:?}")))
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

    /// Removes a client, unless it has subscribed again with another stream.
    pub fn unsubscribe(&self, id: u32, sender: &Sender) {
        let mut clients = self.clients.lock();
        if clients
            .get(&id)
            .is_some_and(|client| client.sender.same_channel(sender))
        {
            clients.remove(&id);
        }
    }

    /// Ends the streams of clients that are bound to a program that does not exist any more.
    pub fn dismiss_unbound(&self, running: Option<&Arc<Deployment>>) {
        let programs = self.programs(running);
        let exists = |name: &str| programs.as_ref().is_some_and(|p| p.named(name).is_some());
        self.clients.lock().retain(|_, client| {
            let Some(name) = client.program.as_deref().filter(|name| !exists(name)) else {
                return true;
            };
            let status = Status::cancelled(format!("the device has another program than {name}"));
            // A client whose queue is full finds out by its next request.
            let _ = client.sender.try_send(Err(status));
            false
        });
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
        let programs = self.programs(running);
        if programs.is_none_or(|programs| programs.named(name).is_none()) {
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

    /// Sends a message to all clients; drops it for those that are too slow.
    pub fn broadcast(&self, message: &Message) {
        let clients = self.clients.lock();
        clients
            .values()
            .for_each(|client| client.send(message.clone()));
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

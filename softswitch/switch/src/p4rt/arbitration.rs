// SPDX-License-Identifier: Apache-2.0
//! Arbitration of the primary controller of each role (specification, section "Client Arbitration and
//! Controller Replication"), as a state machine without I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use tonic::{Code, Status};

use super::role::{Role, RoleConfig};
use crate::proto::google::rpc;
use crate::proto::p4::v1::{self as proto, MasterArbitrationUpdate, Uint128};

/// The id of a live stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A message to a client.
pub type Notice = (ClientId, MasterArbitrationUpdate);

/// All roles of a device, by name; the default role's name is empty.
#[derive(Debug)]
pub struct Arbitration {
    device_id: u64,
    roles: BTreeMap<String, RoleState>,
}

#[derive(Debug, Default)]
struct RoleState {
    /// The highest election id so far.
    highest: Option<u128>,
    primary: Option<ClientId>,
    clients: BTreeMap<ClientId, Option<u128>>,
    /// The configuration that a primary sent last.
    config: Option<Arc<RoleConfig>>,
}

impl Arbitration {
    /// Returns the device's id.
    pub fn device_id(&self) -> u64 {
        self.device_id
    }

    /// Creates the state without clients.
    pub fn new(device_id: u64) -> Self {
        Self {
            device_id,
            roles: BTreeMap::new(),
        }
    }

    /// Handles a client's update, and returns the notices to send; the one to a new primary comes last.
    ///
    /// # Errors
    /// The status with which the client's stream must end. The client is not yet removed.
    pub fn update(
        &mut self,
        client: ClientId,
        update: &MasterArbitrationUpdate,
    ) -> Result<Vec<Notice>, Status> {
        let name = role_name(update.role.as_ref());
        match self.role_of(client) {
            None if update.device_id != self.device_id => {
                return Err(self.unknown_device(update.device_id));
            }
            Some(_) if update.device_id != self.device_id => {
                return Err(Status::failed_precondition(format!(
                    "this stream is for device {}: it cannot change to device {}",
                    self.device_id, update.device_id
                )));
            }
            Some(role) if role != name => {
                return Err(Status::failed_precondition(format!(
                    "this stream is for role '{role}': it cannot change to '{name}'"
                )));
            }
            _ => {}
        }
        let config = self.decode_config(&name, update.role.as_ref())?;
        let election_id = update.election_id.map(election_id);
        let role = self.roles.entry(name.clone()).or_default();
        let mut others = role.clients.iter().filter(|(id, _)| **id != client);
        if election_id.is_some() && others.any(|(_, used)| *used == election_id) {
            return Err(Status::invalid_argument(
                "another live controller of this role uses the same election id",
            ));
        }
        role.clients.insert(client, election_id);
        if election_id.is_some() && election_id >= role.highest {
            role.highest = election_id;
            role.primary = Some(client);
            role.config = config.map(Arc::new);
            return Ok(self.notices(&name));
        }
        if role.primary == Some(client) {
            role.primary = None;
            return Ok(self.notices(&name));
        }
        let notices = self.notices(&name);
        Ok(notices
            .into_iter()
            .filter(|(to, _)| *to == client)
            .collect())
    }

    /// Removes a client, and returns the notices to send.
    pub fn disconnect(&mut self, client: ClientId) -> Vec<Notice> {
        let Some(name) = self.role_of(client).map(str::to_owned) else {
            return vec![];
        };
        let Some(role) = self.roles.get_mut(&name) else {
            return vec![];
        };
        role.clients.remove(&client);
        if role.primary == Some(client) {
            role.primary = None;
            return self.notices(&name);
        }
        vec![]
    }

    /// Decodes a role's configuration, and checks that it does not contradict other roles' configurations.
    fn decode_config(
        &self,
        name: &str,
        role: Option<&proto::Role>,
    ) -> Result<Option<RoleConfig>, Status> {
        let Some(config) = role.and_then(|r| r.config.as_ref()) else {
            return Ok(None);
        };
        if name.is_empty() {
            return Err(Status::invalid_argument(
                "role.config: the default role has full access: set role.name, or leave role.config unset",
            ));
        }
        let config = RoleConfig::decode(config)?;
        let others = self.roles.iter().filter(|(other, _)| *other != name);
        let mut conflicts = others.filter_map(|(other, state)| {
            let id = config.conflict(state.config.as_ref()?)?;
            Some((id, other))
        });
        if let Some((id, other)) = conflicts.next() {
            return Err(Status::invalid_argument(format!(
                "role.config: id {id:#010x} is exclusive to one of the roles '{name}' and '{other}': \
                 list it in shared_p4_ids of both"
            )));
        }
        Ok(Some(config))
    }

    /// Returns the role with this name and (in old clients) number, whether or not a controller has it.
    pub fn role(&self, name: &str, number: u64) -> Role {
        let name = given_role_name(name, number);
        let others = self.roles.iter().filter(|(other, _)| **other != name);
        let exclusive = others.flat_map(|(other, state)| {
            let ids = state.config.iter().flat_map(|c| &c.exclusive);
            ids.map(|id| (*id, other.clone()))
        });
        Role {
            exclusive_to_others: exclusive.collect(),
            config: self.roles.get(&name).and_then(|role| role.config.clone()),
            name,
        }
    }

    /// Checks that a request comes from a role's primary, and returns the role.
    ///
    /// # Errors
    /// The status of the response.
    pub fn check_primary(
        &self,
        device_id: u64,
        role: &str,
        role_id: u64,
        election: Option<Uint128>,
    ) -> Result<Role, Status> {
        self.check_device(device_id)?;
        let name = given_role_name(role, role_id);
        let Some(role) = self.roles.get(&name) else {
            if name.is_empty() {
                return Err(Status::permission_denied(
                    "missing primary controller: open a StreamChannel and send an arbitration update first",
                ));
            }
            return Err(Status::not_found(format!(
                "unknown role '{name}': no controller has it"
            )));
        };
        let given = election.map(election_id);
        if role.primary.is_none() || given.is_none() || given != role.highest {
            return Err(Status::permission_denied(format!(
                "not primary: the election id is {}, the primary's is {}",
                given.map_or("unset".into(), |id| id.to_string()),
                match (role.primary, role.highest) {
                    (Some(_), Some(id)) => id.to_string(),
                    _ => "unset, without a primary".into(),
                },
            )));
        }
        Ok(self.role(&name, 0))
    }

    /// Checks that a request is for this device.
    ///
    /// # Errors
    /// The status of the response.
    pub fn check_device(&self, device_id: u64) -> Result<(), Status> {
        if device_id == self.device_id {
            Ok(())
        } else {
            Err(self.unknown_device(device_id))
        }
    }

    /// Returns true if the client is the primary of its role.
    pub fn is_primary(&self, client: ClientId) -> bool {
        self.roles.values().any(|role| role.primary == Some(client))
    }

    /// Returns the role of which the client is the primary.
    pub fn primary_role(&self, client: ClientId) -> Option<Role> {
        let mut roles = self.roles.iter();
        let (name, _) = roles.find(|(_, role)| role.primary == Some(client))?;
        Some(self.role(name, 0))
    }

    /// Returns the primaries of all roles.
    pub fn primaries(&self) -> Vec<(ClientId, Role)> {
        let roles = self.roles.iter();
        let primaries = roles.filter_map(|(name, role)| Some((role.primary?, self.role(name, 0))));
        primaries.collect()
    }

    fn unknown_device(&self, device_id: u64) -> Status {
        Status::not_found(format!(
            "unknown device id {device_id}: this is device {} (--device-id)",
            self.device_id
        ))
    }

    fn role_of(&self, client: ClientId) -> Option<&str> {
        let mut roles = self.roles.iter();
        let (name, _) = roles.find(|(_, role)| role.clients.contains_key(&client))?;
        Some(name)
    }

    /// Returns the notices to all clients of a role, the primary last.
    fn notices(&self, name: &str) -> Vec<Notice> {
        let Some(role) = self.roles.get(name) else {
            return vec![];
        };
        let mut clients: Vec<_> = role.clients.keys().copied().collect();
        clients.sort_by_key(|client| role.primary == Some(*client));
        let notices = clients.into_iter().map(|client| {
            let (code, message) = match role.primary {
                Some(primary) if primary == client => (Code::Ok, "you are primary"),
                Some(_) => (Code::AlreadyExists, "you are backup"),
                None => (Code::NotFound, "no controller is primary"),
            };
            let update = MasterArbitrationUpdate {
                device_id: self.device_id,
                role: (!name.is_empty()).then(|| named_role(name, role.config.as_deref())),
                election_id: role.highest.map(|id| Uint128 {
                    high: (id >> 64) as u64,
                    low: id as u64,
                }),
                status: Some(rpc::Status {
                    code: code as i32,
                    message: message.into(),
                    details: vec![],
                }),
            };
            (client, update)
        });
        notices.collect()
    }
}

fn election_id(id: Uint128) -> u128 {
    u128::from(id.high) << 64 | u128::from(id.low)
}

/// Prefix of the name of a role with a number, as in P4Runtime before 1.4.
const ROLE_NUMBER: &str = "#";

fn given_role_name(name: &str, number: u64) -> String {
    match (name, number) {
        ("", 0) => String::new(),
        ("", n) => format!("{ROLE_NUMBER}{n}"),
        (name, _) => name.to_owned(),
    }
}

#[allow(deprecated)]
fn role_name(role: Option<&proto::Role>) -> String {
    role.map_or_else(String::new, |r| given_role_name(&r.name, r.id))
}

#[allow(deprecated)]
fn named_role(name: &str, config: Option<&RoleConfig>) -> proto::Role {
    let number = name.strip_prefix(ROLE_NUMBER).and_then(|n| n.parse().ok());
    proto::Role {
        id: number.unwrap_or(0),
        name: if number.is_some() {
            String::new()
        } else {
            name.to_owned()
        },
        config: config.map(|c| c.written.clone()),
    }
}

#[cfg(test)]
mod tests;

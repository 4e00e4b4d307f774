// SPDX-License-Identifier: Apache-2.0
//! Services, which clients request by name.

use foldhash::HashMap;
use serde::Deserialize;

use crate::targets::MAX_REDUNDANCY;

/// Policy for the selection of sites and replicas (see [`crate::selection`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Sites in the mapping's order; replicas by weight.
    Latency,
    /// Sites in the mapping's order; the less loaded of two replicas drawn by weight.
    Load,
    /// Sites in random order; replicas by weight.
    Random,
}

/// A service.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    name: String,
    id: u16,
    /// Deployment whose mapping applies to this service.
    pub deployment: u16,
    /// Number of sites that receive a copy of each first flight (X in section 3.4.3 of the paper).
    #[serde(default = "one")]
    pub redundancy: u8,
    /// Application protocols (ALPN).
    pub alpn: Vec<String>,
    /// Policy for the selection of sites and replicas.
    pub policy: Policy,
}

const fn one() -> u8 {
    1
}

impl Service {
    /// Returns the id of the service.
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// Returns true if the service supports this application protocol.
    #[inline]
    pub fn supports(&self, protocol: &[u8]) -> bool {
        self.alpn
            .iter()
            .any(|supported| supported.as_bytes() == protocol)
    }
}

/// Normalizes a service name for lookups: lower-case ASCII, without a trailing dot.
pub fn normalize_name(name: &[u8]) -> Vec<u8> {
    name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase()
}

/// All services, by id and by name.
#[derive(Clone, Debug, Default)]
pub struct Services {
    by_id: HashMap<u16, Service>,
    by_name: HashMap<Vec<u8>, u16>,
}

impl Services {
    /// Adds services, replacing those with the same ids.
    ///
    /// # Errors
    /// Returns a message if a service is invalid or conflicts with another.
    pub fn add(&mut self, services: Vec<Service>) -> Result<(), String> {
        // Remove all old entries first, because services may exchange their names.
        for service in &services {
            self.remove(service.id);
        }
        for service in services {
            let (id, redundancy, name) = (service.id, service.redundancy, &service.name);
            if !(1..=MAX_REDUNDANCY as u8).contains(&redundancy) {
                return Err(format!(
                    "services: {name}: redundancy is {redundancy}: must be 1 to {MAX_REDUNDANCY}"
                ));
            }
            if let Some(other) = self.by_name.insert(normalize_name(name.as_bytes()), id) {
                return Err(format!(
                    "services: {name} has two ids, {other} and {id}: remove one"
                ));
            }
            if let Some(other) = self.by_id.insert(id, service) {
                return Err(format!(
                    "services: {id} is the id of {} and of another service: renumber one",
                    other.name
                ));
            }
        }
        Ok(())
    }

    /// Removes a service; returns true if it was present.
    pub fn remove(&mut self, id: u16) -> bool {
        let removed = self.by_id.remove(&id);
        if let Some(service) = &removed {
            self.by_name
                .remove(&normalize_name(service.name.as_bytes()));
        }
        removed.is_some()
    }

    /// Returns the service with a name in the client's notation.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Service> {
        let mut lowered = [0; 255];
        let name = name.strip_suffix(b".").unwrap_or(name);
        let lowered = lowered.get_mut(..name.len())?;
        lowered.copy_from_slice(name);
        lowered.make_ascii_lowercase();
        self.by_name.get(&*lowered).map(|id| &self.by_id[id])
    }

    /// Iterates over all services.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Service> {
        self.by_id.values()
    }
}

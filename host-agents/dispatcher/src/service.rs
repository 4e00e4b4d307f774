//! What clients ask for by name.

use foldhash::HashMap;
use serde::Deserialize;

use crate::choice::MAX_REDUNDANCY;

/// How a service's site and replica are chosen (`crate::choice`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The mapping's order; replicas by their weights.
    Latency,
    /// The mapping's order; of two replicas the less loaded.
    Load,
    /// Sites in random order; replicas by their weights.
    Random,
}

/// One service.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    name: String,
    id: u16,
    /// Whose mapping is this service's, too.
    pub deployment: u16,
    /// Sites that get a copy of each first flight: X of the paper, 3.4.3.
    #[serde(default = "one")]
    pub redundancy: u8,
    /// Its application protocols.
    pub alpn: Vec<String>,
    /// How its site and replica are chosen.
    pub policy: Policy,
}

const fn one() -> u8 {
    1
}

impl Service {
    /// Its number.
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// Whether it has this application protocol.
    #[inline]
    pub fn speaks(&self, protocol: &[u8]) -> bool {
        self.alpn.iter().any(|own| own.as_bytes() == protocol)
    }
}

/// The bytes by which a service is found: ASCII letters lowered, one trailing dot removed.
pub fn normal(name: &[u8]) -> Vec<u8> {
    name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase()
}

/// All services, by number and by name.
#[derive(Clone, Debug, Default)]
pub struct Services {
    by_id: HashMap<u16, Service>,
    by_name: HashMap<Vec<u8>, u16>,
}

impl Services {
    /// Adds these, in place of those of their numbers.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn add(&mut self, services: Vec<Service>) -> Result<(), String> {
        // First, as they may have given each other their names.
        for service in &services {
            self.remove(service.id);
        }
        for service in services {
            let (id, redundancy, name) = (service.id, service.redundancy, &service.name);
            if !(1..=MAX_REDUNDANCY as u8).contains(&redundancy) {
                return Err(format!(
                    "services: {name}: redundancy is {redundancy}; use 1 to {MAX_REDUNDANCY}"
                ));
            }
            if let Some(other) = self.by_name.insert(normal(name.as_bytes()), id) {
                return Err(format!(
                    "services: {name} has two ids, {other} and {id}; remove one"
                ));
            }
            if let Some(other) = self.by_id.insert(id, service) {
                return Err(format!(
                    "services: {id} is the id of {} and of another; renumber one",
                    other.name
                ));
            }
        }
        Ok(())
    }

    /// Whether there was one of this number.
    pub fn remove(&mut self, id: u16) -> bool {
        let was = self.by_id.remove(&id);
        if let Some(service) = &was {
            self.by_name.remove(&normal(service.name.as_bytes()));
        }
        was.is_some()
    }

    /// The service of a name as a client sends it.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Service> {
        let mut lowered = [0; 255];
        let name = name.strip_suffix(b".").unwrap_or(name);
        let lowered = lowered.get_mut(..name.len())?;
        lowered.copy_from_slice(name);
        lowered.make_ascii_lowercase();
        self.by_name.get(&*lowered).map(|id| &self.by_id[id])
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Service> {
        self.by_id.values()
    }
}

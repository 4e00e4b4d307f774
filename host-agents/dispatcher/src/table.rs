//! The controller's table: sites, services, clients' regions, and which sites are best for whom.

use std::net::IpAddr;
use std::num::NonZeroU8;

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use crate::choice::MAX_REDUNDANCY;
use crate::regions::{Prefix, Regions};

/// A site, and where its switch takes tunnels.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    id: NonZeroU8,
    vtep: IpAddr,
}

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

/// What clients ask for by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    name: String,
    id: u16,
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

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    prefix: Prefix,
    region: u16,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mapping {
    service: u16,
    region: u16,
    sites: Vec<NonZeroU8>,
}

/// What a whole table and a difference have alike.
struct Lists {
    sites: Vec<Site>,
    services: Vec<Service>,
    clients: Vec<Client>,
    mapping: Vec<Mapping>,
}

/// A whole table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    version: u64,
    site: NonZeroU8,
    sites: Vec<Site>,
    services: Vec<Service>,
    clients: Vec<Client>,
    mapping: Vec<Mapping>,
}

/// What a difference takes out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remove {
    #[serde(default)]
    clients: Vec<Prefix>,
    #[serde(default)]
    mapping: Vec<(u16, u16)>,
    #[serde(default)]
    services: Vec<u16>,
}

/// The difference between two versions: what is added or replaced, and what goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The version that it applies to.
    pub from: u64,
    version: u64,
    #[serde(default)]
    sites: Vec<Site>,
    #[serde(default)]
    services: Vec<Service>,
    #[serde(default)]
    clients: Vec<Client>,
    #[serde(default)]
    mapping: Vec<Mapping>,
    #[serde(default)]
    remove: Remove,
}

/// Version, and how much there is of each list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    version: u64,
    site: NonZeroU8,
    sites: usize,
    services: usize,
    clients: usize,
    mapping: usize,
}

/// The best sites of a service and region. Inline, as there may be a million of them, copied with each difference.
type Ranked = [Option<NonZeroU8>; MAX_RANKED];

/// Most sites that count for a service and region.
const MAX_RANKED: usize = 16;

fn rank(sites: &[NonZeroU8]) -> Ranked {
    std::array::from_fn(|n| sites.get(n).copied())
}

/// The table, as lookups need it.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its version.
    pub version: u64,
    /// This dispatcher's site.
    pub site: NonZeroU8,
    /// Switches' tunnel addresses.
    pub vteps: HashMap<NonZeroU8, IpAddr>,
    services: HashMap<u16, Service>,
    names: HashMap<Vec<u8>, u16>,
    /// Clients' regions.
    pub regions: Regions,
    mapping: HashMap<(u16, u16), Ranked>,
}

/// The bytes by which a service is found: ASCII letters lowered, one trailing dot removed.
pub fn normal(name: &[u8]) -> Vec<u8> {
    name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase()
}

impl Table {
    /// The table of `whole`, for tunnels of the family of `own`.
    ///
    /// # Errors
    /// What contradicts itself, in words.
    pub fn new(whole: Whole, own: IpAddr) -> Result<Self, String> {
        let mut table = Self {
            version: whole.version,
            site: whole.site,
            vteps: HashMap::default(),
            services: HashMap::default(),
            names: HashMap::default(),
            regions: Regions::default(),
            mapping: HashMap::default(),
        };
        table.add(Lists {
            sites: whole.sites,
            services: whole.services,
            clients: whole.clients,
            mapping: whole.mapping,
        });
        table.checked(own)
    }

    /// This table with `difference`, which must be from its version.
    ///
    /// # Errors
    /// What contradicts itself, in words.
    pub fn with(&self, difference: Difference, own: IpAddr) -> Result<Self, String> {
        let mut table = self.clone();
        table.version = difference.version;
        for prefix in difference.remove.clients {
            if !table.regions.remove(prefix) {
                return Err(format!("remove.clients: {prefix} is not there"));
            }
        }
        for key in difference.remove.mapping {
            if table.mapping.remove(&key).is_none() {
                return Err(format!("remove.mapping: {key:?} is not there"));
            }
        }
        for id in difference.remove.services {
            if table.services.remove(&id).is_none() {
                return Err(format!("remove.services: {id} is not there"));
            }
        }
        table.add(Lists {
            sites: difference.sites,
            services: difference.services,
            clients: difference.clients,
            mapping: difference.mapping,
        });
        table.checked(own)
    }

    fn add(&mut self, lists: Lists) {
        self.vteps
            .extend(lists.sites.iter().map(|site| (site.id, site.vtep)));
        self.services.extend(
            lists
                .services
                .into_iter()
                .map(|service| (service.id, service)),
        );
        for client in lists.clients {
            self.regions.insert(client.prefix, client.region);
        }
        let mapping = lists.mapping.into_iter();
        self.mapping
            .extend(mapping.map(|m| ((m.service, m.region), rank(&m.sites))));
    }

    /// Whole tables and differences meet the same conditions.
    fn checked(mut self, own: IpAddr) -> Result<Self, String> {
        for (id, vtep) in &self.vteps {
            if vtep.is_ipv4() != own.is_ipv4() {
                return Err(format!(
                    "sites: {id}'s vtep {vtep} is of another family than tunnel.listen {own}"
                ));
            }
        }
        self.names.clear();
        for service in self.services.values() {
            let Service {
                name, redundancy, ..
            } = service;
            if !(1..=MAX_REDUNDANCY as u8).contains(redundancy) {
                return Err(format!(
                    "services: {name}: redundancy is {redundancy}; use 1 to {MAX_REDUNDANCY}"
                ));
            }
            if self
                .names
                .insert(normal(name.as_bytes()), service.id)
                .is_some()
            {
                return Err(format!("services: {name} has two ids; remove one"));
            }
        }
        for ((service, region), sites) in &self.mapping {
            let place = || format!("mapping: service {service}, region {region}");
            if !self.services.contains_key(service) {
                return Err(format!("{}: there is no such service", place()));
            }
            let mut seen = [false; 256];
            for id in sites.iter().flatten() {
                if *id != self.site && !self.vteps.contains_key(id) {
                    return Err(format!("{}: site {id} is not among the sites", place()));
                }
                if std::mem::replace(&mut seen[usize::from(id.get())], true) {
                    return Err(format!("{}: a site is there twice", place()));
                }
            }
        }
        Ok(self)
    }

    /// The service of a name as a client sends it.
    #[inline]
    pub fn service(&self, name: &[u8]) -> Option<&Service> {
        let mut lowered = [0; 255];
        let name = name.strip_suffix(b".").unwrap_or(name);
        let lowered = lowered.get_mut(..name.len())?;
        lowered.copy_from_slice(name);
        lowered.make_ascii_lowercase();
        self.names.get(&*lowered).map(|id| &self.services[id])
    }

    /// The sites for a service's client, best first.
    #[inline]
    pub fn sites(&self, service: &Service, client: IpAddr) -> impl Iterator<Item = NonZeroU8> {
        let region = self.regions.find(client);
        let of = |region| self.mapping.get(&(service.id, region));
        of(region)
            .or_else(|| of(0))
            .into_iter()
            .flatten()
            .map_while(|id| *id)
    }

    /// How much there is of each list.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            version: self.version,
            site: self.site,
            sites: self.vteps.len(),
            services: self.services.len(),
            clients: self.regions.len(),
            mapping: self.mapping.len(),
        }
    }
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

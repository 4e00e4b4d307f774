// SPDX-License-Identifier: Apache-2.0
//! The controller's table: sites, services, regions of clients, and the mapping of regions to sites.

use std::net::IpAddr;
use std::num::NonZeroU8;

use foldhash::{HashMap, HashSet};

use crate::mapping::Mapping;
use crate::message::{Client, FullTable, MappingEntry, Site, TableDelta, TableSummary};
use crate::regions::Regions;
use crate::service::{Service, Services};

/// The controller's table in a form for lookups.
#[derive(Clone, Debug)]
pub struct Table {
    /// Version.
    pub version: u64,
    /// This dispatcher's site.
    pub site: NonZeroU8,
    /// Tunnel endpoints of the sites' switches.
    pub vteps: HashMap<NonZeroU8, IpAddr>,
    services: Services,
    /// Regions of clients.
    pub regions: Regions,
    mapping: Mapping,
}

impl Table {
    /// Builds a table from `message`. Tunnel endpoints must be of the family of `own_address`.
    ///
    /// # Errors
    /// Returns a message if the table contradicts itself.
    pub fn new(message: FullTable, own_address: IpAddr) -> Result<Self, String> {
        let mut table = Self {
            version: message.version,
            site: message.site,
            vteps: HashMap::default(),
            services: Services::default(),
            regions: Regions::default(),
            mapping: Mapping::default(),
        };
        table.add_sites(&message.sites, own_address)?;
        table.services.add(message.services)?;
        table.add_clients(&message.clients);
        table.add_mapping(&message.mapping)?;
        table.check_deployments()?;
        Ok(table)
    }

    /// Returns a copy of this table with `delta`, which must apply to its version.
    ///
    /// # Errors
    /// Returns a message if the result contradicts itself.
    pub fn apply(&self, delta: TableDelta, own_address: IpAddr) -> Result<Self, String> {
        let mut table = self.clone();
        table.version = delta.version;
        for prefix in delta.remove.clients {
            if !table.regions.remove(prefix) {
                return Err(format!("remove.clients: unknown prefix {prefix}"));
            }
        }
        for removed in delta.remove.mapping {
            let deployment = removed.deployment;
            for region in removed.regions {
                if !table.mapping.remove(deployment, region) {
                    return Err(format!(
                        "remove.mapping: deployment {deployment} has no sites for region {region}"
                    ));
                }
            }
        }
        for id in delta.remove.services {
            if !table.services.remove(id) {
                return Err(format!("remove.services: unknown id {id}"));
            }
        }
        table.add_sites(&delta.sites, own_address)?;
        table.services.add(delta.services)?;
        table.add_clients(&delta.clients);
        table.add_mapping(&delta.mapping)?;
        table.check_deployments()?;
        Ok(table)
    }

    fn add_sites(&mut self, sites: &[Site], own_address: IpAddr) -> Result<(), String> {
        for Site { id, vtep } in sites {
            if vtep.is_ipv4() != own_address.is_ipv4() {
                return Err(format!(
                    "sites: {id}: vtep {vtep} must be of the same family as tunnel.listen {own_address}"
                ));
            }
            self.vteps.insert(*id, *vtep);
        }
        Ok(())
    }

    fn add_clients(&mut self, clients: &[Client]) {
        for client in clients {
            self.regions.insert(client.prefix, client.region);
        }
    }

    fn add_mapping(&mut self, mapping: &[MappingEntry]) -> Result<(), String> {
        for entry in mapping {
            let MappingEntry {
                deployment, sites, ..
            } = entry;
            let reject = |reason: String| {
                Err(format!(
                    "mapping: deployment {deployment}, sites {sites:?}: {reason}"
                ))
            };
            if sites.is_empty() {
                return reject("empty list: name a site, or remove the regions".into());
            }
            for (n, id) in sites.iter().enumerate() {
                if *id != self.site && !self.vteps.contains_key(id) {
                    return reject(format!("unknown site {id}: add it to sites"));
                }
                if sites[..n].contains(id) {
                    return reject(format!("duplicate site {id}: remove one"));
                }
            }
            for region in &entry.regions {
                self.mapping.set(*deployment, *region, sites);
            }
        }
        Ok(())
    }

    /// Checks that each mapped deployment belongs to a service. A deployment without one is probably a wrong number.
    fn check_deployments(&self) -> Result<(), String> {
        let used: HashSet<u16> = self
            .services
            .iter()
            .map(|service| service.deployment)
            .collect();
        let unused = self.mapping.deployments().find(|id| !used.contains(id));
        unused.map_or(Ok(()), |deployment| {
            Err(format!(
                "mapping: deployment {deployment}: no service uses it: add one, or remove its regions"
            ))
        })
    }

    /// Returns the service with a name in the client's notation.
    #[inline]
    pub fn service(&self, name: &[u8]) -> Option<&Service> {
        self.services.find(name)
    }

    /// Returns the sites for a client of a service, best first.
    #[inline]
    pub fn sites(&self, service: &Service, client: IpAddr) -> impl Iterator<Item = NonZeroU8> {
        let region = self.regions.find(client);
        self.mapping.find(service.deployment, region)
    }

    /// Returns the version and the number of entries.
    pub fn summary(&self) -> TableSummary {
        TableSummary {
            version: self.version,
            site: self.site,
            sites: self.vteps.len(),
            services: self.services.iter().len(),
            deployments: self.mapping.deployments().len(),
            clients: self.regions.len(),
            mapping: self.mapping.len(),
        }
    }
}

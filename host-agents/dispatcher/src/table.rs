//! The controller's table: sites, services, clients' regions, and which sites are best for whom.

use std::net::IpAddr;
use std::num::NonZeroU8;

use foldhash::{HashMap, HashSet};

use crate::mapping::Mapping;
use crate::message::{Choice, Client, Difference, Site, Sizes, Whole};
use crate::regions::Regions;
use crate::service::{Service, Services};

/// The table, as lookups need it.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its version.
    pub version: u64,
    /// This dispatcher's site.
    pub site: NonZeroU8,
    /// Switches' tunnel addresses.
    pub vteps: HashMap<NonZeroU8, IpAddr>,
    services: Services,
    /// Clients' regions.
    pub regions: Regions,
    mapping: Mapping,
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
            services: Services::default(),
            regions: Regions::default(),
            mapping: Mapping::default(),
        };
        table.add_sites(&whole.sites, own)?;
        table.services.add(whole.services)?;
        table.add_clients(&whole.clients);
        table.map(&whole.mapping)?;
        table.check_deployments()?;
        Ok(table)
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
        for gone in difference.remove.mapping {
            let deployment = gone.deployment;
            for region in gone.regions {
                if !table.mapping.remove(deployment, region) {
                    return Err(format!(
                        "remove.mapping: deployment {deployment}, region {region} is not there"
                    ));
                }
            }
        }
        for id in difference.remove.services {
            if !table.services.remove(id) {
                return Err(format!("remove.services: {id} is not there"));
            }
        }
        table.add_sites(&difference.sites, own)?;
        table.services.add(difference.services)?;
        table.add_clients(&difference.clients);
        table.map(&difference.mapping)?;
        table.check_deployments()?;
        Ok(table)
    }

    fn add_sites(&mut self, sites: &[Site], own: IpAddr) -> Result<(), String> {
        for Site { id, vtep } in sites {
            if vtep.is_ipv4() != own.is_ipv4() {
                return Err(format!(
                    "sites: {id}'s vtep {vtep} is of another family than tunnel.listen {own}"
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

    fn map(&mut self, mapping: &[Choice]) -> Result<(), String> {
        for choice in mapping {
            let Choice {
                deployment, sites, ..
            } = choice;
            let wrong = |what: String| {
                Err(format!(
                    "mapping: deployment {deployment}, sites {sites:?}: {what}"
                ))
            };
            if sites.is_empty() {
                return wrong("there is none; name one, or remove the regions".into());
            }
            for (n, id) in sites.iter().enumerate() {
                if *id != self.site && !self.vteps.contains_key(id) {
                    return wrong(format!("site {id} is not among the sites"));
                }
                if sites[..n].contains(id) {
                    return wrong(format!("site {id} is there twice"));
                }
            }
            for region in &choice.regions {
                self.mapping.set(*deployment, *region, sites);
            }
        }
        Ok(())
    }

    /// What is mapped is of use: a deployment that no service has is one whose number somebody has mistaken.
    fn check_deployments(&self) -> Result<(), String> {
        let used: HashSet<u16> = self.services.iter().map(|one| one.deployment).collect();
        let stray = self.mapping.deployments().find(|one| !used.contains(one));
        stray.map_or(Ok(()), |deployment| {
            Err(format!(
                "mapping: deployment {deployment}: no service has it; add one, or remove its regions"
            ))
        })
    }

    /// The service of a name as a client sends it.
    #[inline]
    pub fn service(&self, name: &[u8]) -> Option<&Service> {
        self.services.find(name)
    }

    /// The sites for a service's client, best first.
    #[inline]
    pub fn sites(&self, service: &Service, client: IpAddr) -> impl Iterator<Item = NonZeroU8> {
        let region = self.regions.find(client);
        self.mapping.find(service.deployment, region)
    }

    /// How much there is of each list.
    pub fn sizes(&self) -> Sizes {
        Sizes {
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

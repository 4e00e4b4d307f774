// SPDX-License-Identifier: Apache-2.0
//! The pinned maps of an attached agent.

use std::path::Path;

use anyhow::{Context, Result, bail};
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray};

use crate::abi::{Config, Connection, Flow, REASONS, Server, SynKey};

/// The opened maps of an agent.
pub struct State {
    config: Array<MapData, Config>,
    servers: HashMap<MapData, u16, Server>,
    flows: HashMap<MapData, Connection, Flow>,
    packets: PerCpuArray<MapData, u64>,
    syn_keys: Array<MapData, SynKey>,
}

impl State {
    /// Open the maps that an agent has pinned in `pin_dir`.
    ///
    /// # Errors
    /// If nothing is attached, or a map cannot be opened.
    pub fn open(pin_dir: &Path) -> Result<Self> {
        if !pin_dir.join("config").exists() {
            bail!(
                "{}: nothing is attached: first run: frontage-cclb7 attach --interface IF --port 80",
                pin_dir.display()
            );
        }
        let open = |name: &str| {
            let path = pin_dir.join(name);
            MapData::from_pin(&path)
                .with_context(|| format!("cannot open {}: run as root", path.display()))
        };
        Ok(Self {
            config: Map::Array(open("config")?).try_into()?,
            servers: Map::HashMap(open("servers")?).try_into()?,
            flows: Map::HashMap(open("flows")?).try_into()?,
            packets: Map::PerCpuArray(open("packets")?).try_into()?,
            syn_keys: Map::Array(open("syn_keys")?).try_into()?,
        })
    }

    /// Return the settings in force.
    ///
    /// # Errors
    /// If the map cannot be read.
    pub fn config(&self) -> Result<Config> {
        Ok(self.config.get(&0, 0)?)
    }

    /// Put new settings in force, and add `ports`. Counters keep their values.
    ///
    /// # Errors
    /// If a map cannot be written.
    pub fn reconfigure(&mut self, config: Config, ports: &[u16]) -> Result<()> {
        self.config.set(0, config, 0)?;
        for port in ports {
            if self.servers.get(port, 0).is_err() {
                self.servers.insert(port, Server::default(), 0)?;
            }
        }
        Ok(())
    }

    /// Replace the keys of SYN cookies.
    ///
    /// # Errors
    /// If the map cannot be written.
    pub fn set_syn_keys(&mut self, keys: [SynKey; 2]) -> Result<()> {
        for (epoch, key) in (0..).zip(keys) {
            self.syn_keys.set(epoch, key, 0)?;
        }
        Ok(())
    }

    /// Return the loads by listening port, in order.
    ///
    /// # Errors
    /// If the map cannot be read.
    pub fn servers(&self) -> Result<Vec<(u16, Server)>> {
        let mut servers = self.servers.iter().collect::<Result<Vec<_>, _>>()?;
        servers.sort_by_key(|(port, _)| *port);
        Ok(servers)
    }

    /// Return the established connections. Connections that end during the call may be missing.
    pub fn flows(&self) -> Vec<(Connection, Flow)> {
        self.flows.iter().filter_map(Result::ok).collect()
    }

    /// Return the number of packets for each of [`REASONS`].
    ///
    /// # Errors
    /// If the map cannot be read.
    pub fn packets(&self) -> Result<Vec<(&'static str, u64)>> {
        (0..)
            .zip(REASONS)
            .map(|(index, name)| Ok((name, self.packets.get(&index, 0)?.iter().sum())))
            .collect()
    }
}

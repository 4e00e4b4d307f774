// SPDX-License-Identifier: Apache-2.0
//! Ports.

use std::collections::BTreeMap;

use softswitch_thrift::interface::{PortError, PortInfo, Ports};

use super::Services;

type Result<T> = std::result::Result<T, PortError>;

impl Ports for Services {
    fn bm_dev_mgr_add_port(&self, interface: String, port: i32, _pcap: String) -> Result<()> {
        let number = u32::try_from(port).map_err(|_| PortError::Error)?;
        let added = self.ports.attach(number, &interface);
        added.map_err(|error| {
            tracing::error!("thrift: port {number} ({interface}): {error:#}");
            PortError::Error
        })
    }

    fn bm_dev_mgr_remove_port(&self, port: i32) -> Result<()> {
        let number = u32::try_from(port).map_err(|_| PortError::Error)?;
        let removed = self.ports.detach(number);
        removed.then_some(()).ok_or(PortError::Error)
    }

    fn bm_dev_mgr_show_ports(&self) -> Result<Vec<PortInfo>> {
        let ports = self.ports.list().into_iter().map(|port| PortInfo {
            port_num: port.number.cast_signed(),
            iface_name: port.name,
            is_up: port.up,
            extra: BTreeMap::new(),
        });
        Ok(ports.collect())
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Loopback ports of TNA.

use crate::pipeline::Pipeline;
use crate::program::architecture::Architecture;

impl Pipeline {
    /// Returns true if packets of a program for TNA that leave through a port enter ingress again.
    pub fn is_loopback(&self, port: u32) -> bool {
        match &self.program.compiled().architecture {
            Architecture::Tna(m) => {
                m.chip.recirculates(port) || self.core.state.loopback_ports.contains(&port)
            }
            Architecture::V1Model(_) | Architecture::Psa(_) => false,
        }
    }

    /// Sets whether packets of a program for TNA that leave through a port enter ingress again. The recirculation ports of
    /// the chip always do. Returns whether the port was set before.
    pub fn set_port_loopback(&mut self, port: u32, is_loopback: bool) -> bool {
        let ports = &mut self.core.state.loopback_ports;
        match is_loopback {
            true => !ports.insert(port),
            false => ports.remove(&port),
        }
    }
}

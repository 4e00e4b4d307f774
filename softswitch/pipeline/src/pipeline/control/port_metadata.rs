// SPDX-License-Identifier: Apache-2.0
//! The port metadata of TNA.

use crate::error::StateError;
use crate::pipeline::Pipeline;
use crate::program::architecture::Architecture;

type Result<T> = std::result::Result<T, StateError>;

impl Pipeline {
    /// Returns the size in bytes of a port's metadata; 0 for programs of other architectures than TNA.
    pub fn port_metadata_bytes(&self) -> usize {
        match &self.program.compiled().architecture {
            Architecture::Tna(m) => m.chip.port_metadata_bytes(),
            Architecture::V1Model(_) | Architecture::Psa(_) => 0,
        }
    }

    /// Sets the bytes that the ingress parser receives in front of packets from a port: zeros follow. Without bytes, all
    /// are zero.
    pub fn set_port_metadata(&mut self, port: u32, metadata: &[u8]) -> Result<()> {
        let most = self.port_metadata_bytes();
        if metadata.len() > most {
            return Err(StateError::Invalid {
                what: format!("metadata of port {port}"),
                reason: format!("{} bytes given, at most {most} expected", metadata.len()),
            });
        }
        let all = &mut self.core.state.port_metadata;
        match metadata {
            [] => all.remove(&port),
            bytes => all.insert(port, bytes.to_vec()),
        };
        Ok(())
    }

    /// Returns the metadata of a port that were set, possibly empty.
    pub fn port_metadata(&self, port: u32) -> &[u8] {
        let metadata = self.core.state.port_metadata.get(&port);
        metadata.map_or(&[], Vec::as_slice)
    }
}

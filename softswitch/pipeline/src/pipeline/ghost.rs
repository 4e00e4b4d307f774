// SPDX-License-Identifier: Apache-2.0
//! The ghost threads of programs for Tofino 2, which learn the lengths of queues.

use super::{Pipeline, Switch};
use crate::Nanos;
use crate::program::architecture::Architecture;
use crate::program::tna::LOCAL_PORT_BITS;
use crate::tna::QueueLength;

impl Pipeline {
    /// Returns true if the selected program has a ghost thread, so that it needs [`queue_changed`](Self::queue_changed).
    #[inline]
    pub fn has_ghost(&self) -> bool {
        match &self.program.compiled().architecture {
            Architecture::Tna(metadata) => metadata.ghost.is_some(),
            Architecture::V1Model(_) | Architecture::Psa(_) => false,
        }
    }

    /// Runs the ghost threads of all pipes: a queue of a port now holds this number of packets.
    pub fn queue_changed(&mut self, port: u32, queue: u8, packets: u32, now: Nanos) {
        let length = QueueLength {
            port,
            queue,
            packets,
        };
        for pipe in 0..self.pipes() {
            self.select_program_of(pipe << LOCAL_PORT_BITS);
            if let Switch::Tna(mut switch) = self.switch() {
                switch.ghost(pipe as usize, length, now);
            }
        }
    }
}

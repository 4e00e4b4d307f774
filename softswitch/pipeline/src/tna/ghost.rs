// SPDX-License-Identifier: Apache-2.0
//! The ghost thread of Tofino 2: a control that runs in each pipe when the length of a queue changes, without a packet.

use super::Tna;
use crate::Nanos;
use crate::program::control::END;
use crate::program::layout::set_if_present;
use crate::program::tna::{GRESSES, LOCAL_PORT_BITS, QUEUE_BITS};

/// The new length of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLength {
    pub(crate) port: u32,
    /// The number of the queue among those of the port.
    pub(crate) queue: u8,
    pub(crate) packets: u32,
}

impl Tna<'_> {
    /// Runs the ghost thread of a pipe, if it has one, for each version of the program's registers. So both versions are
    /// current, and ingress can read either.
    pub(crate) fn ghost(&mut self, pipe: usize, length: QueueLength, now: Nanos) {
        let Some(metadata) = &self.metadata.ghost else {
            return;
        };
        self.core.state.select(pipe);
        let pipelines = &self.metadata.pipelines;
        let control = GRESSES * pipelines.count() + pipelines.of_pipe(pipe);
        if self.c.controls[control] == END {
            return;
        }
        let local_port = length.port & ((1 << LOCAL_PORT_BITS) - 1);
        let queue = u64::from(local_port << QUEUE_BITS) + u64::from(length.queue);
        self.core.mute(true);
        for ping_pong in 0..metadata.versions {
            let mut thread = self.core.pool.get();
            thread.frame.set(0, &[]);
            thread.begin(&self.c.layout);
            let fields = [
                (metadata.ping_pong, ping_pong),
                (metadata.qlength, length.packets.into()),
                (metadata.qid, queue),
                (metadata.pipe_id, (length.port >> LOCAL_PORT_BITS).into()),
            ];
            for (field, value) in fields {
                set_if_present(field, &mut thread.mem, value);
            }
            self.core.apply(self.c, control, &mut thread, now, &[]);
            self.core.pool.put(thread);
        }
        self.core.mute(false);
    }
}

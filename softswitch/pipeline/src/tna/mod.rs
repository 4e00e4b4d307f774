// SPDX-License-Identifier: Apache-2.0
//! The Tofino Native Architecture (TNA and T2NA): two parsers, controls and deparsers around the traffic manager. Only
//! bytes cross the traffic manager. Where the architecture leaves a choice, it is that of the chip.

mod egress;
mod errors;
mod generator;
mod ghost;
mod ingress;
mod replication;

use crate::Nanos;
use crate::core::Core;
use crate::packet::Packet;
use crate::program::Compiled;
use crate::program::layout::set_if_present;
use crate::program::tna::{TnaGress, TnaMetadata};

pub(crate) use ghost::QueueLength;

/// The gresses, by the position of their blocks in a pipeline.
const INGRESS: usize = 0;
const EGRESS: usize = 1;
const GRESSES: usize = 2;

/// Bytes of the frame check sequence, which the chip counts although the frame does not contain it.
const FRAME_CHECK_BYTES: u32 = 4;

/// The initial value of `ucast_egress_port`, which is not a port.
const NO_PORT: u64 = 0x1ff;

/// Bits of `drop_ctl`.
const DROP_PACKET: u64 = 1;
const DROP_COPY_TO_CPU: u64 = 1 << 1;
const DROP_MIRROR: u64 = 1 << 2;

/// A switch of TNA.
pub(crate) struct Tna<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) c: &'a Compiled,
    pub(crate) metadata: &'a TnaMetadata,
    /// The pipeline of the packet's pipe.
    pub(crate) pipeline: usize,
}

impl Tna<'_> {
    /// Selects the pipe of a port, whose state the packet uses from now on.
    fn select_pipe(&mut self, port: u32) {
        let pipes = &mut self.core.state;
        let pipe = pipes.of_port(port);
        pipes.select(pipe);
        self.pipeline = self.metadata.pipelines.of_pipe(pipe);
    }

    /// Returns the position in the program of a gress's blocks.
    fn block(&self, gress: usize) -> usize {
        GRESSES * self.pipeline + gress
    }

    /// Runs the parser of a gress for a packet behind `prefix` bytes of the chip, of which only the frame counts, and
    /// returns the error code.
    fn parse(&mut self, gress: usize, pkt: &mut Packet, prefix: usize, now: Nanos) -> u64 {
        pkt.begin(&self.c.layout.blank);
        if gress == INGRESS {
            let port = self.metadata.for_tm.ucast_egress_port;
            port.set64(&mut pkt.mem, NO_PORT);
        }
        let m = metadata_of(self.metadata, gress);
        pkt.ingress_len = (pkt.frame.len() - prefix) as u32 + FRAME_CHECK_BYTES;
        set_if_present(m.global_tstamp, &mut pkt.mem, now);
        self.core.state.externs.sums.fill(0);
        let block = self.block(gress);
        let error = self.core.parse(self.c, block, pkt, now).error;
        let flags = errors::flags(self.c, error);
        set_if_present(m.parser_err, &mut pkt.mem, flags);
        // The prefix never leaves the chip, even if the program does not parse it.
        pkt.start = pkt.start.max(prefix);
        error
    }

    /// Runs the deparser of a gress, except that the payload stays in the packet's frame. Returns the number of bytes that
    /// it emitted to the beginning of `to`.
    fn emit(&mut self, gress: usize, pkt: &mut Packet, now: Nanos, to: &mut Vec<u8>) -> usize {
        pkt.exit = false;
        self.core.state.externs.sums.fill(0);
        let block = self.block(gress);
        let bytes = self.core.emit(self.c, block, pkt, now, to);
        self.core.digest(self.c, pkt);
        bytes
    }
}

/// Returns the metadata of a gress.
fn metadata_of(metadata: &TnaMetadata, gress: usize) -> &TnaGress {
    match gress {
        INGRESS => &metadata.ingress,
        _ => &metadata.egress,
    }
}

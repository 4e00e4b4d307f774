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
use crate::program::tna::{GRESSES, IntrinsicValues, TnaMetadata};

pub(crate) use ghost::QueueLength;

/// The gresses, by the position of their blocks in a pipeline.
const INGRESS: usize = 0;
const EGRESS: usize = 1;

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

    /// Passes the chip's header to the parser of a gress, in front of `data` zeros and the packet. Returns the number of
    /// bytes that are now in front of the packet.
    fn put_header(
        &self,
        gress: usize,
        pkt: &mut Packet,
        values: IntrinsicValues,
        data: usize,
    ) -> usize {
        pkt.intrinsic = values;
        let header = &self.metadata.gress_of(gress).intrinsic;
        let is_in_frame = !self.core.receives_header(self.block(gress));
        let bytes = data + if is_in_frame { header.bytes } else { 0 };
        let prefix = pkt.frame.extend_front(bytes);
        if is_in_frame {
            header.write(prefix, &pkt.intrinsic);
        }
        bytes
    }

    /// Runs the parser of a gress for a packet behind `prefix` bytes of the chip, of which only the frame counts, and
    /// returns the error code.
    fn parse(&mut self, gress: usize, pkt: &mut Packet, prefix: usize, now: Nanos) -> u64 {
        let m = self.metadata.gress_of(gress);
        pkt.begin_parts(&self.c.layout, &m.used_parts);
        if gress == INGRESS {
            let port = self.metadata.for_tm.ucast_egress_port;
            port.set64(&mut pkt.mem, NO_PORT);
        }
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

    /// Runs the deparser of a gress, except that the frame stays as it is. Returns the number of bytes that it emitted.
    fn emit(&mut self, gress: usize, pkt: &mut Packet, now: Nanos) -> usize {
        pkt.exit = false;
        self.core.state.externs.sums.fill(0);
        let block = self.block(gress);
        let bytes = self.core.emit(self.c, block, pkt, now);
        self.core.digest(self.c, pkt);
        bytes
    }
}

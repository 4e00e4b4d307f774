// SPDX-License-Identifier: Apache-2.0
// Registers of Tofino 2 as a queue, a stack and a log, the largest part of a wide cell, and cells that change all at once. A packet
// returns with a result.
#include <core.p4>
#include <t2na.p4>

header command_t {
    bit<8> op;
    bit<32> value;
}

struct headers_t {
    command_t command;
}

struct nothing_t {}

const bit<32> FULL = 0xffffffff;
const bit<32> EMPTY = 0xeeeeeeee;

parser IngressParser(
    packet_in packet,
    out headers_t hdr,
    out nothing_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md
) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.command);
        transition accept;
    }
}

control Ingress(
    inout headers_t hdr,
    inout nothing_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md
) {
    Register<bit<32>, bit<8>>(3) queue;
    Register<bit<32>, bit<8>>(2) stack;
    Register<bit<32>, bit<8>>(3) log;
    Register<bit<128>, bit<8>>(1) wide;
    Register<bit<32>, bit<8>>(300, 5) cells;

    RegisterAction<bit<32>, bit<8>, bit<32>>(queue) enqueue = {
        void apply(inout bit<32> value, out bit<32> result) {
            value = hdr.command.value;
            result = 0;
        }
        void overflow(inout bit<32> value, out bit<32> result) {
            result = FULL;
        }
    };
    RegisterAction<bit<32>, bit<8>, bit<32>>(queue) dequeue = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
        void underflow(inout bit<32> value, out bit<32> result) {
            result = EMPTY;
        }
    };
    RegisterAction<bit<32>, bit<8>, bit<32>>(stack) push = {
        void apply(inout bit<32> value, out bit<32> result) {
            value = hdr.command.value;
            result = 1;
        }
    };
    RegisterAction<bit<32>, bit<8>, bit<32>>(stack) pop = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
        }
        void underflow(inout bit<32> value, out bit<32> result) {
            result = EMPTY;
        }
    };
    RegisterAction<bit<32>, bit<8>, bit<32>>(log) exchange = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
            value = hdr.command.value;
        }
    };
    MinMaxAction<bit<128>, bit<8>, bit<8>>(wide) largest = {
        void apply(inout bit<128> value, out bit<8> result) {
            value[31:0] = hdr.command.value;
            result = this.max8(value, 0x7);
        }
    };

    RegisterAction<bit<32>, bit<8>, bit<32>>(cells) add = {
        void apply(inout bit<32> value) {
            value = value + hdr.command.value;
        }
    };

    apply {
        bit<32> result = 0;
        if (hdr.command.op == 0) {
            result = enqueue.enqueue();
        } else if (hdr.command.op == 1) {
            result = dequeue.dequeue();
        } else if (hdr.command.op == 2) {
            result = push.push();
        } else if (hdr.command.op == 3) {
            result = pop.pop();
        } else if (hdr.command.op == 4) {
            result = exchange.execute_log();
        } else if (hdr.command.op == 5) {
            result = (bit<32>) largest.execute(0);
        } else if (hdr.command.op == 6) {
            add.sweep();
        } else if (hdr.command.op == 7) {
            cells.clear(9);
        } else {
            result = cells.read(hdr.command.value[7:0]);
        }
        hdr.command.value = result;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
        ig_tm_md.bypass_egress = 1;
    }
}

control IngressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in nothing_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md
) {
    apply {
        packet.emit(hdr);
    }
}

parser EgressParser(
    packet_in packet,
    out nothing_t hdr,
    out nothing_t meta,
    out egress_intrinsic_metadata_t eg_intr_md
) {
    state start {
        packet.extract(eg_intr_md);
        transition accept;
    }
}

control Egress(
    inout nothing_t hdr,
    inout nothing_t meta,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
    inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md
) {
    apply {}
}

control EgressDeparser(
    packet_out packet,
    inout nothing_t hdr,
    in nothing_t meta,
    in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md
) {
    apply {}
}

Pipeline(
    IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()
) pipe;

Switch(pipe) main;

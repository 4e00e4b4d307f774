// SPDX-License-Identifier: Apache-2.0
// Externs of TNA with state, and hashes. The first byte after the Ethernet header says what to do.
#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header command_t {
    bit<8> op;
    bit<8> arg;
    bit<32> value;
}

struct headers_t {
    ethernet_t ethernet;
    command_t command;
}

struct metadata_t {}
struct nothing_t {}

struct pair_t {
    bit<32> low;
    bit<32> high;
}

parser IngressParser(
    packet_in packet,
    out headers_t hdr,
    out metadata_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md
) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.command);
        transition accept;
    }
}

control Ingress(
    inout headers_t hdr,
    inout metadata_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md
) {
    Register<bit<32>, bit<8>>(16, 100) sums;
    RegisterAction<bit<32>, bit<8>, bit<32>>(sums) add = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = value;
            value = value + hdr.command.value;
        }
    };
    Register<pair_t, bit<8>>(16, { 5, 0 }) pairs;
    RegisterAction<pair_t, bit<8>, bit<32>>(pairs) exchange = {
        void apply(inout pair_t value, out bit<32> result) {
            if (hdr.command.value > value.low) {
                value.low = hdr.command.value;
                value.high = value.high + 1;
            }
            result = value.high;
        }
    };
    DirectRegister<bit<32>>(7) visits;
    DirectRegisterAction<bit<32>, bit<32>>(visits) visit = {
        void apply(inout bit<32> value, out bit<32> result) {
            value = value + 1;
            result = value;
        }
    };
    Counter<bit<32>, bit<8>>(8, CounterType_t.PACKETS_AND_BYTES) counter;
    Meter<bit<8>>(8, MeterType_t.PACKETS) meter;
    Lpf<bit<32>, bit<8>>(8) lpf;
    Wred<bit<32>, bit<8>>(8, 1, 2) wred;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) crc16;
    CRCPolynomial<bit<32>>(32w0x04C11DB7, false, false, false, 32w0xffffffff, 32w0xffffffff) bzip2;
    Hash<bit<32>>(HashAlgorithm_t.CUSTOM, bzip2) custom;
    Random<bit<8>>() random;
    MathUnit<bit<32>>(MathOp_t.SQR, 1) square;
    RegisterAction<bit<32>, bit<8>, bit<32>>(sums) squared = {
        void apply(inout bit<32> value, out bit<32> result) {
            value = square.execute(hdr.command.value);
            result = value;
        }
    };

    action count_visit() {
        hdr.command.value = visit.execute();
    }

    table visitors {
        key = { hdr.command.arg: exact; }
        actions = { count_visit; }
        const default_action = count_visit();
        registers = visits;
        size = 16;
    }

    apply {
        ig_tm_md.ucast_egress_port = 1;
        ig_tm_md.bypass_egress = 1;
        if (hdr.command.op == 0) {
            hdr.command.value = add.execute(hdr.command.arg);
        } else if (hdr.command.op == 1) {
            hdr.command.value = exchange.execute(hdr.command.arg);
        } else if (hdr.command.op == 2) {
            visitors.apply();
        } else if (hdr.command.op == 3) {
            counter.count(hdr.command.arg);
            hdr.command.value = (bit<32>) meter.execute(hdr.command.arg);
        } else if (hdr.command.op == 4) {
            hdr.command.value = lpf.execute(hdr.command.value, hdr.command.arg);
        } else if (hdr.command.op == 5) {
            hdr.command.value = (bit<32>) wred.execute(hdr.command.value, hdr.command.arg);
        } else if (hdr.command.op == 6) {
            hdr.command.value = (bit<32>) crc16.get({ hdr.command.arg, hdr.command.value });
        } else if (hdr.command.op == 7) {
            hdr.command.value = custom.get({ hdr.command.value });
        } else if (hdr.command.op == 8) {
            hdr.command.value = (bit<32>) random.get();
        } else if (hdr.command.op == 9) {
            hdr.command.value = squared.execute(hdr.command.arg);
        }
    }
}

control IngressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in metadata_t meta,
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

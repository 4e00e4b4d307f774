// SPDX-License-Identifier: Apache-2.0
// Every path around the traffic manager of TNA. The first byte after the Ethernet header says what to do.
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
    bit<16> value;
}

// Data from ingress for egress: the first byte of every packet that egress parses.
header bridged_t {
    bit<8> kind;
    bit<16> handed;
    bit<8> round;
}

header mirrored_t {
    bit<8> kind;
    bit<16> handed;
}

header resubmitted_t {
    bit<16> value;
    bit<48> rest;
}

// The metadata that egress saw.
header trail_t {
    bit<8> kind;
    bit<8> round;
    bit<16> handed;
    bit<16> instance;
    bit<8> first;
    bit<8> bytes;
}

struct headers_t {
    bridged_t bridged;
    ethernet_t ethernet;
    command_t command;
    trail_t trail;
}

struct note_t {
    bit<8> op;
    bit<16> value;
}

struct ingress_metadata_t {
    resubmitted_t resubmitted;
    mirrored_t mirrored;
    MirrorId_t session;
    note_t note;
}

struct egress_metadata_t {
    mirrored_t mirrored;
    MirrorId_t session;
    bit<8> kind;
    bit<8> round;
    bit<16> handed;
}

const bit<8> BRIDGED = 1;
const bit<8> INGRESS_MIRROR = 2;
const bit<8> EGRESS_MIRROR = 3;
const bit<3> TYPE = 1;

parser IngressParser(
    packet_in packet,
    out headers_t hdr,
    out ingress_metadata_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md
) {
    state start {
        packet.extract(ig_intr_md);
        transition select(ig_intr_md.resubmit_flag) {
            1: resubmitted;
            default: received;
        }
    }
    state resubmitted {
        packet.extract(meta.resubmitted);
        transition ethernet;
    }
    state received {
        packet.advance(PORT_METADATA_SIZE);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x9003: command;
        }
    }
    state command {
        packet.extract(hdr.command);
        transition accept;
    }
}

control Ingress(
    inout headers_t hdr,
    inout ingress_metadata_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md
) {
    apply {
        hdr.bridged = { BRIDGED, 7, 0 };
        if (ig_intr_md.ingress_port == 68) {
            hdr.bridged.round = 1;
            hdr.command.op = 0;
        }
        if (ig_intr_md.resubmit_flag == 1) {
            hdr.bridged.round = 2;
            hdr.bridged.handed = meta.resubmitted.value;
        }
        ig_tm_md.ucast_egress_port = 1;
        if (hdr.command.op == 0) {
            ig_tm_md.ucast_egress_port = (PortId_t) hdr.command.arg;
        } else if (hdr.command.op == 1) {
            ig_dprsr_md.drop_ctl = 1;
        } else if (hdr.command.op == 2) {
            ig_tm_md.mcast_grp_a = (MulticastGroupId_t) hdr.command.arg;
            ig_tm_md.mcast_grp_b = hdr.command.value;
        } else if (hdr.command.op == 3) {
            ig_dprsr_md.mirror_type = TYPE;
            meta.session = (MirrorId_t) hdr.command.arg;
            meta.mirrored.kind = INGRESS_MIRROR;
            meta.mirrored.handed = 0x1234;
            ig_dprsr_md.drop_ctl = 1;
        } else if (hdr.command.op == 4) {
            ig_dprsr_md.resubmit_type = TYPE;
            meta.resubmitted.value = hdr.command.value;
            hdr.command.value = 0;
        } else if (hdr.command.op == 5) {
            ig_tm_md.ucast_egress_port = 68;
        } else if (hdr.command.op == 6) {
            ig_tm_md.copy_to_cpu = 1;
        } else if (hdr.command.op == 8) {
            ig_dprsr_md.digest_type = TYPE;
            meta.note = { hdr.command.op, hdr.command.value };
        } else if (hdr.command.op == 9) {
            ig_tm_md.bypass_egress = 1;
            hdr.bridged.setInvalid();
        }
    }
}

control IngressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in ingress_metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md
) {
    Mirror() mirror;
    Resubmit() resubmit;
    Digest<note_t>() notes;

    apply {
        if (ig_dprsr_md.mirror_type == TYPE) {
            mirror.emit<mirrored_t>(meta.session, { meta.mirrored.kind, meta.mirrored.handed });
        }
        if (ig_dprsr_md.resubmit_type == TYPE) {
            resubmit.emit<resubmitted_t>({ meta.resubmitted.value, 0 });
        }
        if (ig_dprsr_md.digest_type == TYPE) {
            notes.pack(meta.note);
        }
        packet.emit(hdr);
    }
}

parser EgressParser(
    packet_in packet,
    out headers_t hdr,
    out egress_metadata_t meta,
    out egress_intrinsic_metadata_t eg_intr_md
) {
    state start {
        packet.extract(eg_intr_md);
        meta.kind = packet.lookahead<bit<8>>();
        meta.round = 0;
        transition select(meta.kind) {
            BRIDGED: bridged;
            default: mirrored;
        }
    }
    state bridged {
        packet.extract(hdr.bridged);
        meta.handed = hdr.bridged.handed;
        meta.round = hdr.bridged.round;
        transition ethernet;
    }
    state mirrored {
        packet.extract(meta.mirrored);
        meta.handed = meta.mirrored.handed;
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.command);
        transition accept;
    }
}

control Egress(
    inout headers_t hdr,
    inout egress_metadata_t meta,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
    inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md
) {
    apply {
        hdr.bridged.setInvalid();
        if (eg_intr_md.egress_port != 68) {
            hdr.trail = {
                meta.kind, meta.round, meta.handed, eg_intr_md.egress_rid,
                (bit<8>) eg_intr_md.egress_rid_first, (bit<8>) eg_intr_md.pkt_length
            };
        }
        if (hdr.command.op == 10 && meta.kind == BRIDGED) {
            eg_dprsr_md.mirror_type = TYPE;
            eg_dprsr_md.drop_ctl = 1;
            meta.session = (MirrorId_t) hdr.command.arg;
            hdr.command.value = 77;
            meta.mirrored.kind = EGRESS_MIRROR;
            meta.mirrored.handed = 0x5678;
        }
    }
}

control EgressDeparser(
    packet_out packet,
    inout headers_t hdr,
    in egress_metadata_t meta,
    in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md
) {
    Mirror() mirror;

    apply {
        if (eg_dprsr_md.mirror_type == TYPE) {
            mirror.emit<mirrored_t>(meta.session, { meta.mirrored.kind, meta.mirrored.handed });
        }
        packet.emit(hdr);
    }
}

Pipeline(
    IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()
) pipe;

Switch(pipe) main;

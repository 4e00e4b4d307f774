// SPDX-License-Identifier: Apache-2.0
// The egress of the scheduling pipe, before its ingress: adds the outer headers of tunnels (control/encapsulation.p4). The core has
// chosen the next hop.
#ifndef FRONTAGE_TNA_FOLDED_TUNNELS_P4
#define FRONTAGE_TNA_FOLDED_TUNNELS_P4

// The core: a datagram that entered at another site goes to the replica in a tunnel, unchanged (control/server.p4).
control ToReplica(inout headers_t hdr, in metadata_t meta) {
    action add_remote() {
        hdr.remote.setValid();
        hdr.remote.kind = INTERNAL_REMOTE;
        hdr.remote.remote = (bit<8>)Remote.REPLICA;
    }

    action read_origin() {
        IN_HASH { hdr.remote.origin_site = hdr.gate.origin_site; }
    }

    action read_sid() {
        IN_HASH { hdr.remote.remote_id = meta.sid; }
    }

    action read_flow() {
        IN_HASH { hdr.remote.flow = meta.connection_hash[15:0]; }
    }

    apply {
        add_remote();
        read_origin();
        read_sid();
        read_flow();
    }
}

// Packets of the core, and workers for its trees, which end here.
parser TunnelsParser(packet_in packet, out headers_t hdr, out metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        bit<8> kind = packet.lookahead<bit<8>>();
        transition select(kind) {
            INTERNAL_WORKER: worker;
            INTERNAL_REMOTE: remote;
            default: accept;
        }
    }

    state worker {
        packet.extract(hdr.worker);
        transition accept;
    }

    state remote {
        packet.extract(hdr.remote);
        packet.extract(hdr.scheduled);
        packet.extract(hdr.bridge);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: ipv6;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

control TunnelsEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
                      in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                      inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                      inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) tunnel_drops;

    Encapsulation() encapsulation;
    bit<16> remote_id;
    Remote remote;

    action read_remote() {
        remote = (Remote)hdr.remote.remote;
        remote_id = hdr.remote.remote_id;
        meta.origin_site = hdr.remote.origin_site;
        meta.connection_hash[15:0] = hdr.remote.flow;
    }

    // The egress of the gate compares the length of the frame.
    action add_bytes(bit<16> bytes) {
        hdr.bridge.other_bytes = hdr.bridge.other_bytes + bytes;
    }

    @hidden table overhead {
        key = {
            hdr.outer_ipv4.isValid(): ternary;
            hdr.outer_ipv6.isValid(): ternary;
            hdr.vxlan.isValid(): ternary;
        }
        actions = { add_bytes; NoAction; }
        const entries = {
            (true, _, true): add_bytes(50);
            (true, _, _): add_bytes(28);
            (_, true, true): add_bytes(70);
            (_, true, _): add_bytes(48);
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        if (hdr.worker.isValid()) {
            eg_dprsr_md.drop_ctl = 1;
        } else if (hdr.remote.isValid()) {
            read_remote();
            encapsulation.apply(hdr, meta, remote, remote_id);
            overhead.apply();
            if (meta.verdict != VERDICT_CONTINUE) {
                tunnel_drops.count(meta.verdict, TUNNEL_EGRESS_BYTES);
                eg_dprsr_md.drop_ctl = 1;
            }
            hdr.remote.setInvalid();
        }
    }
}

control TunnelsDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    OuterChecksum() outer_checksum;

    apply {
        outer_checksum.apply(hdr);
        packet.emit(hdr);
    }
}

#endif

// SPDX-License-Identifier: Apache-2.0
// The outer headers of tunnels: what the first pass found in them, and their length for egress.
#ifndef FRONTAGE_TNA_OUTER_P4
#define FRONTAGE_TNA_OUTER_P4

control TunnelArrival(inout headers_t hdr, inout metadata_t meta) {
    action read_second_pass() {
        meta.from_tunnel = 1;
        meta.peer_site = hdr.second_pass.peer_site;
        meta.peer_source_set = hdr.second_pass.peer_source_set;
        meta.inner_length = hdr.second_pass.inner_length;
    }

    apply {
        read_second_pass();
        if (hdr.vxlan.isValid()) {
            hdr.ethernet.ether_type = hdr.inner_ethernet.ether_type;
        } else {
            hdr.ethernet.ether_type = hdr.gre.protocol;
        }
    }
}

// Compares the length of the inner packet with what the outer headers leave for it.
control InnerExcess(in headers_t hdr, in metadata_t meta, out bit<16> excess) {
    Excess() inner;

    apply {
        excess = 0;
        if (meta.from_tunnel == 1) {
            inner.apply(hdr, meta.inner_length, excess);
        }
    }
}

control OuterDeparture(inout headers_t hdr) {
    apply {
        if (hdr.outer_ipv4.isValid()) {
            hdr.bridge.has_outer = 1;
            hdr.bridge.length = hdr.outer_ipv4.total_length;
            hdr.bridge.other_bytes = 14 + BRIDGE_BYTES + FRAME_CHECK_BYTES;
        } else if (hdr.outer_ipv6.isValid()) {
            hdr.bridge.has_outer = 1;
            hdr.bridge.length = hdr.outer_ipv6.payload_length;
            hdr.bridge.other_bytes = 54 + BRIDGE_BYTES + FRAME_CHECK_BYTES;
        }
    }
}

#endif

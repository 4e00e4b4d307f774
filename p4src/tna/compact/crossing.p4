// SPDX-License-Identifier: Apache-2.0
// The traffic manager and the recirculation port pass on headers only (tna/crossing.p4).
#ifndef FRONTAGE_TNA_COMPACT_CROSSING_P4
#define FRONTAGE_TNA_COMPACT_CROSSING_P4

// Until the pipe of the schedulers has looked up the discipline of the queue
#ifdef FOUR_PIPES
#define INITIALIZE_DISCIPLINE hdr.bridge.discipline = (bit<8>)Discipline.NONE;
#else
#define INITIALIZE_DISCIPLINE
#endif

// Ingress: a packet leaves for egress.
control Departure(inout headers_t hdr) {
    action leave4() {
        hdr.bridge.setValid();
        hdr.bridge.kind = INTERNAL_BRIDGE;
        INITIALIZE_DISCIPLINE
        hdr.bridge.length_reason = DROP_IPV4_HEADER;
        hdr.bridge.length = hdr.ipv4.total_length;
        hdr.bridge.other_bytes = 14 + BRIDGE_BYTES + FRAME_CHECK_BYTES;
    }

    action leave6() {
        hdr.bridge.setValid();
        hdr.bridge.kind = INTERNAL_BRIDGE;
        INITIALIZE_DISCIPLINE
        hdr.bridge.length_reason = DROP_IPV6_HEADER;
        hdr.bridge.length = hdr.ipv6.payload_length;
        hdr.bridge.other_bytes = 54 + BRIDGE_BYTES + FRAME_CHECK_BYTES;
    }

    action leave() {
        hdr.bridge.setValid();
        hdr.bridge.kind = INTERNAL_BRIDGE;
        INITIALIZE_DISCIPLINE
        hdr.bridge.length_reason = DROP_NONE;
        hdr.bridge.length = 0;
        hdr.bridge.other_bytes = 0;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            leave4();
        } else if (hdr.ipv6.isValid()) {
            leave6();
        } else {
            leave();
        }
    }
}

#endif

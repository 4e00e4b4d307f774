// SPDX-License-Identifier: Apache-2.0
// A repeater between ports 1 and 2. Like a scheduler, it recirculates a worker for each departing packet, `LAPS` times.
#include <core.p4>
#include <v1model.p4>

#define SESSION 1
#define LAPS 3

const bit<32> NORMAL = 0;

struct headers_t { }
struct metadata_t { @field_list(1) bit<8> laps; }

parser P(packet_in pkt, out headers_t hdr, inout metadata_t m, inout standard_metadata_t std) {
    state start { transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t std) {
    counter(4, CounterType.packets_and_bytes) laps;
    apply {
        if (m.laps == 0) {
            std.egress_spec = 3 - std.ingress_port;
        } else {
            laps.count((bit<32>)m.laps);
            if (m.laps == LAPS) {
                mark_to_drop(std);
            } else {
                std.egress_spec = 300; // a port without a queue
            }
        }
    }
}

control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == NORMAL && m.laps == 0) {
            clone_preserving_field_list(CloneType.E2E, SESSION, 1);
        } else {
            m.laps = m.laps + 1;
            truncate(60);
            recirculate_preserving_field_list(1);
        }
    }
}

control C(inout headers_t hdr, inout metadata_t m) { apply { } }

control D(packet_out pkt, in headers_t hdr) { apply { } }

V1Switch(P(), V(), I(), E(), C(), D()) main;

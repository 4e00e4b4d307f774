// SPDX-License-Identifier: Apache-2.0
// Two wires: ports 2 and 3, and ports 4 and 5, forward to each other. The ports' links have the delays.
#include <core.p4>
#include <v1model.p4>

struct headers_t {}

struct metadata_t {}

parser WiresParser(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control WiresVerify(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control WiresIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = standard.ingress_port ^ 1;
    }
}

control WiresEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {}
}

control WiresCompute(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control WiresDeparser(packet_out packet, in headers_t headers) {
    apply {}
}

V1Switch(WiresParser(), WiresVerify(), WiresIngress(), WiresEgress(), WiresCompute(), WiresDeparser()) main;

// SPDX-License-Identifier: Apache-2.0
// A wire: ports 1 and 2 forward to each other. The ports' links have its rate, delay and loss.
#include <core.p4>
#include <v1model.p4>

struct headers_t {}

struct metadata_t {}

parser WireParser(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control WireVerify(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control WireIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 3 - standard.ingress_port;
    }
}

control WireEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {}
}

control WireCompute(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control WireDeparser(packet_out packet, in headers_t headers) {
    apply {}
}

V1Switch(WireParser(), WireVerify(), WireIngress(), WireEgress(), WireCompute(), WireDeparser()) main;

// SPDX-License-Identifier: Apache-2.0
// Forwards each frame to the port that the last byte of its destination address names. mininet gives its hosts
// the addresses 00:00:00:00:00:01, 00:00:00:00:00:02 and so on (`mn --mac`). Frames to groups are dropped.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<40> destination;
    bit<8> port;
    bit<48> source;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

parser AddressParser(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition accept;
    }
}

control AddressVerify(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control AddressIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {
        if (headers.ethernet.isValid() && headers.ethernet.destination[32:32] == 0) {
            standard.egress_spec = (bit<9>)headers.ethernet.port;
        } else {
            mark_to_drop(standard);
        }
    }
}

control AddressEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {}
}

control AddressCompute(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control AddressDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
    }
}

V1Switch(AddressParser(), AddressVerify(), AddressIngress(), AddressEgress(), AddressCompute(), AddressDeparser()) main;

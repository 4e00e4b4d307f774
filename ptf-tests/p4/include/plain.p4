// SPDX-License-Identifier: Apache-2.0
// Everything around an ingress that works on a probe.
#ifndef PLAIN_P4
#define PLAIN_P4

#include "probe.p4"

struct headers_t {
    ethernet_t ethernet;
    probe_t probe;
}

struct metadata_t { }

parser ProbeParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.probe);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control ProbeDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
    }
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Controls that do nothing, in profiles without Artemis and Auspice: steering, tunnels, demand.
#ifndef FRONTAGE_TNA_WITHOUT_STEERING_P4
#define FRONTAGE_TNA_WITHOUT_STEERING_P4

control InnerExcess(in headers_t hdr, in metadata_t meta, out bit<16> excess) {
    apply {
        excess = 0;
    }
}

control TunnelArrival(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control OuterDeparture(inout headers_t hdr) {
    apply {}
}

control OuterChecksum(inout headers_t hdr) {
    apply {}
}

control OuterDestination(in headers_t hdr, inout ipv4_t destination4, inout ipv6_t destination6, inout bit<1> by_ipv4) {
    apply {}
}

control Tunnel(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Region(in headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Demand(in headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Steering(in headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Encapsulation(inout headers_t hdr, inout metadata_t meta, in Remote kind, in bit<16> number) {
    apply {}
}

control Copies(inout headers_t hdr, inout metadata_t meta, in bit<16> site) {
    apply {}
}

#endif

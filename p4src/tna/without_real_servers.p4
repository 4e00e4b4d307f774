// SPDX-License-Identifier: Apache-2.0
// A control that does nothing, in profiles without QDSR.
#ifndef FRONTAGE_TNA_WITHOUT_REAL_SERVERS_P4
#define FRONTAGE_TNA_WITHOUT_REAL_SERVERS_P4

control RealServers(in headers_t hdr, inout metadata_t meta) {
    apply {}
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Controls that do nothing, in profiles without the resolution of neighbors.
#ifndef FRONTAGE_TNA_WITHOUT_LEARNING_P4
#define FRONTAGE_TNA_WITHOUT_LEARNING_P4

control NeighborMessage(in headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Learning(inout metadata_t meta) {
    apply {}
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Controls that do nothing, in profiles without AIFO, SP-PIFO and ECN marks.
#ifndef FRONTAGE_TNA_WITHOUT_SCHEDULERS_P4
#define FRONTAGE_TNA_WITHOUT_SCHEDULERS_P4

control Rank(in headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Scheduler(inout metadata_t meta) {
    apply {}
}

control BoundReport(inout metadata_t meta, inout MirrorType_t mirror_type) {
    apply {}
}

control Departures(inout metadata_t meta, in depth_t depth_after) {
    apply {}
}

control Ecn(inout headers_t hdr, in metadata_t meta, in depth_t enqueue_depth) {
    apply {}
}

#endif

// SPDX-License-Identifier: Apache-2.0
// The verdict of the early checks, in the order in which other architectures run them.
#ifndef FRONTAGE_TNA_VERDICT_P4
#define FRONTAGE_TNA_VERDICT_P4

control Verdict(inout metadata_t meta) {
    apply {
        if (meta.port_verdict != VERDICT_CONTINUE) {
            meta.verdict = meta.port_verdict;
        } else if (meta.header_verdict != VERDICT_CONTINUE) {
            meta.verdict = meta.header_verdict;
        } else if (meta.neighbor_verdict != VERDICT_CONTINUE) {
            meta.verdict = meta.neighbor_verdict;
        } else if (meta.tunnel_verdict != VERDICT_CONTINUE) {
            meta.verdict = meta.tunnel_verdict;
        } else if (meta.vip_verdict != VERDICT_CONTINUE) {
            meta.verdict = meta.vip_verdict;
        } else if (meta.real_server_verdict != VERDICT_CONTINUE) {
            meta.verdict = meta.real_server_verdict;
        }
    }
}

#endif

// SPDX-License-Identifier: Apache-2.0
// State of each server for operators, by SID: its last report, and the number of connections assigned to it.
// The data plane does not use it.
#ifndef FRONTAGE_V1MODEL_SERVER_LOADS_P4
#define FRONTAGE_V1MODEL_SERVER_LOADS_P4

// The carrier of a report; zero without a report.
#define CARRIER_TCP 8w1
#define CARRIER_IP6 8w2

control ServerLoads(in headers_t hdr, in metadata_t meta) {
    // carrier (8) | code of RPT (8) | code of N_AF (8) | code of N_FF (8) | 1 with a score (16) | score (16)
    register<bit<64>>(SERVERS) reports;
    counter(SERVERS, CounterType.packets) new_flows;

    apply {
        if (meta.direction == Direction.DOWN && meta.outcome == OUTCOME_INSIGHT) {
            bit<32> loads = CARRIER_IP6 ++ meta.quic_cookie.rpt ++ meta.quic_cookie.n_af ++ meta.quic_cookie.n_ff;
            if (hdr.tcp.isValid()) {
                bit<32> tsval = hdr.tcp_timestamp.tsval;
                loads = CARRIER_TCP ++ 2w0 ++ tsval[15:10] ++ 3w0 ++ tsval[9:5] ++ 3w0 ++ tsval[4:0];
            }
            bit<32> score = 0;
            if (meta.tree.op == TREE_SET) {
                score = 16w1 ++ meta.tree.score;
            }
            reports.write((bit<32>)meta.sid, loads ++ score);
        } else if (meta.direction == Direction.UP && meta.outcome >= OUTCOME_ASSIGNED_HASH
            && meta.outcome <= OUTCOME_ASSIGNED_NO_LOAD) {
            new_flows.count((bit<32>)meta.sid);
        }
    }
}

#endif

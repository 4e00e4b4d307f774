// SPDX-License-Identifier: Apache-2.0
// Discipline of the egress port's queue: FIFO, AIFO, which decides on admission, or SP-PIFO, which chooses the
// priority. A port without an entry has a FIFO queue, at the cost of one lookup. Worker packets (v1model/worker.p4)
// update the port's registers here.
control Scheduler(inout metadata_t meta) {
    Aifo() aifo;
    SpPifo() sp_pifo;

    action use_fifo(depth_t ecn_threshold) {
        meta.discipline = Discipline.FIFO;
        meta.ecn_threshold = ecn_threshold;
    }

    action use_aifo(depth_t ecn_threshold, bit<8> default_rank, bit<8> window, bit<16> sample_interval,
                    depth_t capacity, bit<16> report_mask) {
        meta.discipline = Discipline.AIFO;
        meta.ecn_threshold = ecn_threshold;
        meta.rank = default_rank;
        meta.aifo.window = window;
        meta.aifo.sample_interval = sample_interval;
        meta.aifo.capacity = capacity;
        meta.report_mask = report_mask;
    }

    action use_sp_pifo(depth_t ecn_threshold, bit<8> default_rank) {
        meta.discipline = Discipline.SP_PIFO;
        meta.ecn_threshold = ecn_threshold;
        meta.rank = default_rank;
    }

    table port {
        key = { meta.egress_port: exact @name("egress_port"); }
        actions = { use_fifo; use_aifo; use_sp_pifo; NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        port.apply();
        if (meta.discipline != Discipline.NONE) {
            if (meta.has_cookie_rank == 1) {
                meta.rank = meta.cookie_rank;
            }
            if (meta.discipline == Discipline.AIFO) {
                aifo.apply(meta);
            } else if (meta.discipline == Discipline.SP_PIFO) {
                sp_pifo.apply(meta);
            }
        }
    }
}

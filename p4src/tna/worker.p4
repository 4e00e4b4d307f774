// SPDX-License-Identifier: Apache-2.0
// Worker packets: they carry updates to the registers of ingress, because egress cannot reach them, ingress accesses each
// register once per packet, and each pipe has its own registers. A worker packet is a mirrored packet of which only the
// header in front (worker_t) matters. Its mirror session leads to the recirculation ports of all pipes. Without the session
// nothing is mirrored.
#ifndef FRONTAGE_TNA_WORKER_P4
#define FRONTAGE_TNA_WORKER_P4

// P4Runtime id of the mirror session. It may truncate packets to the minimum of the chip.
#define WORKER_SESSION 1

// Values of mirror_type, digest_type and resubmit_type
#define MIRROR_WORKER 1
#define MIRROR_COPY 2
#define MIRROR_OPERATION 3
#define DIGEST_NEW_CLIENT 1
#define DIGEST_NEW_NEIGHBOR 2
#define RESUBMIT 1

// The value that a leaf sends up, without its headroom (control/tree.p4).
control WorkerBest(inout metadata_t meta) {
    action read_best() {
        IN_HASH { meta.worker_best = 16w0 ++ meta.tree.tie_break ++ meta.tree.sid[11:0]; }
    }

    apply {
        read_best();
    }
}

// Makes a worker of a mirror of the packet.
control WorkerMirror(inout metadata_t meta, inout MirrorType_t mirror_type) {
    apply {
        mirror_type = MIRROR_WORKER;
        meta.mirror_kind = INTERNAL_WORKER;
        meta.mirror_session = WORKER_SESSION;
    }
}

// Chooses the copies of a packet in ingress, of which the chip makes one kind: copies for further sites, or a worker.
control Copying(inout metadata_t meta, inout MirrorType_t mirror_type) {
    WorkerMirror() worker_mirror;
    WorkerBest() worker_best;

    action copy() {
        mirror_type = MIRROR_COPY;
        meta.mirror_kind = INTERNAL_COPY;
        meta.mirror_session = meta.clone_session;
    }

    apply {
        if (meta.clone_session != 0) {
            copy();
        } else if (meta.direction != Direction.WORKER && meta.tree.op != TREE_NONE
            && meta.early_verdict == VERDICT_CONTINUE) {
            worker_best.apply(meta);
            worker_mirror.apply(meta, mirror_type);
        }
    }
}

#endif

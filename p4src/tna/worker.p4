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
#define DIGEST_NEW_CLIENT 1
#define RESUBMIT_TUNNEL 1

// Chooses the copies of a packet in ingress, of which the chip makes one kind: copies for further sites, or a worker.
control Copying(inout metadata_t meta, inout MirrorType_t mirror_type) {
    action mirror(MirrorType_t type, bit<8> kind, bit<16> session) {
        mirror_type = type;
        meta.mirror_kind = kind;
        meta.mirror_session = session;
    }

    apply {
        if (meta.clone_session != 0) {
            mirror(MIRROR_COPY, INTERNAL_COPY, meta.clone_session);
        } else if (meta.direction != Direction.WORKER && meta.tree.op != TREE_NONE
            && meta.early_verdict == VERDICT_CONTINUE) {
            mirror(MIRROR_WORKER, INTERNAL_WORKER, WORKER_SESSION);
        }
    }
}

#endif

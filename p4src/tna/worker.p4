// SPDX-License-Identifier: Apache-2.0
// Worker packets: they carry updates to the registers of ingress, because egress cannot reach them and ingress accesses
// each register once per packet. A worker packet is a mirrored packet of which only the header in front (worker_t)
// matters. Its mirror session leads to the recirculation port. Without the session nothing is mirrored.
#ifndef FRONTAGE_TNA_WORKER_P4
#define FRONTAGE_TNA_WORKER_P4

// P4Runtime id of the session. Its replicas are the recirculation ports of the pipes. The session may truncate packets to
// the minimum of the chip.
#define WORKER_SESSION 1

// Values of mirror_type, digest_type and resubmit_type
#define MIRROR_WORKER 1
#define MIRROR_COPY 2
#define DIGEST_NEW_CLIENT 1
#define RESUBMIT_TUNNEL 1

#endif

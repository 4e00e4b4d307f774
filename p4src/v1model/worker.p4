// SPDX-License-Identifier: Apache-2.0
// Worker packets: clones that carry updates to the registers of ingress, because egress cannot reach them and ingress
// accesses each register once per packet. A clone goes through a clone session to egress, and recirculates from
// there. Its data is metadata only, so that no packet from the network can forge one. On Tofino the session is a
// mirror to the recirculation port. Without the clone session nothing is cloned.
#ifndef FRONTAGE_V1MODEL_WORKER_P4
#define FRONTAGE_V1MODEL_WORKER_P4

// P4Runtime id of the clone session. Its only replica is the CPU port, which has no queue. The session may truncate
// packets to any length, if the target can (BMv2 cannot).
#define WORKER_SESSION 1

// standard_metadata.instance_type
const bit<32> INSTANCE_NORMAL = 0;
const bit<32> INSTANCE_RECIRCULATED = 4;

#endif

// Workers: copies of packets that bring news to ingress, whose registers egress cannot reach, and which the end of ingress cannot touch again. A copy goes
// to a clone session, meets egress there, and recirculates: on its way it is metadata and no more, so nothing that comes in by a port can pass for one. On
// Tofino the session is a mirror to the recirculation port. Without the session nothing is copied.
#ifndef FRONTAGE_V1MODEL_WORKER_P4
#define FRONTAGE_V1MODEL_WORKER_P4

// P4Runtime's number of the clone session. Its one replica is the CPU port, which has no queue; it may cut packets as short as it
// likes, where the target can (BMv2 cannot).
#define WORKER_SESSION 1

// standard_metadata.instance_type
const bit<32> INSTANCE_NORMAL = 0;
const bit<32> INSTANCE_RECIRCULATED = 4;

#endif

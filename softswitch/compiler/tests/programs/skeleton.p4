// A calculator: a request holds an operation and two operands, the answer goes to port 1. The
// including program defines control Compute(inout request_t r, inout metadata meta,
// inout standard_metadata_t std).
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<32> a;
    bit<32> b;
    bit<32> result;
}

struct headers {
    request_t request;
}

struct metadata {
    @field_list(1)
    bit<32> kept;
    bit<32> lost;
}

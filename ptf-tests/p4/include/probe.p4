// SPDX-License-Identifier: Apache-2.0
// The header of the packet tests' small programs: fields to match, to count by and to answer in.
#ifndef PROBE_P4
#define PROBE_P4

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header probe_t {
    bit<8> kind;
    bit<8> index;
    bit<16> value;
    bit<32> word;
}

#endif

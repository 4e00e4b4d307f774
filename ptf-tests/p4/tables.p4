// SPDX-License-Identifier: Apache-2.0
// Every match kind, a table that is soon full, an action selector, and entries that time out. The probe's kind says which table decides.
#include "include/plain.p4"

control TablesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action_selector(HashAlgorithm.crc16, 8, 14) members;

    action send(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action mark(bit<9> port, bit<16> value) {
        standard_metadata.egress_spec = port;
        hdr.probe.value = value;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    // Four entries fill it.
    table small {
        key = { hdr.probe.index: exact; }
        actions = { send; drop; }
        const default_action = drop();
        size = 4;
    }

    table prefixes {
        key = { hdr.probe.word: lpm; }
        actions = { mark; drop; }
        default_action = drop();
        size = 64;
    }

    table masks {
        key = {
            hdr.probe.word: ternary;
            hdr.probe.value: range;
            hdr.probe.index: optional;
        }
        actions = { mark; drop; }
        const default_action = drop();
        size = 64;
    }

    table groups {
        key = {
            hdr.probe.index: exact;
            hdr.probe.word: selector;
        }
        actions = { mark; drop; }
        implementation = members;
        size = 16;
    }

    table sessions {
        key = { hdr.probe.index: exact; }
        actions = { send; drop; }
        const default_action = drop();
        support_timeout = true;
        size = 16;
    }

    // Entries of the program itself may not be changed.
    table fixed {
        key = { hdr.probe.index: exact; }
        actions = { send; drop; }
        const entries = {
            1: send(2);
            2: drop();
        }
        const default_action = drop();
    }

    apply {
        if (hdr.probe.kind == 0) {
            small.apply();
        } else if (hdr.probe.kind == 1) {
            prefixes.apply();
        } else if (hdr.probe.kind == 2) {
            masks.apply();
        } else if (hdr.probe.kind == 3) {
            groups.apply();
        } else if (hdr.probe.kind == 4) {
            sessions.apply();
        } else {
            fixed.apply();
        }
    }
}

V1Switch(ProbeParser(), NoChecksum(), TablesIngress(), NoEgress(), NoChecksum(), ProbeDeparser()) main;

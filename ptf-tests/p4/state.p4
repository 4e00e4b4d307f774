// SPDX-License-Identifier: Apache-2.0
// State of a switch: registers, counters and meters. The probe's kind says what is done, and its word carries the answer.
#include "include/plain.p4"

control StateIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(16) cells;
    counter(16, CounterType.packets_and_bytes) seen;
    meter(16, MeterType.packets) rate;
    meter(16, MeterType.bytes) bandwidth;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<32>>(MeterType.packets) entry_rate;

    action color() {
        hits.count();
        entry_rate.read(hdr.probe.word);
    }

    table flows {
        key = { hdr.probe.index: exact; }
        actions = { color; NoAction; }
        const default_action = NoAction();
        counters = hits;
        meters = entry_rate;
        size = 16;
    }

    apply {
        bit<32> index = (bit<32>)hdr.probe.index;
        standard_metadata.egress_spec = 2;
        seen.count(index);
        if (hdr.probe.kind == 0) {
            cells.read(hdr.probe.word, index);
        } else if (hdr.probe.kind == 1) {
            cells.write(index, hdr.probe.word);
        } else if (hdr.probe.kind == 2) {
            rate.execute_meter<bit<32>>(index, hdr.probe.word);
        } else if (hdr.probe.kind == 3) {
            bandwidth.execute_meter<bit<32>>(index, hdr.probe.word);
        } else {
            flows.apply();
        }
    }
}

V1Switch(ProbeParser(), NoChecksum(), StateIngress(), NoEgress(), NoChecksum(), ProbeDeparser()) main;

// SPDX-License-Identifier: Apache-2.0
// Samples: one in N packets of a port, and dropped packets at a limited rate per reason (docs/samples.md).

// Samples a packet that the switch forwards. Ports without samples have the threshold 0.
control FlowSamples(inout metadata_t meta) {
    SampleDraw() draw;

    apply {
        bit<32> number;
        draw.apply(meta.ingress_port, meta.sample_pool, number);
        if (number < meta.sample_threshold) {
            meta.sample_kind = SAMPLE_FLOW;
        }
    }
}

// Samples a dropped packet, unless the rate of its reason is exhausted.
control DropSamples(inout metadata_t meta) {
    bit<8> color; // of the meter; 0 is green: within the rate

    DIRECT_METER(rates, METER_PACKETS)

    action report() {
        READ_METER(rates, color)
    }

    table reason {
        key = { meta.verdict: exact @name("reason"); }
        actions = { report; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = rates;
        size = DROP_REASONS;
    }

    apply {
        color = 1;
        reason.apply();
        if (color == 0) {
            meta.sample_kind = SAMPLE_DROP;
        }
    }
}

// Every extern of v1model at least once.
#include "skeleton.p4"

struct report_t {
    bit<32> a;
    bit<8> op;
}

control Compute(inout request_t r, inout metadata meta, inout standard_metadata_t std) {
    meter(8, MeterType.bytes) rates;
    direct_meter<bit<2>>(MeterType.packets) table_rate;
    counter(8, CounterType.bytes) ops;
    register<bit<128>>(2) wide;
    register<bool>(2) flags;
    @max_group_size(16)
    action_selector(HashAlgorithm.crc16, 64, 14) selector;
    bit<2> color = 0;

    action member(bit<32> value) {
        r.result = value;
    }
    action metered() {
        table_rate.read(color);
    }
    table groups {
        key = { r.op: exact; r.a: selector; r.b: selector; }
        actions = { member; NoAction; }
        implementation = selector;
    }
    table profiles {
        key = { r.op: exact; }
        actions = { member; NoAction; }
        @name("profile") implementation = action_profile(32);
    }
    table limited {
        key = { r.op: exact; }
        actions = { metered; }
        default_action = metered();
        meters = table_rate;
    }
    apply {
        ops.count((bit<32>)r.op);
        rates.execute_meter<bit<2>>((bit<32>)r.op, color);
        groups.apply();
        if (!profiles.apply().hit && limited.apply().miss) {
            log_msg("op {} color {}", { r.op, color });
        }
        bit<128> w;
        wide.read(w, 1);
        wide.write(1, w + 1);
        flags.write(0, r.op == 1);
        bool flag;
        flags.read(flag, 0);
        assert(flag == (r.op == 1));
        bit<16> low;
        hash(low, HashAlgorithm.crc16, 16w0, { r.a, r.b }, 32w65536);
        hash(r.result, HashAlgorithm.crc32, 32w0, { r.a, 8w1, r.op }, 64w0x1_0000_0000);
        bit<8> dice;
        random(dice, 8w1, 8w6);
        if (flag) {
            digest<report_t>(1, { r.a, r.op });
            clone_preserving_field_list(CloneType.I2E, 5, 1);
            truncate(13);
        }
        assume(dice > 0);
        r.b = (bit<32>)(w[15:0] + low + (bit<16>)dice);
    }
}

#include "skeleton_end.p4"

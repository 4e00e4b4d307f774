// One control instantiated several times, with constructor parameters and state of its own; one
// instance applied in two places; resubmission with kept metadata.
#include "skeleton.p4"

control Level(in bit<32> value, out bit<32> sum, in bit<8> op)(bit<32> size, bit<32> step) {
    register<bit<32>>(size) sums;
    bit<32> local = step;
    action bump(bit<32> by) {
        local = local + by;
    }
    table extra {
        key = { op: exact; }
        actions = { bump; NoAction; }
        const entries = {
            2: bump(100);
            3: bump(1000);
        }
        const default_action = NoAction();
    }
    apply {
        extra.apply();
        sums.read(sum, 0);
        sum = sum + value + local;
        sums.write(0, sum);
    }
}

control Twice(inout bit<32> x) {
    action double() {
        x = x << 1;
    }
    table always {
        actions = { double; }
        const default_action = double;
    }
    apply {
        always.apply();
    }
}

// Its two outputs may be the same storage, so they are copied back, after `exit`, too.
control Leaving(inout bit<32> x, inout bit<32> y, in bit<32> key) {
    action leave() {
        x = 99;
        exit;
    }
    table leaves {
        key = { key: exact; }
        actions = { leave; NoAction; }
        const entries = { 1: leave(); }
        const default_action = NoAction();
    }
    apply {
        y = 5;
        if (leaves.apply().miss) {
            x = 6;
        }
        y = y + 1;
    }
}

control Compute(inout request_t r, inout metadata meta, inout standard_metadata_t std) {
    Level(1, 1) level1;
    Level(4, 10) level2;
    Twice() twice;
    Leaving() leaving;
    bit<32> first;
    bit<32> second;
    apply {
        if (r.op == 9) {
            if (std.instance_type == 0) {
                meta.kept = r.a;
                meta.lost = r.b;
                resubmit_preserving_field_list(1);
            } else {
                r.result = meta.kept + meta.lost;
            }
        } else if (r.op == 7) {
            leaving.apply(r.result, r.result, r.b);
            r.result = r.result + 100;
        } else if (r.op == 8) {
            twice.apply(r.a);
            twice.apply(r.b);
            twice.apply(r.b);
            r.result = r.a + r.b;
        } else {
            level1.apply(r.a, first, r.op);
            level2.apply(first, second, r.op);
            r.result = second;
        }
    }
}

#include "skeleton_end.p4"

// Statements and expressions: each operation of the request exercises some of them.
#include "skeleton.p4"

enum bit<8> Op { Functions = 1, Loops = 2, Signed = 3, Slices = 4, Order = 5, Actions = 6, Structs = 7, Exit = 8 }

struct pair_t {
    bit<32> left;
    bit<32> right;
}

bit<32> largest(in bit<32> a, in bit<32> b) {
    if (a > b) {
        return a;
    }
    return b;
}

T pick<T>(in bool first, in T a, in T b) {
    return first ? a : b;
}

bit<32> next(inout bit<32> x) {
    x = x + 1;
    return x;
}

control Compute(inout request_t r, inout metadata meta, inout standard_metadata_t std) {
    action swap(inout bit<32> a, inout bit<32> b) {
        bit<32> t = a;
        a = b;
        b = t;
    }
    action choose(in bit<32> x, bit<32> y) {
        if (x > 10) {
            r.result = y;
            return;
        }
        r.result = y + 1;
    }
    action leave(inout bit<32> x) {
        x = 77;
        exit;
    }
    table chosen {
        key = { r.b: ternary; }
        actions = { choose(r.a); NoAction; }
        const entries = {
            0x10 &&& 0xf0: choose(r.a, 5);
            0x20: NoAction();
        }
    }
    apply {
        switch ((Op)r.op) {
            Op.Functions: {
                r.result = 16w0 ++ 16w1 == 32w2 ? 32w0 : pick(r.a == 3, r.a, 32w9) + largest(r.a, r.b);
            }
            Op.Loops: {
                for (bit<32> i = 0; i < 5; i = i + 1) {
                    if (i == 3) {
                        continue;
                    }
                    r.result = r.result + i;
                }
                for (bit<32> j in 1 .. 3) {
                    r.result += j << 8;
                }
                bit<32> n = 0;
                for (bit<32> k = 0; k < r.a; k = k + 2) {
                    n = n + 1;
                    if (n == r.b) {
                        break;
                    }
                }
                r.result = r.result + (n << 16);
            }
            Op.Signed: {
                int<32> a = (int<32>)r.a;
                int<16> small = (int<16>)a;
                bit<32> up = r.a |+| 0xffff_fff0;
                bit<32> down = r.a |-| r.b;
                r.result = (bit<32>)(int<32>)(small >> 1);
                if (a < 0 && up == 0xffff_ffff && down == r.a - r.b) {
                    r.result = r.result + 1;
                }
            }
            Op.Slices: {
                r.result[31:16] = r.a[15:0];
                r.result[15:0] = r.b[23:8];
                r.result[3 +: 4] = 4w0xf;
            }
            Op.Order: {
                bit<32> x = r.a;
                r.result = x + next(x) * 16 + x;
            }
            Op.Actions: {
                swap(r.a, r.b);
                chosen.apply();
            }
            Op.Structs: {
                pair_t p = { left = r.a, right = r.b };
                p = { p.right, p.left };
                tuple<bit<32>, bit<32>> t = { p.left, p.right };
                if (p == { r.b, r.a }) {
                    r.result = t[0] - t[1];
                }
            }
            Op.Exit: {
                leave(r.result);
                r.result = 0;
            }
            default: {
                mark_to_drop(std);
            }
        }
    }
}

#include "skeleton_end.p4"

// SPDX-License-Identifier: Apache-2.0
// Hashes whose parameters the control plane sets.
#include <core.p4>
#include <v1model.p4>

header base_t { bit<32> key; bit<16> short; bit<32> long; }
struct headers_t { base_t base; }
struct meta_t { }

parser P(packet_in pkt, out headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.base);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t m) { apply { } }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hash(hdr.base.short, HashAlgorithm.crc16_custom, 16w0, { hdr.base.key }, 32w65536);
        hash(hdr.base.long, HashAlgorithm.crc32_custom, 32w0, { hdr.base.key }, 64w4294967296);
    }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;

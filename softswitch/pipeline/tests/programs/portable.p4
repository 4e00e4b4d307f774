// SPDX-License-Identifier: Apache-2.0
// Every path and extern of PSA. The first byte after the Ethernet header says what to do.
#include <core.p4>
#include <psa.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header command_t {
    bit<8> op;
    bit<8> arg;
    bit<16> value;
    bit<16> checksum;
}

// The metadata that egress saw.
header trail_t {
    bit<8> path;
    bit<8> class_of_service;
    bit<16> instance;
    bit<32> port;
    bit<16> handed;
}

struct headers_t {
    ethernet_t ethernet;
    command_t command;
    trail_t trail;
}

struct normal_t { bit<16> value; }
struct clone_i2e_t { bit<16> value; }
struct clone_e2e_t { bit<16> value; }
struct resubmit_t { bit<8> round; }
struct recirculate_t { bit<8> round; }

struct note_t {
    bit<8> op;
    bit<16> value;
}

struct metadata_t {
    bit<8> round;
    bit<16> handed;
    bool note;
}

const bit<16> COMMAND = 0x9003;

error { UnknownType }

parser IngressParserImpl(
    packet_in buffer,
    out headers_t hdr,
    inout metadata_t meta,
    in psa_ingress_parser_input_metadata_t istd,
    in resubmit_t resubmit_meta,
    in recirculate_t recirculate_meta
) {
    state start {
        meta.round = 0;
        transition select(istd.packet_path) {
            PSA_PacketPath_t.RESUBMIT: resubmitted;
            PSA_PacketPath_t.RECIRCULATE: recirculated;
            default: ethernet;
        }
    }
    state resubmitted {
        meta.round = resubmit_meta.round;
        transition ethernet;
    }
    state recirculated {
        meta.round = recirculate_meta.round;
        transition ethernet;
    }
    state ethernet {
        buffer.extract(hdr.ethernet);
        verify(hdr.ethernet.type == COMMAND, error.UnknownType);
        buffer.extract(hdr.command);
        transition accept;
    }
}

control IngressImpl(
    inout headers_t hdr,
    inout metadata_t meta,
    in psa_ingress_input_metadata_t istd,
    inout psa_ingress_output_metadata_t ostd
) {
    Counter<bit<32>, bit<8>>(8, PSA_CounterType_t.PACKETS_AND_BYTES) counter;
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) hits;
    DirectMeter(PSA_MeterType_t.PACKETS) colors;
    Meter<bit<8>>(8, PSA_MeterType_t.PACKETS) meter;
    Register<bit<16>, bit<8>>(8) register;
    Random<bit<16>>(100, 200) random;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc;
    PSA_MeterColor_t color = PSA_MeterColor_t.GREEN;

    action send(PortId_t port, ClassOfService_t class_of_service) {
        hits.count();
        color = colors.execute();
        send_to_port(ostd, port);
        ostd.class_of_service = class_of_service;
    }

    table forward {
        key = { hdr.command.op: exact; }
        actions = { send; NoAction; }
        default_action = NoAction;
        psa_direct_counter = hits;
        psa_direct_meter = colors;
        size = 16;
    }

    apply {
        meta.note = false;
        meta.handed = 7;
        if (istd.parser_error != error.NoError) {
            if (istd.parser_error == error.UnknownType) {
                send_to_port(ostd, (PortId_t) 9);
            }
            exit;
        }
        if (forward.apply().hit) {
            if (color == PSA_MeterColor_t.RED) {
                ingress_drop(ostd);
            }
            exit;
        }
        send_to_port(ostd, (PortId_t) 1);
        switch (hdr.command.op) {
            0: { send_to_port(ostd, (PortId_t) (bit<32>) hdr.command.arg); }
            1: { ingress_drop(ostd); }
            2: { multicast(ostd, (MulticastGroup_t) (bit<32>) hdr.command.arg); }
            3: {
                ostd.clone = true;
                ostd.clone_session_id = (CloneSessionId_t) (bit<16>) hdr.command.arg;
            }
            4: {
                ostd.resubmit = meta.round < hdr.command.arg;
                hdr.command.value = (bit<16>) meta.round;
            }
            5: {
                if (meta.round < hdr.command.arg) {
                    send_to_port(ostd, PSA_PORT_RECIRCULATE);
                }
                hdr.command.value = hdr.command.value + 1;
            }
            8: { meta.note = true; }
            9: {
                PSA_MeterColor_t metered = meter.execute(hdr.command.arg);
                if (metered == PSA_MeterColor_t.RED) {
                    hdr.command.value = 2;
                } else if (metered == PSA_MeterColor_t.YELLOW) {
                    hdr.command.value = 1;
                }
            }
            10: {
                PSA_MeterColor_t metered = meter.execute(hdr.command.arg, PSA_MeterColor_t.YELLOW);
                hdr.command.value = metered == PSA_MeterColor_t.YELLOW ? 16w1 : 16w0;
            }
            11: {
                bit<16> old = register.read(hdr.command.arg);
                register.write(hdr.command.arg, old + hdr.command.value);
                hdr.command.value = old;
            }
            12: { hdr.command.value = crc.get_hash({ hdr.command.value[11:0] }); }
            13: { hdr.command.value = crc.get_hash(16w1000, { hdr.command.value }, 16w10); }
            14: { hdr.command.value = random.read(); }
            15: { counter.count(hdr.command.arg); }
            16: {
                ostd.clone = true;
                ostd.clone_session_id = (CloneSessionId_t) (bit<16>) hdr.command.arg;
                ingress_drop(ostd);
            }
            default: {}
        }
    }
}

control IngressDeparserImpl(
    packet_out buffer,
    out clone_i2e_t clone_i2e_meta,
    out resubmit_t resubmit_meta,
    out normal_t normal_meta,
    inout headers_t hdr,
    in metadata_t meta,
    in psa_ingress_output_metadata_t istd
) {
    InternetChecksum() sum;
    Digest<note_t>() notes;
    apply {
        if (psa_clone_i2e(istd)) {
            clone_i2e_meta.value = 0x1234;
        }
        if (psa_resubmit(istd)) {
            resubmit_meta.round = meta.round + 1;
        }
        if (psa_normal(istd)) {
            normal_meta.value = meta.handed;
        }
        if (meta.note) {
            notes.pack({ hdr.command.op, hdr.command.value });
        }
        sum.add({ hdr.command.op, hdr.command.arg, hdr.command.value });
        hdr.command.checksum = sum.get();
        buffer.emit(hdr.ethernet);
        buffer.emit(hdr.command);
    }
}

parser EgressParserImpl(
    packet_in buffer,
    out headers_t hdr,
    inout metadata_t meta,
    in psa_egress_parser_input_metadata_t istd,
    in normal_t normal_meta,
    in clone_i2e_t clone_i2e_meta,
    in clone_e2e_t clone_e2e_meta
) {
    state start {
        transition select(istd.packet_path) {
            PSA_PacketPath_t.CLONE_I2E: cloned_at_ingress;
            PSA_PacketPath_t.CLONE_E2E: cloned_at_egress;
            default: normal;
        }
    }
    state cloned_at_ingress {
        meta.handed = clone_i2e_meta.value;
        transition ethernet;
    }
    state cloned_at_egress {
        meta.handed = clone_e2e_meta.value;
        transition ethernet;
    }
    state normal {
        meta.handed = normal_meta.value;
        transition ethernet;
    }
    state ethernet {
        buffer.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            COMMAND: command;
            default: accept;
        }
    }
    state command {
        buffer.extract(hdr.command);
        transition accept;
    }
}

control EgressImpl(
    inout headers_t hdr,
    inout metadata_t meta,
    in psa_egress_input_metadata_t istd,
    inout psa_egress_output_metadata_t ostd
) {
    apply {
        if (hdr.command.isValid() && istd.egress_port != PSA_PORT_RECIRCULATE) {
            hdr.trail.setValid();
            hdr.trail.class_of_service = (bit<8>) (ClassOfServiceUint_t) istd.class_of_service;
            hdr.trail.instance = (EgressInstanceUint_t) istd.instance;
            hdr.trail.port = (PortIdUint_t) istd.egress_port;
            hdr.trail.handed = meta.handed;
            if (istd.packet_path == PSA_PacketPath_t.NORMAL_UNICAST) {
                hdr.trail.path = 1;
            } else if (istd.packet_path == PSA_PacketPath_t.NORMAL_MULTICAST) {
                hdr.trail.path = 2;
            } else if (istd.packet_path == PSA_PacketPath_t.CLONE_I2E) {
                hdr.trail.path = 3;
            } else if (istd.packet_path == PSA_PacketPath_t.CLONE_E2E) {
                hdr.trail.path = 4;
            }
        }
        if (istd.packet_path == PSA_PacketPath_t.NORMAL_UNICAST) {
            if (hdr.command.op == 6 || hdr.command.op == 7) {
                ostd.clone = true;
                ostd.clone_session_id = (CloneSessionId_t) (bit<16>) hdr.command.arg;
            }
            if (hdr.command.op == 7) {
                egress_drop(ostd);
            }
        }
    }
}

control EgressDeparserImpl(
    packet_out buffer,
    out clone_e2e_t clone_e2e_meta,
    out recirculate_t recirculate_meta,
    inout headers_t hdr,
    in metadata_t meta,
    in psa_egress_output_metadata_t istd,
    in psa_egress_deparser_input_metadata_t edstd
) {
    apply {
        if (psa_clone_e2e(istd)) {
            clone_e2e_meta.value = 0x5678;
        }
        if (psa_recirculate(istd, edstd)) {
            recirculate_meta.round = (bit<8>) hdr.command.value;
        }
        buffer.emit(hdr.ethernet);
        buffer.emit(hdr.command);
        buffer.emit(hdr.trail);
    }
}

IngressPipeline(IngressParserImpl(), IngressImpl(), IngressDeparserImpl()) ingress;
EgressPipeline(EgressParserImpl(), EgressImpl(), EgressDeparserImpl()) egress;
PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;

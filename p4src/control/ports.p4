// SPDX-License-Identifier: Apache-2.0
// Role of the ingress port: towards clients, servers, real servers or other sites.
control Ports(inout metadata_t meta) {
    action set_port(bit<8> role, mac_t mac) {
        meta.role = role;
        meta.port_mac = mac;
    }

#ifndef WITHOUT_SAMPLES
    // One packet in 2^32 / threshold is sampled (control/samples.p4).
    action set_sampled_port(bit<8> role, mac_t mac, bit<32> threshold, bit<1> postcards) {
        set_port(role, mac);
        meta.sample_threshold = threshold;
        meta.takes_postcards = postcards;
    }
#endif

    action unknown_port() {
        meta.PORT_VERDICT = DROP_PORT_UNKNOWN;
    }

    table port {
        key = { meta.ingress_port: exact @name("ingress_port"); }
#ifdef WITHOUT_SAMPLES
        actions = { set_port; unknown_port; }
#else
        actions = { set_port; set_sampled_port; unknown_port; }
#endif
        const default_action = unknown_port();
        size = PORTS;
    }

    apply {
        port.apply();
    }
}

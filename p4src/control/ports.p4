// SPDX-License-Identifier: Apache-2.0
// Role of the ingress port: towards clients, servers, real servers or other sites.
control Ports(inout metadata_t meta) {
    action set_port(bit<8> role, mac_t mac) {
        meta.role = role;
        meta.port_mac = mac;
    }

    action unknown_port() {
        meta.PORT_VERDICT = DROP_PORT_UNKNOWN;
    }

    table port {
        key = { meta.ingress_port: exact @name("ingress_port"); }
        actions = { set_port; unknown_port; }
        const default_action = unknown_port();
        size = PORTS;
    }

    apply {
        port.apply();
    }
}

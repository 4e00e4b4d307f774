// SPDX-License-Identifier: Apache-2.0
// Steering (Artemis, 3.4; docs/steering.md): chooses the site for a packet to a service address. The first match
// applies:
//
//     connection id that a server chose          the site of that server
//     cookie in TSecr, or in the TSval of a      the site of that server
//         segment that an ICMP error quotes
//     long header, SNI selects the service       a dispatcher, in user space
//     long header, address selects the service   the site that the mapping names for the service's deployment and the
//                                                client's region; further sites get a copy of a datagram that may hold
//                                                an Initial (RFC 9000, 14.1)
//     SYN, or any other segment without a cookie that site, without copies
//     any other packet                           this site
//
// A VIP without an entry in `service` is not a service address and is not steered. A packet from a tunnel is never
// steered to a third site.
control Steering(in headers_t hdr, inout metadata_t meta) {
    bit<8> target_site; // zero: this one
    bit<16> service_id;
    bit<16> deployment_id; // zero: none, which has no mapping
    bit<1> dispatched;
    bit<8> mapped_site; // by the mapping
    bit<16> mapped_session;

    action set_service(bit<8> local_site, bit<16> service) {
        meta.origin_site = local_site;
        service_id = service;
    }

    action use_dispatcher(bit<8> local_site) {
        meta.origin_site = local_site;
        dispatched = 1;
    }

    table service {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { set_service; use_dispatcher; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    action set_deployment(bit<16> deployment) {
        deployment_id = deployment;
    }

    // Services with the same sites and the same number of copies share a deployment, and so one mapping.
    table deployment {
        key = { service_id: exact @name("service"); }
        actions = { set_deployment; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    action keep_local(bit<16> clone_session) {
        mapped_site = 0;
        mapped_session = clone_session;
    }

    action to_site(bit<8> site, bit<16> clone_session) {
        mapped_site = site;
        mapped_session = clone_session;
    }

    table mapping {
        key = {
            deployment_id: exact @name("deployment");
            meta.region: exact @name("region");
        }
        actions = { keep_local; to_site; NoAction; }
        const default_action = NoAction();
        size = MAPPINGS;
    }

    // For clients without a region, and for regions without an entry in `mapping`.
    table default_mapping {
        key = { deployment_id: exact @name("deployment"); }
        actions = { keep_local; to_site; NoAction; }
        const default_action = NoAction();
        size = DEPLOYMENTS;
    }

    action set_local_site() {
        target_site = 0;
    }

    action set_remote_site(bit<8> site) {
        target_site = site;
    }

    // Each site's range of SIDs, as prefixes.
    table sid_site {
        key = { meta.candidate_sid: lpm @name("sid"); }
        actions = { set_local_site; set_remote_site; NoAction; }
        const default_action = NoAction();
        size = SID_RANGES;
    }

    apply {
        bit<8> arrival_site = meta.origin_site;
        bit<1> is_service = 0;
        target_site = 0;
        service_id = 0;
        deployment_id = 0;
        dispatched = 0;
        bit<1> is_mapped = 0; // the mapping applies to the packet unless it names a server
        if (hdr.quic_long.isValid() || (hdr.tcp.isValid() && !IS_ERROR)) {
            is_mapped = 1;
        }
        if (meta.direction == Direction.UP && meta.at_cookie_address == 0) {
            if (service.apply().hit) {
                is_service = 1;
            }
        }

        if (is_service == 1) {
            // The lookup of the mapping does not wait for the cookie, which may have to be unsealed.
            mapped_site = 0;
            mapped_session = 0;
            if (is_mapped == 1 && dispatched == 0 && meta.from_tunnel == 0) {
                deployment.apply();
                if (!mapping.apply().hit) {
                    default_mapping.apply();
                }
            }
            bit<1> is_named = 0;
            bit<8> steered = OUTCOME_STEERED_SITE;
            if (meta.candidate_found == 1) {
                if (sid_site.apply().hit) {
                    is_named = 1;
                    steered = OUTCOME_STEERED_COOKIE;
                    if (hdr.udp.isValid()) {
                        steered = OUTCOME_STEERED_CID;
                    }
                }
            }
            if (is_named == 0 && is_mapped == 1) {
                if (dispatched == 1) {
                    meta.remote = Remote.DISPATCHER;
                    meta.remote_id = 10w0 ++ meta.connection_hash[5:0];
                    meta.outcome = OUTCOME_STEERED_DISPATCHER;
                } else {
                    target_site = mapped_site;
                    meta.clone_session = mapped_session;
                }
            }
            if (meta.may_hold_initial == 0 || (hdr.ipv4.isValid() && hdr.ipv4.ttl <= 1)
                || (hdr.ipv6.isValid() && hdr.ipv6.hop_limit <= 1)) {
                meta.clone_session = 0;
            }
            if (meta.from_tunnel == 1) {
                meta.origin_site = arrival_site;
            } else if (target_site != 0) {
                meta.remote = Remote.SITE;
                meta.remote_id = (bit<16>)target_site;
                meta.outcome = steered;
            }
        } else if (meta.from_tunnel == 1 && meta.direction != Direction.RESPONSE && !IS_FROM_SERVER_TUNNEL) {
            meta.verdict = DROP_TUNNEL_INNER;
        }
    }
}

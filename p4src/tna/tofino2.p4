// SPDX-License-Identifier: Apache-2.0
// The profile for Tofino 2: everything but the delivery of ICMP errors to servers, remote servers, and the defence against SYN
// floods.
#include <core.p4>
#include <t2na.p4>

#define WITHOUT_ICMP_ERRORS
#define WITHOUT_REMOTE_SERVERS
#define WITHOUT_SYN_DEFENCE

#include "../include/size.p4"
#include "frontage.p4"

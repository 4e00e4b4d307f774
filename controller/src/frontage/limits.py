# SPDX-License-Identifier: Apache-2.0
"""The sizes of the P4 program, from ``p4src/include/size.p4``. A test compares the two."""

MAX_VIPS = 512
MAX_SERVERS = 4096
MAX_SID = 4095
MAX_PORT_ID = 510
"""Ports have nine bits; the highest number means *drop* in v1model."""
MAX_WEIGHT = 256

TREE_SLOTS = 8192
"""Leaves of the tournament tree, shared by all VIPs."""
MAX_TREE_DEPTH = 12
SCORE_CODES = 256
MAX_CLASSES = 64
"""Score classes: pairs of alpha and relative weight."""
POOL_ENTRIES = 16384
MAGLEV_SLOTS = 131072
MAX_NEIGHBORS = 1024
MAX_ROUTES = 16384
"""Routes of one address family, including neighbors."""
MAX_NEXT_HOPS = 8192
MAX_GROUPS = 1024
"""Groups of next hops."""
MAX_GROUP_MEMBERS = 16384
"""Next hops of all groups together."""
MAX_GROUP_SIZE = 64
"""Next hops of one group."""

MAX_SITE = 255
MAX_SERVICE = 65535
MAX_DEPLOYMENT = 65535
MAX_REDUNDANCY = 4
"""Sites that may get a first flight."""
MAX_REGION = 65535
DISPATCHER_SLOTS = 64
MAX_TUNNEL_ENDPOINTS = 8192
MAX_VNI = (1 << 24) - 1
MAX_GRE_KEY = (1 << 32) - 1
DEMAND_CELLS = 131072
"""Counter cells of handshakes by service and region, shared by the counted services."""

MAX_LIMITED_PREFIXES = 4096
"""Client prefixes with limits of one kind, of one IP version."""

MAX_REAL_SERVERS = 4096
"""Addresses of real servers, of one IP version."""
MAX_SENDERS = 16384
"""Pairs of a port and a server on whose behalf real servers behind the port may send."""

AIFO_WINDOW = 20
"""Slots of the AIFO window."""
MAX_DEPTH = (1 << 19) - 1
"""Packets in a queue, as the program counts them."""
RANK_BANDS = 32
MAX_RANK_US = 8 * (15 << 30)
"""The largest remaining processing time that a rank can express, in microseconds (docs/cookie.md, Quantisation)."""
WORKER_SESSION = 1
"""The clone session of worker packets."""
SAMPLE_SESSION = (1 << 15) - 1
"""The clone session of samples: the last one of softswitch and BMv2."""
COPY_SESSIONS = range(2, SAMPLE_SESSION)
"""Clone sessions of first flights that go to several sites."""

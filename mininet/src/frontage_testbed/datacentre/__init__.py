# SPDX-License-Identifier: Apache-2.0
"""One data centre: an edge switch and its controller, servers, and client hosts on the Internet side."""

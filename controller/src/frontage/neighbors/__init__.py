# SPDX-License-Identifier: Apache-2.0
"""Neighbor resolution: the controller finds out the Ethernet addresses of next hops and hosts (docs/neighbors.md)."""

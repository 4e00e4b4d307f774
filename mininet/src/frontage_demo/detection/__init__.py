# SPDX-License-Identifier: Apache-2.0
"""Measures how fast health checks detect faults of servers, and how many requests of clients fail until then."""

# SPDX-License-Identifier: Apache-2.0
"""Demand-aware placement (Auspice, section 1.2.1): how many replicas a record has, and at which sites. See docs/placement.md.

A "record" is whatever is placed: a record of the record store, or a service. The package has no sockets and no clock.
"""

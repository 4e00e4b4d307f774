# SPDX-License-Identifier: Apache-2.0
"""End-user mapping (Artemis, section 3.3): which sites are best for a client of a service. See docs/mapping.md.

The package has layers, each of which imports only those above it:

- `compute`: regions of clients and their best sites, from RTTs
- `placement`: the sites at which services run, from demand
- `demand`: demand as counted by switches, and moves of services
- `store`: the database that the controllers share
- `control`: the running parts
- `service`: the mapping beside one controller
"""

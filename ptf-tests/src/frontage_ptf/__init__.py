# SPDX-License-Identifier: Apache-2.0
"""Library of the packet tests: a P4Runtime client, frames, a test site, and reference models of the switch."""

# SPDX-License-Identifier: Apache-2.0
"""An emulated Internet: autonomous systems with one BGP router each, clients in some of them, and sites behind others."""

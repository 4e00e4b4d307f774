# SPDX-License-Identifier: Apache-2.0
"""Measures how fast clients leave an address of their server, and how many requests fail (docs/moves.md)."""

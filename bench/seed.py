# SPDX-License-Identifier: Apache-2.0
"""Seed of the random input of some benchmarks."""

from __future__ import annotations

import os

SEED = int(os.environ.get("SEED") or 1)
"""make exports the variable SEED even if it is not set; it is then empty."""

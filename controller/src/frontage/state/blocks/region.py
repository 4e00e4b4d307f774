# SPDX-License-Identifier: Apache-2.0
"""``region.p4``: the regions of clients. `frontage.state.steering` has the entries."""

from __future__ import annotations

CLIENT4 = "region.client4"
CLIENT6 = "region.client6"
TABLES = (CLIENT4, CLIENT6)

# SPDX-License-Identifier: Apache-2.0
"""Handshakes since the last reading, from counters that only grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frontage.state.blocks.demand import Cells

RegionCounts = dict[int, int]
"""Handshakes by region. Region 0 holds clients in no region, and clients in regions without a counter cell."""


@dataclass(slots=True)
class CounterDeltas:
    """The last reading of the counters, from which the next reading's handshakes are computed."""

    cells: Mapping[str, Cells] = field(default_factory=dict)
    _generation: object = None
    _last: dict[int, int] = field(default_factory=dict)
    _skip: bool = False

    def skip(self) -> None:
        """Let the next reading count nothing, because another controller reports the handshakes before it.

        A reading of a new generation counts nevertheless.
        """
        self._skip = True

    def update(self, cells: Mapping[str, Cells], generation: object, values: Mapping[int, int]) -> dict[str, RegionCounts] | None:
        """Return the handshakes by VIP since the last reading; None if there is no reading to compare with.

        Counters start at zero in each ``generation`` of the switch's program. The first generation seen, and a changed layout of
        ``cells``, give no basis for comparison. A counter that is lower than before has restarted at zero.
        """
        last, is_known = self._last, self._generation is not None and cells == self.cells
        if generation != self._generation:
            last = {}
        elif self._skip:
            is_known = False
        self.cells, self._generation, self._skip = cells, generation, False
        # Keep the counts of regions that this reading leaves out: they may be read again later.
        self._last = {**last, **values}
        if not is_known:
            return None
        handshakes: dict[str, RegionCounts] = {}
        for vip, block in cells.items():
            regions = {}
            for cell, value in values.items():
                if block.base <= cell < block.base + block.regions:
                    old = last.get(cell, 0)
                    if delta := value - old if value >= old else value:
                        regions[cell - block.base] = delta
            handshakes[vip] = regions
        return handshakes

"""From cells that only grow to the handshakes of an epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frontage.state.blocks.demand import Cells

Regions = dict[int, int]
"""Handshakes by region; 0 of clients in none that has a cell."""


@dataclass(slots=True)
class Epochs:
    """What was read last, so that the next reading tells what came since."""

    cells: Mapping[str, Cells] = field(default_factory=dict)
    _generation: object = None
    _before: dict[int, int] = field(default_factory=dict)
    _overlooked: bool = False

    def overlook(self) -> None:
        """Somebody else tells what comes until the next reading, unless that is of another generation."""
        self._overlooked = True

    def since(self, cells: Mapping[str, Cells], generation: object, values: Mapping[int, int]) -> dict[str, Regions] | None:
        """By VIP, from the ``values`` of cells; None where there is nothing to compare with.

        A counter starts at zero in each ``generation`` of the switch's program. Of the first that is seen it is not known what of
        it is new; nor where services have other cells than before. One that is lower than before has begun anew by itself.
        """
        before, known = self._before, self._generation is not None and cells == self.cells
        if generation != self._generation:
            before = {}
        elif self._overlooked:
            known = False
        self.cells, self._generation, self._overlooked = cells, generation, False
        # Of a region that is not read now, what was counted is known still when it comes back.
        self._before = {**before, **values}
        if not known:
            return None
        found: dict[str, Regions] = {}
        for vip, one in cells.items():
            regions = {}
            for cell, value in values.items():
                if one.base <= cell < one.base + one.regions:
                    old = before.get(cell, 0)
                    if news := value - old if value >= old else value:
                        regions[cell - one.base] = news
            found[vip] = regions
        return found

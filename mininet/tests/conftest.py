# SPDX-License-Identifier: Apache-2.0
"""Order of the tests: the longest start first, so that several workers of pytest-xdist end at about the same time."""

import pytest


def duration(item: pytest.Item) -> float:
    """Return the seconds that a test takes according to its marker `slow`, or 0."""
    marker = item.get_closest_marker("slow")
    return marker.kwargs.get("seconds", 0.0) if marker else 0.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each worker an equal share of the long tests, followed by short tests that keep their order."""
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    long = sorted((item for item in items if duration(item)), key=duration, reverse=True)
    short = [item for item in items if not duration(item)]
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        # xdist's scheduler `worksteal` gives each worker a contiguous part of the list.
        share = long[worker::workers]
        size = len(items) * (worker + 1) // workers - len(ordered) - len(share)
        ordered += [*share, *short[:size]]
        short = short[size:]
    items[:] = ordered + short

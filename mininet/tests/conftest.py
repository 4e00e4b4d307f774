# SPDX-License-Identifier: Apache-2.0
"""Order of the tests: the longest start first, so that several workers of pytest-xdist end at about the same time."""

import pytest


def duration(item: pytest.Item) -> float:
    """Return the seconds that a test takes according to its marker `slow`, or 0."""
    marker = item.get_closest_marker("slow")
    return marker.kwargs.get("seconds", 0.0) if marker else 0.0


def grouped(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """Group the tests of each file that shares an expensive fixture. Every other test is a group of its own."""
    groups: dict[object, list[pytest.Item]] = {}
    for item in items:
        marker = item.get_closest_marker("slow")
        together = marker is not None and marker.kwargs.get("together", False)
        groups.setdefault(item.path if together else item, []).append(item)
    return list(groups.values())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each worker an equal share of the long tests, followed by short tests that keep their order."""
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    groups = grouped([item for item in items if duration(item)])
    groups.sort(key=lambda group: duration(group[0]), reverse=True)
    short = [item for item in items if not duration(item)]
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        # xdist's scheduler `worksteal` gives each worker a contiguous part of the list.
        share = [item for group in groups[worker::workers] for item in group]
        size = max(0, len(items) * (worker + 1) // workers - len(ordered) - len(share))
        ordered += [*share, *short[:size]]
        short = short[size:]
    items[:] = ordered + short

# SPDX-License-Identifier: Apache-2.0
"""Order of the tests: the longest start first, so that several workers of pytest-xdist end at about the same time."""

import os

import pytest

IS_LONG = "LONG" in os.environ


def duration(item: pytest.Item) -> float:
    """Return the seconds that a test takes according to its marker `slow`, or 0; 0 if it is skipped."""
    marker = item.get_closest_marker("slow")
    return 0.0 if marker is None or is_skipped(item) else marker.kwargs.get("seconds", 0.0)


def is_skipped(item: pytest.Item) -> bool:
    """Return whether a test is one of `make test-long`, and this is another run."""
    return item.get_closest_marker("long") is not None and not IS_LONG


def grouped(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """Group the tests of each file that shares an expensive fixture. Every other test is a group of its own."""
    groups: dict[object, list[pytest.Item]] = {}
    for item in items:
        marker = item.get_closest_marker("slow")
        together = marker is not None and marker.kwargs.get("together", False)
        groups.setdefault(item.path if together else item, []).append(item)
    return list(groups.values())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each worker an equal share of the slow tests, followed by short tests that keep their order."""
    for item in filter(is_skipped, items):
        item.add_marker(pytest.mark.skip(reason="part of `make test-long`"))
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

# SPDX-License-Identifier: Apache-2.0
"""The outcome of one request: the line that a client process reports to the demo."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

OK = "ok"


@dataclass(frozen=True)
class Outcome:
    """One finished request. Times are nanoseconds of the monotonic clock; 0 if not reached."""

    index: int
    outcome: str
    """`ok`, or the reason of the failure: an errno name, a QUIC connection error, timeout, short, long, corrupt, length,
    header, or status N.
    """
    server: str
    """The server that answered, from its X-Server header or its log."""
    due_ns: int
    started_ns: int
    connected_ns: int
    first_byte_ns: int
    finished_ns: int
    received: int
    local_port: int

    @property
    def ok(self) -> bool:
        """True if all bytes arrived unchanged."""
        return self.outcome == OK

    @property
    def fct(self) -> float:
        """Flow completion time in seconds, from the connection's first packet to the last byte."""
        return (self.finished_ns - self.started_ns) / 1e9

    @property
    def late(self) -> float:
        """Seconds by which the request started late; large values mean that the machine limited the load."""
        return (self.started_ns - self.due_ns) / 1e9

    def to_line(self) -> str:
        """Return one line of tab-separated text."""
        return "\t".join(str(v) for v in astuple(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Outcome:
        """Parse a line of `to_line`. Raises ValueError."""
        texts = line.rstrip("\n").split("\t")
        if len(texts) != len(fields(cls)):
            raise ValueError(f"invalid outcome from a client: {line!r}")
        return cls(int(texts[0]), texts[1], texts[2], *(int(t) for t in texts[3:]))


def write_outcomes(runs: Mapping[str, Iterable[Outcome]], path: Path) -> None:
    """Write the requests of all runs as CSV, one per line."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["policy", *(f.name for f in fields(Outcome))])
        writer.writerows((policy, *astuple(o)) for policy, outcomes in runs.items() for o in outcomes)

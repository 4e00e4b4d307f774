"""What became of one request: the line that a client process reports to the demo."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

OK = "ok"


@dataclass(frozen=True)
class Outcome:
    """One finished request. Times are nanoseconds of the monotonic clock, 0 for what was not reached."""

    index: int
    outcome: str
    """`ok`, or why the request failed: an errno's name or what QUIC says of the connection, timeout, short, long,
    corrupt, length, header, status N.
    """
    server: str
    """The server that answered, as its X-Server header or its log says."""
    due_ns: int
    started_ns: int
    connected_ns: int
    first_byte_ns: int
    finished_ns: int
    received: int
    local_port: int

    @property
    def ok(self) -> bool:
        """Whether every byte came, unchanged."""
        return self.outcome == OK

    @property
    def fct(self) -> float:
        """Flow completion time in seconds: from the connection's first packet to the last byte."""
        return (self.finished_ns - self.started_ns) / 1e9

    @property
    def late(self) -> float:
        """Seconds by which the client was late to start: a sign that the machine, not the network, set the pace."""
        return (self.started_ns - self.due_ns) / 1e9

    def to_line(self) -> str:
        """One line of text, tab separated."""
        return "\t".join(str(v) for v in astuple(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Outcome:
        """Parse `to_line`'s text."""
        texts = line.rstrip("\n").split("\t")
        if len(texts) != len(fields(cls)):
            raise ValueError(f"a client reported {line!r}, which is not an outcome")
        return cls(int(texts[0]), texts[1], texts[2], *(int(t) for t in texts[3:]))


def write_outcomes(runs: Mapping[str, Iterable[Outcome]], path: Path) -> None:
    """Write the requests of all runs as CSV, one a line."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["policy", *(f.name for f in fields(Outcome))])
        writer.writerows((policy, *astuple(o)) for policy, outcomes in runs.items() for o in outcomes)

"""Writes docs/clients.md from what the runs have left in build/clients/result.json.

Example: clients/page.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from catalogue import BUILD, ROOT

PAGE = ROOT / "docs" / "clients.md"
RESULT = BUILD / "result.json"
Row = dict[str, Any]

INTRODUCTION = """# HTTP/3 clients

What clients that nobody modified make of a service behind Frontage. `make clients` runs them, and writes this page from what it saw.
Each client downloads 5 MB in a network namespace of its own, through softswitch with `frontage.p4`, from one of three
`frontage-cclb7-quic`, over IPv6 ([QUIC](quic.md) says how the switch finds the server). The last one is this project's own, for
comparison. [`clients/`](../clients/README.md) says how to add one.
"""

SEEN = """## What the network sees of them

- *First flight*: datagrams that a client sends before anybody has answered, and bytes of the first.
- *Ids*: lengths of the connection ids of its first packet, of the one that it makes up for the server and of its own.
- *Preferred address* (RFC 9000, section 9.6): whether the client takes it.
- *Found by*: how the switch found the server of its packets once the handshake was over, by the switch's counters: who takes
  the preferred address is found by the cookie in it, the others by the connection id that their server chose.
- *Addresses*: from which anything came, by a capture on the client's host. Nobody may see more than these two.

Where a client's downloads differ, the least and the most.
"""

KEPT = """## What their downloads survive

- *NAT*: in the midst of the download, a NAT gives the client another port.
- *Address*: the client's host gets another address, and loses the one that it had a little later.
- *No cookies*: nothing gets through to the cookie address, so that a client that would take it stays at the VIP.
- *Migration*: the client itself changes its port, where it has an option for that.

*Whole*: the client was content, and had the right bytes. *Breaks off*: it gave up. *Stalls*: it was still waiting when its time was up.
"""


HANDED = """## From real servers

The same download where the server is a balancer with two real servers: one of these sends the answer, by packet numbers that the
balancer gives it ([the hand-off](handoff.md)). None of these clients has QUIC's multipath extension but the last, which does not use
it here.

- *From real servers*: their share of the bytes of the answer's body, by the servers' own counters.
"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def span(values: Iterable[int]) -> str:
    """What was seen in several runs."""
    low, *_, high = sorted(values) * 2
    return str(low) if low == high else f"{low} to {high}"


def found(run: Row) -> dict[str, int]:
    """How often the switch found the server of a packet by what survives the handshake."""
    names = {"cookie": "retrieved-address", "id": "retrieved-cid"}
    return {how: run["steering"].get(counter, 0) for how, counter in names.items()}


def seen(row: Row) -> list[str]:
    run = row["runs"]["undisturbed"]
    openings = [other["opening"] for other in row["runs"].values() if other["opening"]]
    if not openings:
        return ["nothing", "-", "-", "-", "-"]
    flight, size, theirs, own = (span(o[key] for o in openings) for key in ("datagrams", "size", "destination_id", "source_id"))
    addresses = [name for name, is_there in (("VIP", run["vip"]), ("cookie", run["cookies"])) if is_there]
    addresses += [f"**{address}**" for address in run["unexpected"]]
    return [
        f"{flight} x {size}",
        f"{theirs}; {own}",
        "taken" if run["cookies"] else "not taken",
        ", ".join(f"{how} {count}" for how, count in found(run).items() if count),
        ", ".join(addresses),
    ]


def outcome(run: Row | None) -> str:
    """Of a download."""
    if run is None:
        return "-"
    if run["whole"]:
        return "whole"
    return "stalls" if run["status"] is None else "breaks off"


def disturbed(run: Row) -> str:
    return outcome(run) if run["disturbed"] else "was over too early"


def migrating(row: Row) -> str:
    run = row["runs"].get("migrating")
    if run is None:
        return "no option"
    return f"{outcome(run) if run['clients'] > 1 else 'does not migrate'}, by `{row['migrate']}`"


def kept(row: Row) -> list[str]:
    runs = row["runs"]
    return [
        outcome(runs["undisturbed"]),
        disturbed(runs["rebound"]),
        disturbed(runs["readdressed"]),
        outcome(runs.get("unreachable")),
        migrating(row),
    ]


def handed(row: Row) -> list[str]:
    run = row.get("handed")
    if run is None:
        return ["-", "-"]
    both = run["real_servers"] + run["balancer"]
    return [outcome(run), f"{run['real_servers'] / both:.0%}" if both else "-"]


def cells(name: str, row: Row, what: Callable[[Row], list[str]]) -> list[str]:
    return [name, row["version"], *what(row)]


def text(rows: dict[str, Row]) -> str:
    """The page."""
    here = {name: row for name, row in rows.items() if "runs" in row}
    missing = [[name, f"not here: `{row['install']}`"] for name, row in rows.items() if "runs" not in row]

    def part(head: Sequence[str], what: Callable[[Row], list[str]]) -> str:
        width = len(head) + 2
        lines = [cells(name, row, what) for name, row in here.items()]
        lines += [[*cell, *["-"] * (width - len(cell))] for cell in missing]
        return table(["client", "version", *head], lines)

    return "\n".join(
        [
            INTRODUCTION,
            SEEN,
            part(["first flight", "ids", "preferred address", "found by", "addresses"], seen),
            KEPT,
            part(["undisturbed", "NAT", "address", "no cookies", "migration"], kept),
            HANDED,
            part(["download", "from real servers"], handed),
        ]
    )


def write() -> None:
    """Renew the page."""
    if not RESULT.exists():
        sys.exit(f"{RESULT} is missing: `make clients` writes it")
    PAGE.write_text(text(json.loads(RESULT.read_text())))
    print(PAGE)


if __name__ == "__main__":
    write()

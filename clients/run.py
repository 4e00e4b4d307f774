"""Has HTTP/3 clients that others wrote download through the whole data centre, and writes docs/clients.md from what came of it.

Each client of catalogue.toml that is here downloads 5 MB several times, in namespaces, through softswitch with frontage.p4 from
frontage-cclb7-quic: undisturbed, with its port changed by a NAT, with its host's address replaced, without a way to the cookie
address if it takes that, and migrating of its own accord where it has an option for it; and once from real servers, to which the
only server hands all requests over. Writes build/clients/result.json. Fails if anything comes from an address that the client
should not see, if the switch does not find its server by what it has, a cookie address or only a connection id, if that server sends
what real servers should, or if a download is not whole, but for the two that take a client which can change its address.

Example: clients/run.py --only ngtcp2
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import page
from catalogue import BUILD, CatalogueError, Client, read
from frontage_testbed import sandbox
from frontage_testbed.datacentre.deployment import DeploymentError, find
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.sandbox import Sandbox, SandboxError
from handoff import Handed
from page import RESULT
from rounds import Rounds

Rows = dict[str, dict[str, Any]]
WHOLE = {"undisturbed", "rebound", "unreachable"}
"""Downloads that come to their end whatever a client does: that they do is up to switch and server."""


def present(clients: list[Client]) -> tuple[dict[str, Path], Rows]:
    """The programs of those that are here, and the rows as far as they are known: versions, or how to get the others."""
    programs, rows = {}, {}
    for client in clients:
        if program := client.found():
            programs[client.name] = program
            rows[client.name] = {"version": client.version_of(program)}
        else:
            rows[client.name] = {"install": client.install}
            print(f"{client.name} is not here: {client.install}")
    return programs, rows


def wrong(rows: Rows) -> list[str]:
    """What must not be."""
    found = []
    for name, row in rows.items():
        if handed := row.get("handed"):
            if not handed["whole"]:
                found.append(f"{name}, handed over: the download is not whole; its log is in {RESULT}")
            elif handed["balancer"]:
                found.append(f"{name}, handed over: {handed['balancer']} bytes came from the balancer")
        for kind, run in row.get("runs", {}).items():
            if kind in WHOLE and not run["whole"]:
                found.append(f"{name}, {kind}: the download is not whole; its log is in {RESULT}")
            found += [f"{name}, {kind}: was sent something from {address}" for address in run["unexpected"]]
            by, expected = page.steering(run), "cookie" if run["cookies"] else "ID"
            if not by[expected] > sum(by.values()) / 2:
                found.append(f"{name}, {kind}: found by {by}, where it should be by {expected}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="CLIENT", help="this one; the rows of the others stay")
    only = parser.parse_args().only
    try:
        clients = read()
        names = [client.name for client in clients]
        if only not in (None, *names):
            parser.error(f"no client {only} in catalogue.toml: {', '.join(names)}")
        chosen = [client for client in clients if only in (None, client.name)]
        programs, rows = present(chosen)
        settings = Settings(
            servers=3, clients=max(1, len(programs)), policies=("cclb4",), bottleneck_rate=16_000_000, queue_delay=0.1
        )
        found = find(settings)

        def body(box: Sandbox) -> int:
            try:
                here = [client for client in chosen if client.name in programs]
                with found.quic_testbed(settings, box.part("alone")) as testbed:
                    rounds = Rounds(testbed)
                    for client in here:
                        print(client.name, flush=True)
                        rows[client.name] |= rounds.all_of(client, programs[client.name])
                with found.qdsr_testbed(settings, box.part("handed")) as testbed:
                    handed = Handed(testbed)
                    for client in here:
                        print(f"{client.name}, from real servers", flush=True)
                        rows[client.name]["handed"] = handed.one_of(client, programs[client.name])
            finally:
                box.keep_logs(BUILD / "logs")
            kept: Rows = json.loads(RESULT.read_text()) if only and RESULT.exists() else {}
            RESULT.write_text(json.dumps({name: (kept | rows)[name] for name in names if name in kept | rows}, indent=2) + "\n")
            page.write()
            for line in wrong(rows):
                print(line)
            return 1 if wrong(rows) else 0

        return sandbox.run(body, BUILD)
    except (CatalogueError, DeploymentError, SandboxError) as error:
        sys.exit(f"clients: {error}")


if __name__ == "__main__":
    sys.exit(main())

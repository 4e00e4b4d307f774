# SPDX-License-Identifier: Apache-2.0
"""Runs unmodified HTTP/3 clients through the whole data centre, and writes docs/clients.md from the results.

Each installed client of catalogue.toml downloads 5 MB several times, in namespaces, through softswitch with frontage.p4 from
frontage-cclb7-quic: undisturbed, with its port changed by a NAT, and with its host's address replaced. A client that uses the
cookie address also downloads without a path to it; a client with an option for it, with a migration. A last download comes
from real servers, to which the only server delegates all requests. Writes build/clients/result.json.

Fails if a packet comes from an address that the client must not see, or if the switch does not find the client's server by
its cookie address or connection ID. It also fails if the balancer sends what real servers should, or if a download is
incomplete. The two downloads that depend on the client's ability to change its address may be incomplete.

With --server lsquic, the servers are frontage-lsquic, and there is no download from real servers. The results are then in
build/clients/lsquic.json, and in a table on the standard output instead of docs/clients.md.

Examples: clients/run.py --only ngtcp2
          clients/run.py --server lsquic
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
from frontage_testbed.datacentre.deployment import Deployment, DeploymentError, find
from frontage_testbed.datacentre.settings import QUIC_SERVERS, Settings
from frontage_testbed.sandbox import Sandbox, SandboxError
from handoff import Handed
from page import RESULT
from rounds import Rounds

Rows = dict[str, dict[str, Any]]
WHOLE = {"undisturbed", "rebound", "unreachable"}
"""Downloads that must be complete whatever the client does, because they depend on switch and server only."""


def present(clients: list[Client]) -> tuple[dict[str, Path], Rows]:
    """Return the programs of the installed clients, and the first cells of all rows: version, or how to install it."""
    programs, rows = {}, {}
    for client in clients:
        if program := client.installed_program():
            programs[client.name] = program
            rows[client.name] = {"version": client.version_of(program)}
        else:
            rows[client.name] = {"install": client.install}
            print(f"{client.name} is not installed: {client.install}")
    return programs, rows


def failures(rows: Rows) -> list[str]:
    """Return a message for each violation of the expected behaviour."""
    messages = []
    for name, row in rows.items():
        if handed := row.get("handed"):
            if not handed["whole"]:
                messages.append(f"{name}, delegated: the download is incomplete; its log is in {RESULT.parent}")
            elif handed["balancer"]:
                messages.append(f"{name}, delegated: {handed['balancer']} bytes came from the balancer")
        for kind, run in row.get("runs", {}).items():
            if kind in WHOLE and not run["whole"]:
                messages.append(f"{name}, {kind}: the download is incomplete; its log is in {RESULT.parent}")
            messages += [f"{name}, {kind}: received packets from {address}" for address in run["unexpected"]]
            by, expected = page.steering(run), "cookie" if run["cookies"] else "ID"
            if not by[expected] > sum(by.values()) / 2:
                messages.append(f"{name}, {kind}: found by {by}, expected {expected}")
    return messages


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="CLIENT", help="run this client only; keep the rows of the others")
    parser.add_argument("--server", choices=QUIC_SERVERS, default=QUIC_SERVERS[0], help="the servers")
    arguments = parser.parse_args()
    only, server = arguments.only, arguments.server
    result = RESULT if server == QUIC_SERVERS[0] else RESULT.with_name(f"{server}.json")
    try:
        clients = read()
        names = [client.name for client in clients]
        if only not in (None, *names):
            parser.error(f"unknown client {only}: use one of catalogue.toml: {', '.join(names)}")
        chosen = [client for client in clients if only in (None, client.name)]
        programs, rows = present(chosen)
        settings = Settings(
            servers=3,
            server=server,
            clients=max(1, len(programs)),
            policies=("cclb4",),
            bottleneck_rate=16_000_000,
            queue_delay=0.1,
        )
        parts = find(settings)

        def hand_off(parts: Deployment, settings: Settings, box: Sandbox, installed: list[Client]) -> None:
            with parts.qdsr_testbed(settings, box.part("handed")) as testbed:
                handed = Handed(testbed)
                for client in installed:
                    print(f"{client.name}, from real servers", flush=True)
                    rows[client.name]["handed"] = handed.download(client, programs[client.name])

        def body(box: Sandbox) -> int:
            try:
                installed = [client for client in chosen if client.name in programs]
                with parts.quic_testbed(settings, box.part("alone")) as testbed:
                    rounds = Rounds(testbed)
                    for client in installed:
                        print(client.name, flush=True)
                        rows[client.name] |= rounds.downloads(client, programs[client.name])
                if server == QUIC_SERVERS[0]:
                    hand_off(parts, settings, box, installed)
            finally:
                box.keep_logs(BUILD / "logs")
            kept: Rows = json.loads(result.read_text()) if only and result.exists() else {}
            merged = {name: (kept | rows)[name] for name in names if name in kept | rows}
            result.write_text(json.dumps(merged, indent=2) + "\n")
            if server == QUIC_SERVERS[0]:
                page.write()
            else:
                print(page.short_table(merged))
            for line in failures(rows):
                print(line)
            return 1 if failures(rows) else 0

        return sandbox.run(body, BUILD)
    except (CatalogueError, DeploymentError, SandboxError) as error:
        sys.exit(f"clients: {error}")


if __name__ == "__main__":
    sys.exit(main())

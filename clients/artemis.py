# SPDX-License-Identifier: Apache-2.0
"""Runs unmodified HTTP/3 clients that find a service through a hosts file with its service address (docs/naming.md).

Each installed client downloads 1 MB in Artemis' testbed (docs/artemis.md), through dispatchers, from a network that anycast
does not lead to its best site. Writes clients.json for the page of `make artemis`. Fails if a download is incomplete, if a
client moves away from the best site, or if a client that has moved to the site's own address still uses the service address.

Example: clients/artemis.py --only Chromium
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from catalogue import HERE, ROOT, CatalogueError, Client, read
from frontage_demo.artemis.events import DETOUR
from frontage_demo.artemis.hostsfile import download
from frontage_demo.artemis.names import ZONE
from frontage_demo.artemis.programs import find
from frontage_demo.artemis.testbed import LONG_OBJECT, ArtemisTestbed
from frontage_testbed import sandbox
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.sandbox import Sandbox, SandboxError
from frontage_testbed.wan.addresses import PORT
from rounds import PAGE

CLIENTS = ("ngtcp2", "aioquic", "curl", "Chromium", "Firefox", "lsquic")
"""Clients of the catalogue that use the system's resolver; Go and Bun have their own."""
Rows = dict[str, dict[str, Any]]


def run(testbed: ArtemisTestbed, client: Client, program: Path) -> dict[str, Any]:
    """Return the observations of one client, with its version."""
    (host,) = testbed.scenario.clients
    folder = testbed.directory / f"by-hosts-file-{client.name}"
    values = {
        "folder": str(folder),
        "out": str(folder / LONG_OBJECT.removeprefix("/")),
        "name": ZONE,
        "host": ZONE,
        "port": str(PORT),
        "url": f"https://{ZONE}:{PORT}{LONG_OBJECT}",
        "path": LONG_OBJECT,
        "page": f"/{PAGE}#{LONG_OBJECT}",
        "certificate": str(testbed.directory / "certificate.pem"),
    }
    binding = asdict(download(testbed, host, client.command(program, values), folder))
    return {"version": client.version_of(program)} | binding


def failures(rows: Rows, best: str) -> list[str]:
    """Return a message for each violation of the expected behaviour."""
    messages = []
    for name, row in rows.items():
        if not row["whole"]:
            messages.append(f"{name}: the download is incomplete: {row['log']}")
        if row["site"] not in (None, best):
            messages.append(f"{name}: moved to {row['site']}, not to {best}")
        if row["after"]:
            messages.append(f"{name}: sent {row['after']} datagrams to the service address after {row['site']} had answered itself")
    return messages


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", metavar="CLIENT", action="append", choices=CLIENTS, help="run this client only; by default all installed ones"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "artemis", help="folder of clients.json (build/artemis)")
    given = parser.parse_args()
    output: Path = given.output.absolute()
    try:
        clients = [client for client in read() if client.name in (given.only or CLIENTS)]
        installed = [(client, program) for client in clients if (program := client.installed_program())]
        programs = find()

        def body(box: Sandbox) -> int:
            rows: Rows = {}
            try:
                with ArtemisTestbed(DETOUR, programs, box.scratch / "testbed", dispatched=True) as testbed:
                    shutil.copy(HERE / "programs" / PAGE, testbed.directory / "objects")
                    (host,) = DETOUR.clients
                    best = testbed.best_site(host).location
                    for client, program in installed:
                        print(client.name, flush=True)
                        rows[client.name] = run(testbed, client, program)
            finally:
                box.keep_logs(output / "logs")
            (output / "clients.json").write_text(json.dumps(rows, indent=2) + "\n")
            for line in failures(rows, best):
                print(line)
            return 1 if failures(rows, best) else 0

        return sandbox.run(body, output)
    except (CatalogueError, DeploymentError, SandboxError) as error:
        sys.exit(f"clients: {error}")


if __name__ == "__main__":
    sys.exit(main())

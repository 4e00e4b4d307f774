"""Has HTTP/3 clients that others wrote find a service by a hosts file that names its Service Address (docs/naming.md).

Each of these clients that is here downloads 1 MB in Artemis' testbed (docs/artemis.md), through dispatchers, from a network that anycast
does not lead to its best site. Writes clients.json, which the page of `make artemis` shows. Fails if a download is not whole, if a
client goes to another site than the best one, or if one that has gone to the site's own address still sends to the Service Address.

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
"""Those of the catalogue that look a name up as their system does; Go's and Bun's have ways of their own."""
Rows = dict[str, dict[str, Any]]


def run(testbed: ArtemisTestbed, client: Client, program: Path) -> dict[str, Any]:
    """What is seen of one client, and its version."""
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
    seen = asdict(download(testbed, host, client.command(program, values), folder))
    return {"version": client.version_of(program)} | seen


def wrong(rows: Rows, best: str) -> list[str]:
    """What must not be."""
    found = []
    for name, row in rows.items():
        if not row["whole"]:
            found.append(f"{name}: the download is not whole: {row['log']}")
        if row["site"] not in (None, best):
            found.append(f"{name}: went to {row['site']}, not to {best}")
        if row["after"]:
            found.append(f"{name}: sent {row['after']} datagrams to the service address after {row['site']} had answered itself")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", metavar="CLIENT", action="append", choices=CLIENTS, help="this one; all that are here, if not given"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "artemis", help="folder of clients.json (build/artemis)")
    given = parser.parse_args()
    output: Path = given.output.absolute()
    try:
        clients = [client for client in read() if client.name in (given.only or CLIENTS)]
        here = [(client, program) for client in clients if (program := client.found())]
        made_of = find()

        def body(box: Sandbox) -> int:
            rows: Rows = {}
            try:
                with ArtemisTestbed(DETOUR, made_of, box.scratch / "testbed", dispatched=True) as testbed:
                    shutil.copy(HERE / "programs" / PAGE, testbed.directory / "objects")
                    (host,) = DETOUR.clients
                    best = testbed.best_site(host).place
                    for client, program in here:
                        print(client.name, flush=True)
                        rows[client.name] = run(testbed, client, program)
            finally:
                box.keep_logs(output / "logs")
            (output / "clients.json").write_text(json.dumps(rows, indent=2) + "\n")
            for line in wrong(rows, best):
                print(line)
            return 1 if wrong(rows, best) else 0

        return sandbox.run(body, output)
    except (CatalogueError, DeploymentError, SandboxError) as error:
        sys.exit(f"clients: {error}")


if __name__ == "__main__":
    sys.exit(main())

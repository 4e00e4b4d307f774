# SPDX-License-Identifier: Apache-2.0
"""Has a headless Firefox save a URL to file OUT, whose name is PATH's.

    get_firefox.py FIREFOX OUT PATH NAME HOST PORT CERTIFICATE

HOST is the address of NAME; if both are equal, Firefox resolves the name itself.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from frontage_testbed.load import browsers


def main(firefox: str, out: str, path: str, name: str, host: str, port: str, certificate: str) -> None:
    saved, site = Path(out), browsers.Site(name, host, int(port), Path(certificate))
    profile = saved.parent / "profile"
    command = browsers.firefox(firefox, profile, site)
    process = subprocess.Popen([*command, f"https://{name}:{port}{path}"], env=os.environ | {"HOME": str(profile)})
    # Firefox keeps running after it has saved; until then the data are in a file of another name.
    while process.poll() is None and not (saved.exists() and saved.stat().st_size):
        time.sleep(0.05)
    process.terminate()
    process.wait()
    sys.exit(None if saved.exists() else "Firefox saved nothing")


main(*sys.argv[1:])

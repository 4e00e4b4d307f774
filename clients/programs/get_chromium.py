# SPDX-License-Identifier: Apache-2.0
"""Has a headless Chromium open a page that shows an object in base64, and writes the object to file OUT.

    get_chromium.py CHROMIUM OUT PAGE NAME HOST PORT CERTIFICATE

HOST is the address of NAME; if both are equal, Chromium resolves the name itself.
"""

import base64
import re
import subprocess
import sys
from pathlib import Path

from frontage_testbed.load import browsers


def main(chromium: str, out: str, page: str, name: str, host: str, port: str, certificate: str) -> None:
    site = browsers.Site(name, host, int(port), Path(certificate))
    command = browsers.chromium(chromium, Path(out).parent / "profile", site)
    done = subprocess.run([*command, "--dump-dom", f"https://{name}:{port}{page}"], stdout=subprocess.PIPE, text=True, check=True)
    body = re.search(r"<body>\s*([A-Za-z0-9+/=]+)\s*</body>", done.stdout)
    if body is None:
        sys.exit(f"the page has no object: {done.stdout[:500]}")
    Path(out).write_bytes(base64.b64decode(body[1]))


main(*sys.argv[1:])

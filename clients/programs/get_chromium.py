"""Has a headless Chromium open a page that shows an object in base64: `get_chromium.py CHROMIUM OUT PAGE HOST PORT PIN`.

The object goes to file OUT. PIN is the SHA-256 of the server's public key, in base64: the server's certificate is nobody's.
"""

import base64
import re
import subprocess
import sys
from pathlib import Path


def main(chromium: str, out: str, page: str, host: str, port: str, pin: str) -> None:
    folder = Path(out).parent
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    command += [f"--user-data-dir={folder}/profile", f"--ignore-certificate-errors-spki-list={pin}"]
    # Straight to HTTP/3, as if a server had told of it before (RFC 7838).
    command += [
        "--enable-quic",
        f"--origin-to-force-quic-on=films:{port}",
        f"--host-resolver-rules=MAP films [{host}]",
        "--dump-dom",
        page.replace(f"[{host}]", "films"),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    body = re.search(r"<body>\s*([A-Za-z0-9+/=]+)\s*</body>", done.stdout)
    if body is None:
        sys.exit(f"the page has no object: {done.stdout[:500]}")
    Path(out).write_bytes(base64.b64decode(body[1]))


main(*sys.argv[1:])

"""Has a headless Chromium open a page that shows an object in base64: `get_chromium.py CHROMIUM OUT PAGE NAME HOST PORT CERTIFICATE`.

NAME is at HOST; Chromium looks it up itself if the two are the same.
The object goes to file OUT. The server's certificate is nobody's: it is known by its public key (RFC 7469, section 2.4).
"""

import base64
import hashlib
import re
import subprocess
import sys
from pathlib import Path


def main(chromium: str, out: str, page: str, name: str, host: str, port: str, certificate: str) -> None:
    openssl = ["openssl", "x509", "-in", certificate, "-pubkey", "-noout"]
    key = subprocess.run(openssl, stdout=subprocess.PIPE, text=True, check=True).stdout
    pin = base64.b64encode(hashlib.sha256(base64.b64decode("".join(key.splitlines()[1:-1]))).digest()).decode()
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    command += [f"--user-data-dir={Path(out).parent}/profile", f"--ignore-certificate-errors-spki-list={pin}"]
    # Straight to HTTP/3, as if a server had told of it before (RFC 7838); only names can be had so.
    command += ["--enable-quic", f"--origin-to-force-quic-on={name}:{port}"]
    if host != name:
        command.append(f"--host-resolver-rules=MAP {name} [{host}]")
    done = subprocess.run([*command, "--dump-dom", f"https://{name}:{port}{page}"], stdout=subprocess.PIPE, text=True, check=True)
    body = re.search(r"<body>\s*([A-Za-z0-9+/=]+)\s*</body>", done.stdout)
    if body is None:
        sys.exit(f"the page has no object: {done.stdout[:500]}")
    Path(out).write_bytes(base64.b64decode(body[1]))


main(*sys.argv[1:])

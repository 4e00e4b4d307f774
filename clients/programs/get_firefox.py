"""Has a headless Firefox save a URL: `get_firefox.py FIREFOX OUT PATH NAME HOST PORT CERTIFICATE`.

NAME is at HOST; Firefox looks it up itself if the two are the same.
The body goes to file OUT, whose name is PATH's. The server's certificate is nobody's: it is an exception of the profile.
"""

import hashlib
import os
import ssl
import subprocess
import sys
import time
from pathlib import Path


def main(firefox: str, out: str, path: str, name: str, host: str, port: str, certificate: str) -> None:
    saved = Path(out)
    profile = saved.parent / "profile"
    profile.mkdir()
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(Path(certificate).read_text())).hexdigest().upper()
    fingerprint = ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
    sha256 = "OID.2.16.840.1.101.3.4.2.1"
    (profile / "cert_override.txt").write_text(f"{name}:{port}:\t{sha256}\t{fingerprint}\t\n")
    settings = {
        # Straight to HTTP/3, as if a server had told of it before (RFC 7838).
        "network.http.http3.alt-svc-mapping-for-testing": f'"{name};h3=:{port}"',
        "network.http.http3.disable_when_third_party_roots_found": "false",
        "browser.download.folderList": "2",
        "browser.download.dir": f'"{saved.parent}"',
    }
    if host != name:
        settings["network.dns.forceResolve"] = f'"{host}"'
    (profile / "user.js").write_text("".join(f'user_pref("{key}", {value});\n' for key, value in settings.items()))
    command = [firefox, "--headless", "--profile", str(profile), f"https://{name}:{port}{path}"]
    process = subprocess.Popen(command, env=os.environ | {"HOME": str(profile)})
    # It goes on when it has saved; until then, what it has is in a file of another name.
    while process.poll() is None and not (saved.exists() and saved.stat().st_size):
        time.sleep(0.05)
    process.terminate()
    process.wait()
    sys.exit(None if saved.exists() else "it saved nothing")


main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Commands of headless browsers that use HTTP/3 at once and accept a server's self-signed certificate."""

from __future__ import annotations

import base64
import hashlib
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

UNUSED_PORT = 9


@dataclass(frozen=True)
class Site:
    """The site to open."""

    name: str
    """Host name in the URLs."""
    host: str
    """The name's address; if equal to the name, the browser resolves it."""
    port: int
    certificate: Path
    """PEM file of the certificate."""
    learns_quic: bool = False
    """True if the browser learns from DNS or from the site that it can use HTTP/3."""


def chromium(program: str | Path, profile: Path, site: Site) -> list[str]:
    """Return Chromium's command without action and page; `profile` is its profile folder."""
    command = [str(program), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += ["--no-first-run", f"--user-data-dir={profile}"]
    # Chromium accepts the certificate by its public key (RFC 7469, section 2.4).
    command.append(f"--ignore-certificate-errors-spki-list={_pin(site.certificate)}")
    # Use HTTP/3 at once, as after an Alt-Svc header (RFC 7838); the option takes only host names. It also accepts the certificate
    # for HTTP/3, whatever the port.
    command += ["--enable-quic", f"--origin-to-force-quic-on={site.name}:{UNUSED_PORT if site.learns_quic else site.port}"]
    if site.host != site.name:
        command.append(f"--host-resolver-rules=MAP {site.name} [{site.host}]")
    return command


def with_resolver(file: Path) -> tuple[str | Path, ...]:
    """Return the beginning of a command whose program uses the name servers in `file`, in the form of /etc/resolv.conf."""
    return ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', file)


def firefox(program: str | Path, profile: Path, site: Site) -> list[str]:
    """Return Firefox's command without the page. Creates the profile folder; downloads go into its parent folder."""
    profile.mkdir()
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(site.certificate.read_text())).hexdigest().upper()
    fingerprint = ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
    sha256 = "OID.2.16.840.1.101.3.4.2.1"
    # An exception in the profile accepts the certificate.
    exception = f"{site.name}:{site.port}:\t{sha256}\t{fingerprint}\t\n"
    (profile / "cert_override.txt").write_text(exception)
    settings = {
        # Use HTTP/3 at once, as after an Alt-Svc header (RFC 7838).
        "network.http.http3.alt-svc-mapping-for-testing": f'"{site.name};h3=:{site.port}"',
        "network.http.http3.disable_when_third_party_roots_found": "false",
        "browser.download.folderList": "2",
        "browser.download.dir": f'"{profile.parent}"',
    }
    if site.host != site.name:
        settings["network.dns.forceResolve"] = f'"{site.host}"'
    (profile / "user.js").write_text("".join(f'user_pref("{key}", {value});\n' for key, value in settings.items()))
    return [str(program), "--headless", "--profile", str(profile)]


def _pin(certificate: Path) -> str:
    openssl = ["openssl", "x509", "-in", str(certificate), "-pubkey", "-noout"]
    key = subprocess.run(openssl, stdout=subprocess.PIPE, text=True, check=True).stdout
    return base64.b64encode(hashlib.sha256(base64.b64decode("".join(key.splitlines()[1:-1]))).digest()).decode()

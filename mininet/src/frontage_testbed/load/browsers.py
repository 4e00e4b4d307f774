"""Browsers without a screen, as they are told to go straight to HTTP/3 at a server whose certificate is nobody's."""

from __future__ import annotations

import base64
import hashlib
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Site:
    """What a browser opens pages of."""

    name: str
    """As in its URLs."""
    host: str
    """The name's address; if it is the name itself, the browser looks it up."""
    port: int
    certificate: Path
    """A PEM file."""


def chromium(program: str | Path, profile: Path, site: Site) -> list[str]:
    """Chromium's command, but for what it is to do with which page; it keeps what it knows in the folder `profile`."""
    command = [str(program), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += ["--no-first-run", f"--user-data-dir={profile}"]
    # The certificate is known by its public key (RFC 7469, section 2.4).
    command.append(f"--ignore-certificate-errors-spki-list={_pin(site.certificate)}")
    # Straight to HTTP/3, as if a server had told of it before (RFC 7838); only names can be had so.
    command += ["--enable-quic", f"--origin-to-force-quic-on={site.name}:{site.port}"]
    if site.host != site.name:
        command.append(f"--host-resolver-rules=MAP {site.name} [{site.host}]")
    return command


def firefox(program: str | Path, profile: Path, site: Site) -> list[str]:
    """Firefox's command, but for the page. The folder `profile` is made, with what it is to know; what it saves goes
    into the folder around it.
    """
    profile.mkdir()
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(site.certificate.read_text())).hexdigest().upper()
    fingerprint = ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
    sha256 = "OID.2.16.840.1.101.3.4.2.1"
    # The certificate is an exception of the profile.
    exception = f"{site.name}:{site.port}:\t{sha256}\t{fingerprint}\t\n"
    (profile / "cert_override.txt").write_text(exception)
    settings = {
        # Straight to HTTP/3, as if a server had told of it before (RFC 7838).
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

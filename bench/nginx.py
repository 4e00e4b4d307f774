# SPDX-License-Identifier: Apache-2.0
"""nginx with HTTP/3 as a peer, from a Debian root of its own, which `bench/nginx-root` makes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from namespaces import run
from paths import ROOT

NO_NGINX = (
    "no nginx with HTTP/3 to compare with: run bench/nginx-root, which makes build/nginx-quic, "
    "or set NGINX_QUIC to a Debian root that has it"
)

CONFIGURATION = """\
daemon off;
user root;
worker_processes 1;
pid /mnt/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    quic_gso on;
    http3_max_concurrent_streams 128;
    keepalive_requests 1000000000;
    {http}
    server {{
        listen {listen} quic;
        http3 on;
        ssl_certificate /mnt/{certificate};
        ssl_certificate_key /mnt/{key};
        ssl_protocols TLSv1.3;
        {server}
    }}
}}
"""


def nginx_root() -> Path | None:
    """A Debian root whose nginx speaks HTTP/3 (1.25 or later)."""
    root = Path(os.environ.get("NGINX_QUIC", ROOT / "build" / "nginx-quic"))
    return root if (root / "usr" / "sbin" / "nginx").exists() else None


def version(root: Path) -> str:
    """What it is called; RuntimeError if it has no HTTP/3."""
    said = subprocess.run(["chroot", root, "nginx", "-V"], capture_output=True, text=True, check=True).stderr
    found = re.search(r"nginx/(\S+)", said)
    if found is None or "http_v3_module" not in said:
        raise RuntimeError(f"the nginx in {root} has no HTTP/3; bench/nginx-root makes one that has")
    return f"nginx {found[1]}"


def command(root: Path, folder: Path, listen: str, pair: tuple[str, str], server: str, http: str = "") -> list[str | Path]:
    """The command that serves from `folder`, which the root sees as /mnt, with one worker and the certificate and key of these names.
    `server` and `http` say more of the server, and of all HTTP."""
    certificate, key = pair
    text = CONFIGURATION.format(listen=listen, certificate=certificate, key=key, server=server, http=http)
    (folder / "nginx.conf").write_text(text)
    run(f"mount --bind {folder} {root / 'mnt'}")
    return ["chroot", root, "nginx", "-c", "/mnt/nginx.conf"]

# SPDX-License-Identifier: Apache-2.0
"""nginx with HTTP/3 as a peer, from a separate Debian root that `bench/nginx-root` creates."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from namespaces import run
from paths import ROOT

NO_NGINX = (
    "no nginx with HTTP/3 to compare with: run bench/nginx-root, which creates build/nginx-quic, "
    "or set NGINX_QUIC to a Debian root that contains it"
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
    """Return a Debian root whose nginx supports HTTP/3 (1.25 or later), or None."""
    root = Path(os.environ.get("NGINX_QUIC", ROOT / "build" / "nginx-quic"))
    return root if (root / "usr" / "sbin" / "nginx").exists() else None


def version(root: Path) -> str:
    """Return name and version of the nginx in `root`; raise RuntimeError if it does not support HTTP/3."""
    output = subprocess.run(["chroot", root, "nginx", "-V"], capture_output=True, text=True, check=True).stderr
    match = re.search(r"nginx/(\S+)", output)
    if match is None or "http_v3_module" not in output:
        raise RuntimeError(f"{root}: nginx does not support HTTP/3: run bench/nginx-root")
    return f"nginx {match[1]}"


def command(root: Path, folder: Path, listen: str, pair: tuple[str, str], server: str, http: str = "") -> list[str | Path]:
    """Configure nginx with one worker and return its command.

    It serves from `folder`, which is /mnt in the root. `pair` names certificate and key in it.
    `server` and `http` are additional directives of these two contexts.
    """
    certificate, key = pair
    text = CONFIGURATION.format(listen=listen, certificate=certificate, key=key, server=server, http=http)
    (folder / "nginx.conf").write_text(text)
    run(f"mount --bind {folder} {root / 'mnt'}")
    return ["chroot", root, "nginx", "-c", "/mnt/nginx.conf"]

"""Downloads that frontage-cclb7-quic serves in a second of one core's time, its kernel's included, and those that nginx does."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from http3 import SIZES, Lab, Server, lab
from paths import ROOT
from rows import Row, finish, row

ROUNDS = 4
"""Of four turns each: ours, nginx's, nginx's, ours."""
PORT, NGINX_PORT = 4433, 4435
NO_NGINX = (
    "nginx with HTTP/3 is not here to compare with: bench/nginx-root makes build/nginx-quic, or set NGINX_QUIC to a Debian root that has it"
)

CONFIGURATION = f"""\
daemon off;
user root;
worker_processes 1;
pid /mnt/nginx.pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    quic_gso on;
    http3_max_concurrent_streams 100;
    keepalive_requests 1000000000;
    server {{
        listen [::]:{NGINX_PORT} quic;
        http3 on;
        ssl_certificate /mnt/certificate.pem;
        ssl_certificate_key /mnt/key.pem;
        ssl_protocols TLSv1.3;
        root /mnt/objects;
    }}
}}
"""


def nginx_root() -> Path | None:
    """A Debian root whose nginx speaks HTTP/3 (1.25 or later)."""
    root = Path(os.environ.get("NGINX_QUIC", ROOT / "build" / "nginx-quic"))
    return root if (root / "usr" / "sbin" / "nginx").exists() else None


def version(root: Path) -> str:
    said = subprocess.run(["chroot", root, "nginx", "-V"], capture_output=True, text=True, check=True).stderr
    found = re.search(r"nginx/(\S+)", said)
    if found is None or "http_v3_module" not in said:
        raise RuntimeError(f"the nginx in {root} has no HTTP/3; bench/nginx-root makes one that has")
    return f"nginx {found[1]}"


def serve_nginx(here: Lab, root: Path) -> contextlib.AbstractContextManager[Server]:
    (here.folder / "nginx.conf").write_text(CONFIGURATION)
    subprocess.run(["mount", "--bind", here.folder, root / "mnt"], check=True)
    return here.server("nginx", NGINX_PORT, ["chroot", root, "nginx", "-c", "/mnt/nginx.conf"], process="worker")


def per_second(server: Server, size: int, requests: int) -> float:
    """Downloads for a second of the server's core."""
    return requests / (server.turn(size, requests).core_ns / 1e9)


def measure() -> list[Row]:
    root, rows = nginx_root(), []
    with lab() as here, contextlib.ExitStack() as servers:
        ours = servers.enter_context(here.ours("ours", PORT, cookie=True))
        both, peer = [ours], None
        if root is None:
            print(NO_NGINX, file=sys.stderr)
        else:
            peer = version(root)
            both.append(servers.enter_context(serve_nginx(here, root)))
        for name, (size, requests) in SIZES.items():
            found: list[list[float]] = [[] for _ in both]
            for server in both:
                server.turn(size, requests)  # fills what is cached
            for number in range(2 * ROUNDS):
                turns = list(zip(both, found, strict=True))
                for server, rates in turns if number % 2 == 0 else reversed(turns):
                    rates.append(per_second(server, size, requests))
            values = [median(rates) for rates in found]
            rows.append(row(f"quic_server_{name.replace(' ', '')}_per_core", values[0], "downloads/s of core time", peer, *values[1:]))
    return rows


if __name__ == "__main__":
    finish(measure)

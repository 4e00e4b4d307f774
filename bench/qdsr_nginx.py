"""nginx as a proxy of the lab's real servers, over HTTP/3 to the client and HTTP/1.1 to them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from namespaces import child, pin, run, serving
from qdsr_lab import BALANCER, BALANCER_CORE, ORIGIN_PORT, REAL, Form, Lab

CONFIGURATION = """\
daemon off;
user root;
worker_processes 1;
pid /mnt/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    quic_gso on;
    http3_max_concurrent_streams 128;
    keepalive_requests 1000000000;
    upstream real {{
        {servers}
        keepalive 128;
    }}
    server {{
        listen [{balancer}]:{port} quic;
        http3 on;
        ssl_certificate /mnt/lb.pem;
        ssl_certificate_key /mnt/lb.key;
        ssl_protocols TLSv1.3;
        location / {{
            proxy_pass http://real;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            # What does not fit is not put on a disk.
            proxy_buffers 16 64k;
            proxy_buffer_size 64k;
            proxy_busy_buffers_size 128k;
            proxy_max_temp_file_size 0;
        }}
    }}
}}
"""


@contextlib.contextmanager
def serve_nginx(here: Lab, root: Path, port: int) -> Iterator[Form]:
    """The nginx of a Debian root, until the end."""
    servers = " ".join(f"server [{address}]:{ORIGIN_PORT};" for address in REAL)
    (here.folder / "nginx.conf").write_text(CONFIGURATION.format(balancer=BALANCER, port=port, servers=servers))
    run(f"mount --bind {here.folder} {root / 'mnt'}")
    command: list[str | Path] = [*pin(BALANCER_CORE), "chroot", root, "nginx", "-c", "/mnt/nginx.conf"]
    with serving(here.folder / "nginx.log", command, port) as pid:
        worker = child(pid, "worker")
        here.confine(worker)
        yield Form(here, port, worker, 1)

# SPDX-License-Identifier: Apache-2.0
"""The TCP servers: one unmodified nginx per host, all with the same objects."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..nodes import Namespace
from .addresses import HTTP_PORT, ServerAddresses

NGINX = Path("/usr/sbin/nginx")
OBJECTS = "/objects"
PACED = "/paced"
PACE = 8_000
"""Default rate of responses from PACED in bytes per second."""

CONFIGURATION = """\
{modules}user root;
worker_processes 1;
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log warn;
events {{ worker_connections 4096; }}
http {{
{reporting}    access_log off;
    default_type application/octet-stream;
    sendfile on;
    # Clients that never close (see workload.CLOSINGS) keep their connections for the whole run.
    keepalive_timeout 1h;
    keepalive_requests 1000000;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen {port};
        listen [::]:{port};
        add_header X-Server {name} always;
        location {objects}/ {{ root {root}; }}
        # The same objects at a limited rate: for connections that must last, in a number that does not depend on the links.
        location {paced}/ {{ alias {root}{objects}/; limit_rate {pace}; }}
        # For health checks: the file `down` makes the server say that it is unavailable.
        location = /health {{ if (-f {directory}/down) {{ return 503; }} return 204; }}
    }}
}}
"""


def configured(
    directory: Path, name: str, root: Path, *, port: int = HTTP_PORT, module: Path | None = None, pace: int = PACE
) -> str:
    """Return the configuration of a server that serves `root/objects` and keeps its files in `directory`."""
    return CONFIGURATION.format(
        modules=f"load_module {module};\n" if module else "",
        reporting="    cloudcookie on;\n" if module else "",
        directory=directory,
        port=port,
        name=name,
        root=root,
        objects=OBJECTS,
        paced=PACED,
        pace=pace,
    )


@dataclass
class WebServer:
    """nginx on one host."""

    host: Namespace
    addresses: ServerAddresses
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, host: Namespace, addresses: ServerAddresses, scratch: Path, module: Path | None, pace: int = PACE) -> WebServer:
        """Start nginx, which serves `scratch/objects`. `module` is the flow-size reporter; `pace` is in bytes per second."""
        directory = scratch / addresses.name
        directory.mkdir()
        configuration = directory / "nginx.conf"
        configuration.write_text(configured(directory, addresses.name, scratch, module=module, pace=pace))
        with (directory / "nginx.log").open("wb") as log:
            process = host.spawn([NGINX, "-c", configuration, "-e", directory / "error.log"], stdout=log, stderr=log)
        return cls(host, addresses, process)

    def stop(self) -> None:
        """Stop nginx."""
        self.process.terminate()
        self.process.wait()

# SPDX-License-Identifier: Apache-2.0
"""The metrics over TLS: curl as a client that we did not write, real certificates, and a client that says nothing."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from pathlib import Path

import pytest

from authorities import Authority
from frontage.config import ConfigError, load
from frontage.service.daemon import Service
from live import LIMIT, installed_service, until

pytestmark = pytest.mark.timeout(120)


def secured(config_file: Path) -> Authority:
    """Serve the metrics of a configuration over mutual TLS, and return the authority."""
    authority = Authority(config_file.parent)
    authority.issue("server", "127.0.0.1")
    authority.issue("prometheus", "prometheus.example")
    tls = "{ certificate: server.pem, key: server-key.pem, clients: ca.pem }"
    with_tls(config_file, tls)
    return authority


def with_tls(config_file: Path, tls: str) -> None:
    text = config_file.read_text()
    assert text.count("address: 127.0.0.1:0\n") == 1
    config_file.write_text(text.replace("address: 127.0.0.1:0\n", f"address: 127.0.0.1:0\n  tls: {tls}\n"))


async def curl(service: Service, *options: str) -> tuple[int, str]:
    """Return the status of curl, and its output."""
    assert service.endpoint is not None
    words = ["--silent", "--show-error", "--max-time", "20", *options, service.endpoint.url]
    folder = service.file.parent
    process = await asyncio.create_subprocess_exec("curl", *words, cwd=folder, stdout=-1, stderr=-2)
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def test_metrics_need_the_certificates(config_file: Path) -> None:
    secured(config_file)
    known, own = ("--cacert", "ca.pem"), ("--cert", "prometheus.pem", "--key", "prometheus-key.pem")
    async with installed_service(config_file) as service:
        endpoint = service.endpoint
        assert endpoint is not None and endpoint.url.startswith("https://127.0.0.1:")
        # A client that says nothing delays only itself.
        with closing(socket.create_connection(endpoint.address, timeout=LIMIT)):
            status, text = await curl(service, *known, *own)
        assert (status, 'frontage_certificate_days_left{use="metrics"}' in text) == (0, True)
        assert (await curl(service, *known))[0] != 0  # no certificate
        assert (await curl(service, *own))[0] == 60  # the server's authority is unknown
        plain = endpoint.url.replace("https:", "http:")
        process = await asyncio.create_subprocess_exec("curl", "--silent", "--max-time", "20", plain, stdout=-1)
        assert await process.communicate() == (b"", None)
        assert process.returncode != 0


async def test_replaced_certificates_of_metrics_are_used(config_file: Path) -> None:
    secured(config_file)
    own = ("--cert", "prometheus.pem", "--key", "prometheus-key.pem")
    async with installed_service(config_file) as service:
        assert service.endpoint is not None
        certificates = service.endpoint.certificates
        assert certificates is not None
        (config_file.parent / "server.pem").write_text("damaged")
        await until(lambda: certificates.error is not None and "server.pem" in certificates.error)
        assert (await curl(service, "--cacert", "ca.pem", *own))[0] == 0
        other = Authority(config_file.parent, "other")
        other.issue("server", "127.0.0.1")
        await until(lambda: certificates.error is None)
        assert (await curl(service, "--cacert", "ca.pem", *own))[0] == 60
        assert (await curl(service, "--cacert", "other.pem", *own))[0] == 0


def test_a_certificate_needs_its_key(config_file: Path) -> None:
    with_tls(config_file, "{ certificate: server.pem }")
    with pytest.raises(ConfigError, match=r"metrics\.tls\.key"):
        load(config_file)

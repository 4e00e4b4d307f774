# SPDX-License-Identifier: Apache-2.0
"""Service addresses in DNS: published in the record store, and as a zone file for NSD."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dns.message
import dns.query
import dns.zone
import pytest
import yaml

from frontage.naming import ServicePrefix

EXAMPLE = Path(__file__).parents[2] / "examples" / "artemis.yaml"
FRONTAGE = Path(sys.executable).with_name("frontage")
PREFIX = ServicePrefix.parse("2001:db8:a57e::/48+16")
FILMS, SMALL = (str(PREFIX.service_address(f"{name}.example")) for name in ("films", "small"))
TIMEOUT = 30


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """Run a command that prints one line and then serves; return the line."""
    process = subprocess.Popen([FRONTAGE, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline()
    finally:
        process.terminate()
        process.wait(TIMEOUT)


def configuration(folder: Path, servers: dict[int, str]) -> Path:
    document = yaml.safe_load(EXAMPLE.read_text())
    document["vips"][1]["port"] = 8443
    del document["mapping"]
    zone = {
        "zone": "example",
        "listen": "127.0.0.1:0",
        "name_servers": ["ns1.example"],
        "contact": "root.example",
        "servers": servers,
    }
    document["records"] = {"listen": "127.0.0.1:0", "store": f"sqlite:///{folder / 'records.db'}", "dns": zone}
    file = folder / "frontage.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def command(*arguments: str) -> str:
    done = subprocess.run([FRONTAGE, *arguments], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(port: int, name: str, kind: str) -> set[str]:
    answer = dns.query.udp(dns.message.make_query(name, kind), "127.0.0.1", port=port, timeout=TIMEOUT)
    return {str(data) for rrset in answer.answer for data in rrset}


def test_published_names_are_in_dns(tmp_path: Path) -> None:
    file = configuration(tmp_path, {})
    command("records", "create", "-c", str(file))
    with running("records", "serve", "-c", str(file)) as line:
        (url,) = re.findall(r"http://[^/]+", line)
        file = configuration(tmp_path, {1: url})
        assert command("records", "publish", "-c", str(file)).splitlines()[-1] == "3 records, 3 changed"
        assert command("records", "publish", "-c", str(file)) == "3 records, 0 changed\n"
        with running("records", "dns", "-c", str(file)) as line:
            port = int(line.split()[-1])
            assert ask(port, "films.example", "AAAA") == {FILMS}
            assert ask(port, "films.example", "HTTPS") == {f'1 . alpn="h3" ipv6hint="{FILMS}"'}
            assert ask(port, "small.example", "AAAA") == {SMALL}
            assert ask(port, "small.example", "HTTPS") == set()
            assert ask(port, "_8443._https.small.example", "HTTPS") == {'1 small.example. alpn="h3" port="8443"'}


def test_names_outside_the_zone_are_not_published(tmp_path: Path) -> None:
    file = configuration(tmp_path, {1: "http://127.0.0.1:9"})
    file.write_text(file.read_text().replace("zone: example", "zone: elsewhere.example"))
    done = subprocess.run([FRONTAGE, "records", "publish", "-c", file], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 1
    assert "films.example is not below elsewhere.example: publish it with `frontage names --zone`" in done.stderr


def test_an_unreachable_store_is_reported(tmp_path: Path) -> None:
    file = configuration(tmp_path, {1: "http://127.0.0.1:9"})
    done = subprocess.run([FRONTAGE, "records", "publish", "-c", file], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


def test_nsd_reads_the_zone(tmp_path: Path) -> None:
    checker = shutil.which("nsd-checkzone") or "/usr/sbin/nsd-checkzone"
    if not Path(checker).exists():
        pytest.skip("needs nsd-checkzone: install the package nsd")
    head = "example. 30 IN SOA ns1.example. root.example. 1 1200 180 1209600 5\nexample. 30 IN NS ns1.example.\n"
    zone = tmp_path / "example.zone"
    zone.write_text(head + command("names", "--zone", "-c", str(configuration(tmp_path, {}))))
    done = subprocess.run([checker, "-p", "example", zone], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr + done.stdout
    text = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("zone "))
    records = dns.zone.from_text(text, origin="example.", relativize=False)
    assert {str(data) for data in records.get_rdataset("films.example.", "HTTPS")} == {f'1 . alpn="h3" ipv6hint="{FILMS}"'}
    assert {str(data) for data in records.get_rdataset("small.example.", "AAAA")} == {SMALL}

# SPDX-License-Identifier: Apache-2.0
"""HTTP/3 servers and a client that is not ours, gtlsclient of ngtcp2: each has a core of its own, and a network namespace of its own,
so that a server's core time is its own and not that of what receives from it. To be run by `unshare --net --mount`."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from namespaces import child, core_ns, enter, namespace, pin, run, serving
from paths import program

SIZES = {"1 kB": (1_000, 2_000), "100 kB": (100_000, 200), "10 MB": (10_000_000, 4)}
"""Of objects, and how many of them one turn downloads over one connection, up to 100 at a time."""

SERVER_CORE, CLIENT_CORE = 0, 1
VIP = "2001:db8:0:7::1"
"""Of the server's own /64, so that what stands in for the edge switch may show it for each other address of that."""
LINK = "2001:db8:0:1::{}"
AES = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM"
"""One cipher for all: left to choose, servers differ."""
WINDOW = ["--max-data=128K", "--max-window=0"]
"""What a connection may have under way: less than the client's socket takes, so that nothing is lost when the client has to wait."""

SERVER = """\
listen = ["[::]:{port}"]
certificate = "certificate.pem"
private_key = "key.pem"
[[route]]
path = "/"
directory = "objects"
"""

COOKIE = """\
[cookie]
sid = 7
server_prefix = "2001:db8:0:7::/64"
cookie_prefix = "2001:db8:0:8::/64"
port = {port}
keys = "keys.toml"
"""

KEYS = """\
[[keys]]
id = 4
secret = "00112233445566778899aabbccddeeff"
"""

UNMASK = f"""\
add table ip6 edge
add chain ip6 edge unmask {{ type filter hook prerouting priority raw; }}
add rule ip6 edge unmask ip6 saddr 2001:db8:0:7::/64 ip6 saddr set {VIP}
"""
"""What the edge switch does for a client: whatever the source says, it sees the VIP."""


@dataclass(frozen=True)
class Turn:
    """What some downloads took."""

    core_ns: int
    """Of the server's core, its kernel's time for it included."""
    packets: int
    """That arrived at the client."""


class Lab:
    """A namespace for clients beside that of this process, where servers are; a link between them, and objects to download."""

    def __init__(self, folder: Path, clients: int) -> None:
        self.folder = folder
        self.enter = enter(clients)

    @contextlib.contextmanager
    def server(self, name: str, port: int, command: Sequence[str | Path], process: str | None = None) -> Iterator[Server]:
        """Runs a server until the end. Its work is that of `process`, a child of the command's, if that is given."""
        with serving(self.folder / f"{name}.log", [*pin(SERVER_CORE), *command], port) as pid:
            yield Server(self, port, child(pid, process) if process else pid)

    def ours(self, name: str, port: int, cookie: bool) -> contextlib.AbstractContextManager[Server]:
        """frontage-cclb7-quic, with or without a [cookie]."""
        configuration = self.folder / f"{name}.toml"
        configuration.write_text((SERVER + (COOKIE if cookie else "")).format(port=port))
        return self.server(name, port, [program("FRONTAGE_CCLB7_QUIC", "frontage-cclb7-quic"), configuration])

    def download(self, port: int, size: int, requests: int) -> int:
        """The packets that came."""
        url = f"https://[{VIP}]:{port}/{size}"
        options = [
            "--quiet",
            "--exit-on-all-streams-close",
            "--no-preferred-addr",
            f"--ciphers={AES}",
            f"--nstreams={requests}",
            *WINDOW,
        ]
        before = self._received()
        done = subprocess.run(
            [*self.enter, *pin(CLIENT_CORE), "gtlsclient", *options, VIP, str(port), url],
            capture_output=True,
            text=True,
            check=False,
        )
        packets = self._received() - before
        if done.returncode != 0 or done.stderr or packets < requests * size // 1500:
            raise RuntimeError(f"{requests} downloads of {url} failed: {done.stderr or done.stdout}")
        return packets

    def _received(self) -> int:
        counts = subprocess.run([*self.enter, "cat", "/proc/net/snmp6"], capture_output=True, text=True, check=True).stdout
        table = dict(line.split() for line in counts.splitlines())
        return int(table["Udp6InDatagrams"]) + int(table["Udp6RcvbufErrors"])


@dataclass(frozen=True)
class Server:
    lab: Lab
    port: int
    pid: int

    def turn(self, size: int, requests: int) -> Turn:
        before = core_ns(self.pid)
        packets = self.lab.download(self.port, size, requests)
        return Turn(core_ns(self.pid) - before, packets)


@contextlib.contextmanager
def lab() -> Iterator[Lab]:
    if (os.cpu_count() or 1) <= max(SERVER_CORE, CLIENT_CORE):
        raise RuntimeError("server and client need a core each")
    for tool, package in (("gtlsclient", "ngtcp2-client"), ("nft", "nftables"), ("openssl", "openssl")):
        if shutil.which(tool) is None:
            raise FileNotFoundError(f"{tool} is missing: apt-get install {package}")
    with tempfile.TemporaryDirectory(prefix="frontage-bench-") as name, namespace() as clients:
        folder = Path(name)
        _write(folder)
        run("mount -t sysfs none /sys")
        result = Lab(folder, clients)
        _connect(result, clients)
        yield result


def _write(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "objects").mkdir()
    for size, _ in SIZES.values():
        (folder / "objects" / str(size)).write_bytes(bytes(n * 31 % 251 for n in range(1000)) * (size // 1000))
    (folder / "keys.toml").write_text(KEYS)
    curve = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=bench -keyout key.pem -out certificate.pem"
    subprocess.run(["openssl", *curve.split()], cwd=folder, capture_output=True, check=True)


def _connect(lab: Lab, clients: int) -> None:
    """Each end receives on its own core."""
    inside = " ".join(lab.enter)
    for command in (
        f"ip link add server type veth peer name client netns {clients}",
        "ip link set lo up",
        f"ip -6 address add {LINK.format(7)}/64 dev server nodad",
        f"ip -6 address add {VIP}/128 dev lo nodad",
        "ip link set server up",
        f"{inside} ip -6 address add {LINK.format(1)}/64 dev client nodad",
        f"{inside} ip link set client up",
        "ip -6 route add local 2001:db8:0:7::/64 dev lo",
        f"{inside} ip -6 route add 2001:db8:0:7::/64 via {LINK.format(7)}",
    ):
        run(command)
    run(f"{inside} nft -f -", UNMASK)
    run("tee /sys/class/net/server/queues/rx-0/rps_cpus", f"{1 << SERVER_CORE:x}")
    run(f"{inside} tee /sys/class/net/client/queues/rx-0/rps_cpus", f"{1 << CLIENT_CORE:x}")

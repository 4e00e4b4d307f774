# SPDX-License-Identifier: Apache-2.0
"""A testbed with HTTP/3 servers and an independent client, gtlsclient of ngtcp2.

Servers and client have separate cores and network namespaces, so the server's core time does not include the client's work.
Run programs that use this module with `unshare --net --mount`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from namespaces import child, core_ns, enter, namespace, pin, run, serving
from paths import ROOT, program

SIZES = {"1 kB": (1_000, 2_000), "100 kB": (100_000, 200), "10 MB": (10_000_000, 4)}
"""Size in bytes of each object, and how many of them a run downloads over one connection, up to 100 at a time."""

SERVER_CORE, CLIENT_CORE = 0, 1
VIP = "2001:db8:0:7::1"
"""An address in the server's /64. The substitute for the edge switch shows it in place of every other address of the /64."""
LINK = "2001:db8:0:1::{}"
AES = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM"
"""The same cipher for all servers, because their own choices differ."""
WINDOW = ("--max-data=128K", "--max-window=0")
"""Flow control windows below the buffer of the client's socket, so nothing is lost while the client waits for its core."""

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
"""Substitute for the edge switch: clients see the VIP as source of every packet."""


@dataclass(frozen=True)
class Run:
    """The cost of a run, which is a fixed number of downloads over one connection."""

    core_ns: int
    """Nanoseconds of the server's core time, including the kernel's."""
    packets: int
    """Packets that arrived at the client."""


class Testbed:
    """A namespace for clients, linked with that of this process, which is for servers; and a folder with objects to download."""

    def __init__(self, folder: Path, clients: int) -> None:
        self.folder = folder
        self.enter = enter(clients)

    @contextlib.contextmanager
    def server(self, name: str, port: int, command: Sequence[str | Path], process: str | None = None) -> Iterator[Server]:
        """Run a server until the context ends. Measure the child process whose command line contains `process`, if that is given."""
        with serving(self.folder / f"{name}.log", [*pin(SERVER_CORE), *command], port) as pid:
            yield Server(self, port, child(pid, process) if process else pid)

    def cclb7_quic(self, name: str, port: int, cookie: bool, fields: str = "") -> contextlib.AbstractContextManager[Server]:
        """Run frontage-cclb7-quic with or without a [cookie] section, and with additional fields of the configuration."""
        configuration = self.folder / f"{name}.toml"
        configuration.write_text((fields + SERVER + (COOKIE if cookie else "")).format(port=port))
        return self.server(name, port, [program("FRONTAGE_CCLB7_QUIC", "frontage-cclb7-quic"), configuration])

    def lsquic(self, name: str, port: int, signals: bool) -> contextlib.AbstractContextManager[Server]:
        """Run frontage-lsquic with or without signals."""
        command: list[str | Path] = [os.environ.get("FRONTAGE_LSQUIC", ROOT / "build" / "lsquic" / "frontage-lsquic")]
        files = {"directory": "objects", "certificate": "certificate.pem", "private-key": "key.pem"}
        files |= {"keys": "keys.toml"} if signals else {}
        command += [f"--listen=[::]:{port}", *(f"--{option}={self.folder / file}" for option, file in files.items())]
        if signals:
            command += ["--sid=7", "--server-prefix=2001:db8:0:7::", "--cookie-prefix=2001:db8:0:8::", f"--port={port}"]
        return self.server(name, port, command)

    def download(self, port: int, size: int, requests: int, window: Sequence[str] = WINDOW) -> int:
        """Download objects and return the number of packets that arrived. `window` are the client's options for flow control.

        Raises RuntimeError if a download fails.
        """
        url = f"https://[{VIP}]:{port}/{size}"
        options = [
            "--quiet",
            "--exit-on-all-streams-close",
            "--no-preferred-addr",
            f"--ciphers={AES}",
            f"--nstreams={requests}",
            *window,
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
    """A running server."""

    testbed: Testbed
    port: int
    pid: int

    def measure(self, size: int, requests: int) -> Run:
        """Return the cost of downloading so many objects of `size` bytes."""
        before = core_ns(self.pid)
        packets = self.testbed.download(self.port, size, requests)
        return Run(core_ns(self.pid) - before, packets)


Link = Callable[[Path, int], contextlib.AbstractContextManager[None]]
"""Links the interface ``server`` of this namespace with ``client`` in that of a process. Gets a scratch folder and the process's id."""


@contextlib.contextmanager
def direct_link(_: Path, clients: int) -> Iterator[None]:
    """Link both namespaces directly."""
    run(f"ip link add server type veth peer name client netns {clients}")
    yield


@contextlib.contextmanager
def start_testbed(link: Link = direct_link, sizes: Sequence[int] = tuple(size for size, _ in SIZES.values())) -> Iterator[Testbed]:
    """Create the namespaces, the link and objects of these sizes, multiples of 1,000 bytes, until the context ends."""
    if (os.cpu_count() or 1) <= max(SERVER_CORE, CLIENT_CORE):
        raise RuntimeError("server and client need one core each: use a machine with two cores")
    for tool, package in (("gtlsclient", "ngtcp2-client"), ("nft", "nftables"), ("openssl", "openssl")):
        if shutil.which(tool) is None:
            raise FileNotFoundError(f"{tool} is missing: apt-get install {package}")
    with tempfile.TemporaryDirectory(prefix="frontage-bench-") as name, namespace() as clients:
        folder = Path(name)
        _write(folder, sizes)
        run("mount -t sysfs none /sys")
        testbed = Testbed(folder, clients)
        with link(folder, clients):
            _configure(testbed)
            yield testbed


def _write(folder: Path, sizes: Sequence[int]) -> None:
    folder.chmod(0o755)
    (folder / "objects").mkdir()
    for size in sizes:
        (folder / "objects" / str(size)).write_bytes(bytes(n * 31 % 251 for n in range(1000)) * (size // 1000))
    (folder / "keys.toml").write_text(KEYS)
    curve = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=bench -keyout key.pem -out certificate.pem"
    subprocess.run(["openssl", *curve.split()], cwd=folder, capture_output=True, check=True)


def _configure(testbed: Testbed) -> None:
    """Configure the ends of the link; each receives on its own core."""
    inside = " ".join(testbed.enter)
    for command in (
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

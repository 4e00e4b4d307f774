# SPDX-License-Identifier: Apache-2.0
"""Core time of a load balancer by function, with hand-off and as a proxy (QDSR, section 5.1, figure 8).

`perf` samples the call stacks of the balancer while clients download, as in the paper. A sample belongs to the function that
its stack shows: sending or receiving over TCP or UDP, encryption, other work in user space, or the rest of the kernel.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from qdsr import CONNECTIONS, HANDOFF, PARALLEL, PEER, PROXY, SIZES
from qdsr_testbed import Balancer, start_testbed
from rows import Row, finish, row

FREQUENCY = 10_000
"""Samples per second of core time."""
SECONDS = 6.0
FUNCTIONS = ("tcp_receive", "tcp_send", "udp_receive", "udp_send", "encryption", "user", "kernel")
"""Functions of a balancer; `user` is the rest of user space, and `kernel` the rest of the kernel."""
NOT_KERNEL = ("[vdso]", "[unknown]")
"""Binaries whose names are in brackets as those of the kernel."""
CIPHERS = re.compile(r"aes|gcm|ghash|chacha|poly1305|ring_core|aead", re.IGNORECASE)
NO_PERF = "no perf to sample the balancer with: apt-get install linux-perf"


def function(frames: list[tuple[str, str]]) -> str:
    """Return the function of a stack, whose frames are symbol and binary, the innermost first."""
    kernel = [symbol for symbol, binary in frames if binary.startswith("[") and binary not in NOT_KERNEL]
    if not kernel:
        return "encryption" if CIPHERS.search(frames[0][0]) else "user"
    # A packet can arrive in the middle of any system call.
    arrives = any(symbol in ("net_rx_action", "__napi_poll") for symbol in kernel)
    for protocol in ("tcp", "udp"):
        if any(symbol.startswith((f"{protocol}_", f"{protocol}v6_")) for symbol in kernel):
            sends = any("sendmsg" in symbol or "writev" in symbol for symbol in kernel)
            return f"{protocol}_{'send' if sends and not arrives else 'receive'}"
    return "kernel"


def stacks(script: Iterable[str]) -> Iterator[list[tuple[str, str]]]:
    """Yield the frames of each sample in the output of `perf script`."""
    frames: list[tuple[str, str]] = []
    for line in script:
        frame = re.fullmatch(r"\s+[0-9a-f]+ (.+) \((.+)\)", line.rstrip("\n"))
        if frame:
            frames.append((frame[1].partition("+0x")[0], frame[2]))
        elif frames:
            yield frames
            frames = []
    if frames:
        yield frames


@contextlib.contextmanager
def sampling(pid: int, file: Path) -> Iterator[None]:
    """Sample the stacks of a process to a file within a context. Raises RuntimeError if `perf` fails."""
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-g", "-p", str(pid), "-o", str(file)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as perf:
        yield
        perf.send_signal(signal.SIGINT)
        _, errors = perf.communicate()
    if not file.exists():
        raise RuntimeError(f"perf did not sample process {pid}: {errors.strip()}")


def measure_size(balancer: Balancer, size: int, file: Path) -> dict[str, float]:
    """Return the balancer's core time per request in microseconds, by function."""
    balancer.measure(size, SECONDS / 8, CONNECTIONS, PARALLEL)  # fills the caches
    with sampling(balancer.pid, file):
        run = balancer.measure(size, SECONDS, CONNECTIONS, PARALLEL)
    script = ["perf", "script", "-i", str(file), "--no-inline", "-F", "ip,sym,dso"]
    with subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as output:
        assert output.stdout is not None
        counts = Counter(function(frames) for frames in stacks(output.stdout))
    samples = sum(counts.values())
    if not samples:
        raise RuntimeError(f"perf has no samples of process {balancer.pid}")
    return {name: run.core_ns / 1000 / run.requests * counts[name] / samples for name in FUNCTIONS}


def measure() -> list[Row]:
    if shutil.which("perf") is None:
        raise RuntimeError(NO_PERF)
    rows = []
    with start_testbed([size * 1024 for size in SIZES]) as testbed, contextlib.ExitStack() as running:
        handoff, proxy = (running.enter_context(start) for start in (testbed.handoff(HANDOFF), testbed.proxy(PROXY)))
        for size in SIZES:
            ours, theirs = (
                measure_size(balancer, size * 1024, testbed.folder / f"{balancer.port}-{size}.perf")
                for balancer in (handoff, proxy)
            )
            for name in FUNCTIONS:
                rows.append(row(f"qdsr_cpu_{size}KiB_{name}", ours[name], "us per request", PEER, theirs[name]))
    return rows


if __name__ == "__main__":
    finish(measure)

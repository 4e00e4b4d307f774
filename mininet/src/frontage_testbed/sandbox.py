# SPDX-License-Identifier: Apache-2.0
"""Isolates a whole testbed in its own namespaces, so that it leaves nothing behind.

The testbed runs in a child process that is the first of a new PID namespace and has its own network and mount
namespaces. When that process ends, for whatever reason, the kernel kills every process of the testbed, and removes the
interfaces, the mounts and the pinned eBPF maps with them. A later run has nothing to find and remove. The child dies
with its parent (PR_SET_PDEATHSIG), so a killed demo takes its testbed with it. Two testbeds on one machine do not see
each other, whatever names and ports they use.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TextIO

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Sandbox:
    """The environment of a running testbed."""

    scratch: Path
    """Directory in memory: empty at first, and removed afterwards."""
    process: int
    """The first process, by its id in the machine's PID namespace."""

    @property
    def bpf(self) -> Path:
        """Directory of the sandbox's own BPF file system."""
        return self.scratch / "bpf"

    def part(self, name: str) -> Sandbox:
        """Return a sandbox with its own directory and network, for one of several testbeds that run one after the other."""
        part = replace(self, scratch=self.scratch / name)
        _new_network()
        _mount("bpf", part.bpf)
        return part

    def keep_logs(self, directory: Path) -> None:
        """Copy all log files out of the scratch directory, which is removed with the sandbox."""
        for log in self.scratch.glob("**/*.log"):
            target = directory / log.relative_to(self.scratch)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, target)


class SandboxError(RuntimeError):
    """The namespaces could not be set up."""


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise SandboxError(f"{what}: {os.strerror(code)}")


def _new_network() -> None:
    """Leave this thread's network namespace for a new one."""
    _check(_libc.unshare(CLONE_NEWNET), "making a network namespace")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def _mount(kind: str, path: Path, options: str = "") -> None:
    path.mkdir(parents=True, exist_ok=True)
    result = _libc.mount(kind.encode(), os.fsencode(path), kind.encode(), 0, options.encode() or None)
    _check(result, f"mounting {kind} on {path}")


def _make_mounts_private(below: Path) -> None:
    """Detach later mounts from the machine's own mount namespace, and make the root a mount point.

    In a chroot the root is not a mount point, so neither we nor mininet can make it private. The root of all mounts is then
    found by climbing: a process whose working directory is outside its root, here set to `below`, can go up without a
    limit. From there the chroot's directory is bind-mounted onto itself and made the root, which is where `mnexec` and
    `nsenter` enter.
    """
    root, here = os.open("/", os.O_PATH), Path.cwd()
    os.chroot(below)
    os.fchdir(root)
    while not Path("..").samefile("."):
        os.chdir("..")
    os.chroot(".")
    _check(_libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "making mounts private")
    os.fchdir(root)
    os.close(root)
    chroot = os.fsencode(Path.cwd())
    if chroot != b"/":
        _check(_libc.mount(chroot, chroot, None, MS_REC | MS_BIND, None), "binding the chroot")
        os.chdir(chroot)
        _check(_libc.pivot_root(b".", b"."), "making the chroot the root of all mounts")
        _check(_libc.umount2(b".", MNT_DETACH), "leaving the machine's mounts")
    os.chdir(here)


def _die_with_parent() -> None:
    """Have this process killed when the one that started it ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Lock:
    """A run's lock on its output directory. The kernel releases it when the run ends."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / "lock"
        self._file: TextIO | None = None

    def acquire(self) -> None:
        """Take the lock. Raises SandboxError with the process id of the holder."""
        file = self._path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise SandboxError(
                f"{self._path.parent}: in use by another run (process {holder}): wait for it, or set FRONTAGE_DEMO_DIR"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file


def run(body: Callable[[Sandbox], int], directory: Path) -> int:
    """Run `body` in new namespaces, with `directory/run` as scratch directory, and return its result as exit status.

    SIGINT and SIGTERM reach `body` as KeyboardInterrupt. Call this once in a process, as its last action: the process
    cannot start further children afterwards.
    """
    if os.geteuid() != 0:
        raise SandboxError("network namespaces need root: run this with sudo")
    lock = Lock(directory)
    lock.acquire()
    scratch = directory / "run"
    # A killed run leaves this directory behind, empty: its content was in memory of its own mount namespace.
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    # The child creates the other namespaces: this process must see its own mounts to remove the scratch directory.
    _check(_libc.unshare(CLONE_NEWPID), "making a PID namespace")
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os._exit(_first_process(body, scratch))
    try:
        return _wait(child)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _first_process(body: Callable[[Sandbox], int], scratch: Path) -> int:
    """Run as process 1 of the new PID namespace."""
    status = 1
    try:
        _die_with_parent()
        # The kernel shields the first process of a namespace from signals without a handler.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        _check(_libc.unshare(CLONE_NEWNS), "making a mount namespace")
        _new_network()
        # /proc is still the machine's, so it shows this process's id outside.
        sandbox = Sandbox(scratch, int(Path("/proc/self").readlink().name))
        _make_mounts_private(scratch)
        _mount("proc", Path("/proc"))
        _mount("tmpfs", scratch, "mode=755")
        _mount("bpf", sandbox.bpf)
        status = body(sandbox)
    except KeyboardInterrupt:
        status = 130
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Only once: a second signal must not interrupt the clean-up.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _wait(child: int) -> int:
    """Wait for the child, and forward signals that reached only this process."""

    def forward(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)

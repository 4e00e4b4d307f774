# SPDX-License-Identifier: Apache-2.0
"""Faults of web servers. Each lasts as long as its context."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ..nodes import run_script
from .servers import NGINX, WebServer
from .settings import Settings
from .topology import edge_interface

BURST = 0.01
"""Seconds of a burst."""


@contextmanager
def killed(server: WebServer) -> Iterator[None]:
    """A server whose process was killed, and is started again."""
    command = server.process.args
    assert isinstance(command, list)
    for pid in (server.process.pid, *children(server.process.pid)):
        os.kill(pid, signal.SIGKILL)
    server.process.wait()
    yield
    words = [str(word) for word in command]
    server.process = server.host.spawn(words[words.index(str(NGINX)) :])


@contextmanager
def stopped(server: WebServer) -> Iterator[None]:
    """A server that accepts connections, in its kernel, but never responds."""
    pids = children(server.process.pid)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def unavailable(server: WebServer, directory: Path) -> Iterator[None]:
    """A server that responds with 503."""
    (directory / server.addresses.name / "down").touch()
    yield
    (directory / server.addresses.name / "down").unlink()


@contextmanager
def slow(server: WebServer, pause: float) -> Iterator[None]:
    """A server that responds in bursts, so that most responses take up to ``pause`` seconds."""
    pids, ended = children(server.process.pid), threading.Event()

    def respond_in_bursts() -> None:
        while not ended.is_set():
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            ended.wait(pause)
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
            ended.wait(BURST)

    thread = threading.Thread(target=respond_in_bursts)
    thread.start()
    yield
    ended.set()
    thread.join()


@contextmanager
def cut_off(server: WebServer, settings: Settings) -> Iterator[None]:
    """A server whose host lost its link."""
    interface = edge_interface(server.addresses.edge_port(settings.pipes))
    run_script(interface, [f"ip link set {interface} down"])
    yield
    run_script(interface, [f"ip link set {interface} up"])


def children(pid: int) -> list[int]:
    """Return the child processes of a process, such as nginx's workers."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


FAULTS = ("killed", "cut off", "stopped", "unavailable", "slow")


def fault(name: str, server: WebServer, settings: Settings, directory: Path, pause: float) -> AbstractContextManager[None]:
    """Return the fault with this name.

    ``directory`` is the scratch folder of the testbed, and ``pause`` the longest response time of a slow server in seconds.
    """
    found: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
        "killed": lambda: killed(server),
        "cut off": lambda: cut_off(server, settings),
        "stopped": lambda: stopped(server),
        "unavailable": lambda: unavailable(server, directory),
        "slow": lambda: slow(server, pause),
    }
    return found[name]()

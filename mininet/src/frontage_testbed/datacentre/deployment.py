# SPDX-License-Identifier: Apache-2.0
"""Finds the parts of a testbed: binaries, the compiled P4 program, the controller, nginx's module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ..programs import REPOSITORY, missing_packages
from ..sandbox import Sandbox
from .addresses import ServerAddresses
from .agents import Cclb7Agents, NoAgents
from .edge import EdgeSwitch
from .lsquic import LsquicTestbed
from .qdsr import QdsrTestbed
from .quic import QuicTestbed
from .servers import NGINX
from .services import FILMS, WEB, Service
from .settings import Settings
from .switchcommand import Bmv2, Softswitch, SwitchCommand
from .testbed import Agents, Testbed

W = TypeVar("W", bound=QdsrTestbed)

BMV2_HINT = (
    "TARGET=bmv2 needs p4c and BMv2, which are not in Debian: see "
    "https://github.com/p4lang/p4c#installing-packaged-versions-of-p4c and "
    "https://github.com/p4lang/behavioral-model#building-the-code (with --with-pi, for simple_switch_grpc); "
    "where they are not on PATH, P4C_BM2 names p4c-bm2-ss and BMV2 simple_switch_grpc; or use TARGET=softswitch"
)


class DeploymentError(RuntimeError):
    """Something that a testbed needs is missing."""


@dataclass(frozen=True)
class Deployment:
    """The parts of a testbed. An environment variable, here in brackets, overrides each path."""

    target: str
    switch: Path
    """softswitch [FRONTAGE_SOFTSWITCH], or BMv2's simple_switch_grpc from PATH or [BMV2]."""
    p4: Path
    """Directory of frontage.json and frontage.p4info.txtpb [FRONTAGE_P4]; for BMv2, p4c-bm2-ss [P4C_BM2] writes them."""
    controller: Path
    """The command `frontage` [FRONTAGE_CONTROLLER]."""
    agent: Path
    """The command `frontage-cclb7` [FRONTAGE_CCLB7]."""
    module: Path
    """nginx's module [FRONTAGE_NGINX_MODULE]."""
    quic_agent: Path
    """The command `frontage-cclb7-quic` [FRONTAGE_CCLB7_QUIC]."""
    h3_client: Path
    """The command `frontage-h3-client` [FRONTAGE_H3_CLIENT]."""
    real_server: Path
    """The command `frontage-real-server` [FRONTAGE_REAL_SERVER]."""
    lsquic: Path
    """The command `frontage-lsquic` [FRONTAGE_LSQUIC]; needed if it is the server of the settings."""

    def edge(
        self,
        settings: Settings,
        box: Sandbox,
        in_service: Sequence[ServerAddresses] | None = None,
        services: Sequence[Service] = WEB,
    ) -> EdgeSwitch:
        """Return the edge switch and its controller, not yet started."""
        switch: SwitchCommand = (Bmv2 if self.target == "bmv2" else Softswitch)(self.switch, settings)
        return EdgeSwitch(
            switch=switch,
            controller=self.controller,
            p4info=self.p4 / "frontage.p4info.txtpb",
            json_file=self.p4 / "frontage.json",
            settings=settings,
            directory=box.scratch / "edge",
            services=services,
            in_service=in_service,
        )

    def agents(self, settings: Settings, box: Sandbox, *, cookies: bool = True) -> Agents:
        """Return the agents of TCP servers, not yet attached. Without `cookies`, the servers have none."""
        return Cclb7Agents(self.agent, self.module, box.bpf, settings.server_rate) if cookies else NoAgents()

    def testbed(
        self,
        settings: Settings,
        box: Sandbox,
        *,
        cookies: bool = True,
        in_service: Sequence[ServerAddresses] | None = None,
    ) -> Testbed:
        """Return a TCP testbed, not yet up. Without `cookies`, its servers have no agents."""
        agents = self.agents(settings, box, cookies=cookies)
        return Testbed(settings, box.scratch, self.edge(settings, box, in_service), agents)

    def quic_testbed(self, settings: Settings, box: Sandbox) -> QuicTestbed:
        """Return a testbed with QUIC services, not yet up. Services with a policy that the program does not have use the hash."""
        services = [replace(s, policy="hash") if s.policy in settings.left_out else s for s in FILMS]
        edge = self.edge(settings, box, services=services)
        if settings.server == "lsquic":
            return LsquicTestbed(settings, box.scratch, edge, self.lsquic, self.h3_client)
        return QuicTestbed(settings, box.scratch, edge, self.quic_agent, self.h3_client)

    def qdsr_testbed(self, settings: Settings, box: Sandbox) -> QdsrTestbed:
        """Return a QUIC testbed whose first server is a load balancer and whose other servers are its real servers."""
        return self.with_real_servers(QdsrTestbed, settings, box)

    def with_real_servers(self, testbed: type[W], settings: Settings, box: Sandbox) -> W:
        """Return a testbed of this type, a `QdsrTestbed` or a subclass of it."""
        balancer = ServerAddresses(0)
        edge = self.edge(settings, box, in_service=[balancer], services=FILMS[:1])
        return testbed(settings, box.scratch, edge, self.quic_agent, self.h3_client, self.real_server)


def find(settings: Settings, env: Mapping[str, str] = os.environ) -> Deployment:
    """Find all parts. Raises DeploymentError with what is missing and how to get it."""

    def path(variable: str, default: Path) -> Path:
        return Path(env[variable]).absolute() if env.get(variable) else default

    build, release = REPOSITORY / "build", REPOSITORY / "target" / "release"
    if settings.target == "bmv2":
        switch = _bmv2_program(env, "BMV2", "simple_switch_grpc")
        p4 = _compile(_bmv2_program(env, "P4C_BM2", "p4c-bm2-ss"), "v1model/frontage.p4", build / "p4-bmv2")
    elif settings.target == "tna":
        switch = path("FRONTAGE_SOFTSWITCH", release / "softswitch")
        p4 = _compile(release / "softswitch-p4c", f"tna/{settings.program}.p4", build / "p4-tna" / settings.program)
    else:
        switch = path("FRONTAGE_SOFTSWITCH", release / "softswitch")
        p4 = path("FRONTAGE_P4", build / "p4")
    deployment = Deployment(
        target=settings.target,
        switch=switch,
        p4=p4,
        controller=path("FRONTAGE_CONTROLLER", Path(sys.executable).parent / "frontage"),
        agent=path("FRONTAGE_CCLB7", release / "frontage-cclb7"),
        quic_agent=path("FRONTAGE_CCLB7_QUIC", release / "frontage-cclb7-quic"),
        h3_client=path("FRONTAGE_H3_CLIENT", release / "frontage-h3-client"),
        real_server=path("FRONTAGE_REAL_SERVER", release / "frontage-real-server"),
        lsquic=path("FRONTAGE_LSQUIC", build / "lsquic" / "frontage-lsquic"),
        module=path("FRONTAGE_NGINX_MODULE", build / "cclb7" / "ngx_http_cloudcookie_filter_module.so"),
    )
    needed = [deployment.switch, deployment.controller, deployment.agent, deployment.module]
    needed += [deployment.quic_agent, deployment.h3_client, deployment.real_server]
    needed += [deployment.lsquic] if settings.server == "lsquic" else []
    needed += [deployment.p4 / "frontage.json", deployment.p4 / "frontage.p4info.txtpb"]
    if missing := [str(file) for file in needed if not file.exists()]:
        raise DeploymentError(f"missing files: {', '.join(missing)}: run `make setup`")
    programs = {
        "openssl": "openssl",
        "mnexec": "mininet",
        "ethtool": "ethtool",
        "ip": "iproute2",
        "tc": "iproute2",
        str(NGINX): "nginx",
    }
    if packages := missing_packages(programs):
        raise DeploymentError(f"missing Debian packages: apt-get install {' '.join(packages)}")
    return deployment


def _bmv2_program(env: Mapping[str, str], variable: str, name: str) -> Path:
    found = shutil.which(env.get(variable) or name)
    if found is None:
        raise DeploymentError(BMV2_HINT)
    return Path(found).absolute()


def _compile(compiler: Path, program: str, directory: Path) -> Path:
    """Compile a P4 program of `p4src`, and return the directory of the result. Raises DeploymentError."""
    directory.mkdir(parents=True, exist_ok=True)
    source = REPOSITORY / "p4src" / program
    command: list[str | Path] = [compiler, "-o", directory / "frontage.json", source]
    command += ["--p4runtime-files", directory / "frontage.p4info.txtpb"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise DeploymentError(f"{compiler.name} failed: {done.stderr.strip()}")
    return directory

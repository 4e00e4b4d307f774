# SPDX-License-Identifier: Apache-2.0
"""Packet tests (PTF) of any P4 program, on softswitch or BMv2: the library of the command `softswitch-ptf`.

from softswitch.packet_tests import Compiler, Suite, Target, run

artifacts = Compiler("softswitch-p4c").compile(Path("router.p4"), Path("build"))
sys.exit(run(Suite(Path("tests"), Target("softswitch", "softswitch"), artifacts, Path("build"))))
"""

from .errors import RunError
from .programs import Artifacts, Compiler, find_program
from .runner import run
from .suite import Suite
from .target import Target

__all__ = ["Artifacts", "Compiler", "RunError", "Suite", "Target", "find_program", "run"]

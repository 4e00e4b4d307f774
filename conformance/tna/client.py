# SPDX-License-Identifier: Apache-2.0
"""The Python modules that the PTF tests import: the checkout's own, unmodified, and protobuf modules generated from its proto."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tna.programs import CLIENT, PROTO, PTF_UTILS, Checkout
from tools import ROOT, ToolError

BUILD = ROOT / "build" / "tna-conformance"
PYTHON = BUILD / "venv" / "bin" / "python"
"""Has the packages of requirements.lock; `make tna-conformance` installs them."""
SUPPORT = Path(__file__).resolve().parent / "support"
LIBRARY = BUILD / "lib"
GOOGLE_PROTOS = "import google.rpc, pathlib; print(pathlib.Path(google.rpc.__path__[0]).parent.parent)"


def prepare(checkout: Checkout) -> None:
    """Make the packages `bfrt_grpc` and `p4testutils`, which the tests import."""
    if not PYTHON.is_file():
        raise ToolError(f"missing {PYTHON}: run `make tna-conformance`, which installs it")
    shutil.rmtree(LIBRARY, ignore_errors=True)
    _link(checkout.root / CLIENT, LIBRARY / "bfrt_grpc", ("client.py", "info_parse.py"))
    utilities = checkout.root / PTF_UTILS
    _link(utilities, LIBRARY / "p4testutils", (file.name for file in utilities.glob("*.py")))
    _generate(checkout.root / PROTO)


def environment() -> dict[str, str]:
    """Return the variables that PTF needs. Modules of both packages are also imported by their bare names."""
    path = os.pathsep.join(map(str, (SUPPORT, LIBRARY, LIBRARY / "bfrt_grpc", LIBRARY / "p4testutils")))
    # Without bytecode, nothing is written into the checkout.
    return {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def _link(source: Path, package: Path, names: Iterable[str]) -> None:
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in names:
        (package / name).symlink_to(source / name)


def _generate(proto: Path) -> None:
    """Generate bfrt_grpc.bfruntime_pb2 and bfrt_grpc.bfruntime_pb2_grpc."""
    google = subprocess.run([PYTHON, "-c", GOOGLE_PROTOS], capture_output=True, text=True, check=True).stdout.strip()
    package = LIBRARY / "bfrt_grpc"
    include = [f"-I{proto.parent}", f"-I{google}"]
    output = [f"--python_out={package}", f"--grpc_python_out={package}"]
    done = subprocess.run(
        [PYTHON, "-m", "grpc_tools.protoc", *include, *output, proto.name],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ToolError(f"{proto}: cannot generate Python modules: {done.stderr.strip()}")

# SPDX-License-Identifier: Apache-2.0
"""Drop reasons and outcomes by their names in p4src (`#define DROP_NAME number // text`)."""

import re
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[3] / "p4src" / "include"


def _read(file: str, prefix: str) -> dict[int, str]:
    text = (INCLUDE / file).read_text()
    return {int(number): name for name, number in re.findall(rf"#define {prefix}_(\w+) (\d+) //", text)}


DROPS = _read("drop.p4", "DROP")
OUTCOMES = _read("outcome.p4", "OUTCOME")
CLAIMS = _read("outcome.p4", "CLAIM")

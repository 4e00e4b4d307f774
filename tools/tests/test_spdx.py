# SPDX-License-Identifier: Apache-2.0
"""Tests of `tools/spdx.py`: where the licence line goes, and that it is not added twice."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import spdx


def test_line_precedes_text_and_follows_shebang() -> None:
    assert spdx.with_licence("//! A crate.\n", ".rs") == "// SPDX-License-Identifier: Apache-2.0\n//! A crate.\n"
    assert spdx.with_licence("#!/usr/bin/env python3\npass\n", ".py").splitlines()[1] == "# SPDX-License-Identifier: Apache-2.0"


def test_licence_of_another_kind_is_accepted() -> None:
    assert spdx.names_licence("/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */\nint x;\n")
    assert not spdx.names_licence("int x;\n")

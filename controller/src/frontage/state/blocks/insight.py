# SPDX-License-Identifier: Apache-2.0
"""``insight.p4``: the score of every load code, for each score class."""

from __future__ import annotations

from collections.abc import Mapping

from frontage.p4.entries import Action, Key, State
from frontage.state.scores import Scores

SCORE_AF = "insight.score_af"
SCORE_FF = "insight.score_ff"
TABLES = (SCORE_AF, SCORE_FF)


def entries(classes: Mapping[Scores, int]) -> State:
    state: State = {}
    for scores, number in classes.items():
        for table, row in ((SCORE_AF, scores.af), (SCORE_FF, scores.ff)):
            for code, score in enumerate(row):
                state[Key(table, (number, code))] = Action("add_score", (score,))
    return state

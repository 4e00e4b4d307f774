"""``insight.p4``: the score of every load code, for each pair of alpha and relative weight in use."""

from __future__ import annotations

from frontage.config import Config
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

SCORE_AF = "insight.score_af"
SCORE_FF = "insight.score_ff"
TABLES = (SCORE_AF, SCORE_FF)


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    for scores, number in allocation.classes.items():
        for table, row in ((SCORE_AF, scores.af), (SCORE_FF, scores.ff)):
            for code, score in enumerate(row):
                state[Key(table, (number, code))] = Action("add_score", (score,))
    return state

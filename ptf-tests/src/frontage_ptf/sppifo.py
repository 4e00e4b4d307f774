# SPDX-License-Identifier: Apache-2.0
"""Reference model of SP-PIFO on one port: the paper's algorithm (Alcoz et al., NSDI 2020), with immediate
push-down."""


class SpPifo:
    """One port with one strict priority per bound; `bounds[0]` is that of the least urgent one."""

    def __init__(self, priorities: int = 8):
        self.bounds = [0] * priorities

    def priority(self, rank: int) -> int:
        """Return the priority of an arriving packet; the larger, the more urgent."""
        most_urgent = len(self.bounds) - 1
        chosen = next((i for i, bound in enumerate(self.bounds) if rank >= bound), most_urgent)
        cost = max(0, self.bounds[chosen] - rank)
        self.bounds[chosen] = rank  # push-up
        if cost:  # push-down
            self.bounds = [bound if i == chosen else max(0, bound - cost) for i, bound in enumerate(self.bounds)]
        return chosen

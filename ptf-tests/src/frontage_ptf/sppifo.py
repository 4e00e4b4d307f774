"""What SP-PIFO should do with each packet of a port: the paper's algorithm (Alcoz et al., NSDI 2020), with push-down at once."""


class SpPifo:
    """One port of as many strict priorities as there are bounds; `bounds[0]` is the least urgent one's."""

    def __init__(self, priorities: int = 8):
        self.bounds = [0] * priorities

    def priority(self, rank: int) -> int:
        """A packet arrives: which priority it gets; the larger is the more urgent."""
        most_urgent = len(self.bounds) - 1
        chosen = next((i for i, bound in enumerate(self.bounds) if rank >= bound), most_urgent)
        cost = max(0, self.bounds[chosen] - rank)
        self.bounds[chosen] = rank  # push-up
        if cost:  # push-down
            self.bounds = [bound if i == chosen else max(0, bound - cost) for i, bound in enumerate(self.bounds)]
        return chosen

"""Which axis runs on which link, and what its collectives cost there.

Ranks are laid out tp fastest, then cp, dp, and pp slowest (`spec.layout`). The ring's formula is in `network`.
"""

from __future__ import annotations

from typing import NamedTuple

from course.planner.constants import ALPHA, LINK, NETWORK_ALPHA, Constants
from course.planner.network import all_reduce_seconds
from course.spec.chips import Cluster
from course.spec.plan import Plan


class Ring(NamedTuple):
    """n ranks in a ring: what a message costs and how many bytes a second go round it."""

    n: int
    alpha: float
    bandwidth: float

    def all_reduce(self, nbytes: float) -> float:
        """Seconds to sum nbytes over the ring: 2(n-1) alpha + 2(n-1)/n nbytes / bandwidth."""
        return all_reduce_seconds(nbytes, self.n, alpha=self.alpha, bandwidth=self.bandwidth)

    def all_gather(self, nbytes: float) -> float:
        """Seconds to gather nbytes in all, or to reduce-scatter them: half of an all-reduce."""
        return self.all_reduce(nbytes) / 2


def axis_ring(axis: str, plan: Plan, cluster: Cluster, constants: Constants) -> Ring:
    """The ring of "tp", "cp", "dp" (with cp: they share gradients) or "pp" (two neighbours).

    A group with k of its ranks in a node uses k network cards. Collectives between nodes are hierarchical: 2(k-1)/k of
    the bytes on the links of a node, then 2(N-1)/N of a share out of it, and alpha there is paid once a node.
    """
    sizes = {"tp": (plan.tp, 1), "cp": (plan.cp, plan.tp), "dp": (plan.dp * plan.cp, plan.tp)}
    if axis == "pp":
        n, stride = min(2, plan.pp), plan.tp * plan.cp * plan.dp
        crosses = stride * plan.pp > cluster.per_node
        return _ring(n, 1, crosses, cluster, constants)
    n, stride = sizes[axis]
    inside = max(1, min(n, cluster.per_node // stride))
    return _ring(n, inside, n > inside, cluster, constants)


def _ring(n: int, inside: int, crosses: bool, cluster: Cluster, constants: Constants) -> Ring:
    """n ranks, `inside` of them in a node. Over nodes: a reduce-scatter in each node, an all-reduce of every share
    between the N nodes, and a gather in each node, one after the other."""
    link = LINK * cluster.chip.link
    if not crosses:
        return Ring(n, ALPHA, link)
    nodes = max(2, n // inside)
    alpha = (NETWORK_ALPHA * nodes + ALPHA * (n - nodes)) / n
    cards = inside * constants.network * cluster.network_bandwidth
    each = (1 - 1 / inside) / link + (1 - 1 / nodes) / cards  # half of the seconds a byte
    return Ring(n, alpha, (1 - 1 / n) / each)

"""Monte Carlo Graph Search as pure functions: select, expand, roll out, back up.

No store, model, clock or global randomness: a :class:`Tree` made from a snapshot, the :class:`Knowledge` of which
technique followed which, the settings and a ``random.Random`` go in; what to write comes out.
"""

from search.core.expansion import Expansion, expand
from search.core.priors import Knowledge, Successor, knowledge
from search.core.returns import FAILED, reward
from search.core.rollout import Halted, Judged, Step, Walked, walk
from search.core.selection import Selection, select
from search.core.tree import Edge, Node, Tree

__all__ = [
    "FAILED",
    "Edge",
    "Expansion",
    "Halted",
    "Judged",
    "Knowledge",
    "Node",
    "Selection",
    "Step",
    "Successor",
    "Tree",
    "Walked",
    "expand",
    "knowledge",
    "reward",
    "select",
    "walk",
]

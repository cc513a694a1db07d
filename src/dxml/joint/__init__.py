"""The joint method: several scorers of (point, label) pairs, weighed on held-out points.

`PARTS` has every kind of part by its name; a part of your own is one more entry.
"""

from dxml.joint._model import Joint
from dxml.joint._plan import PARTS

__all__ = [
    "PARTS",
    "Joint",
]

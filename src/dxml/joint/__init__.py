"""The joint method: several scorers of (point, label) pairs, weighed on held-out points."""

from dxml.joint.model import Joint

__all__ = [
    "Joint",
]

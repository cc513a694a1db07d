"""The paper's method: *Deep Extreme Multi-label Learning* (ICMR 2018), step by step."""

from dxml.paper._dxml import DXML

__all__ = [
    "DXML",
]

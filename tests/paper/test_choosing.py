"""The choice of k and m: by hand."""

from __future__ import annotations

from dxml.paper._choosing import Choice, best_choice


def test_more_partitions_win_only_when_they_cost_next_to_nothing() -> None:
    tried = [Choice(1, 5, 0.600), Choice(1, 10, 0.610), Choice(4, 5, 0.609), Choice(16, 5, 0.5)]
    assert best_choice(tried) == Choice(4, 5, 0.609)
    assert best_choice([*tried[:2], Choice(4, 5, 0.6)]) == Choice(1, 10, 0.610)
    equal = [Choice(1, 10, 0.6), Choice(1, 5, 0.6)]
    assert best_choice(equal) == Choice(1, 5, 0.6), "fewer neighbours are cheaper"

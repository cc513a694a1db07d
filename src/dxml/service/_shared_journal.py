"""A journal that processes of several machines share: one actor of Ray has the file.

SQLite's locks do not hold between machines. The actor runs on the machine of the command, where
the file is. When its process dies Ray starts another, which opens the same file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dxml.service._errors import ServiceError
from dxml.tagging._journal import Action, Entry, Journal, Share

__all__ = ["SharedJournal", "keep_journal"]

RETRIES = 5  # times that a question is asked again; an entry is written once


def keep_journal(path: Path) -> SharedJournal:
    """Start an actor on this machine that has the journal open, for as long as this process."""
    import ray

    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    here = strategy(ray.get_runtime_context().get_node_id(), soft=False)
    keeper = ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy=here)(_Keeper)
    return SharedJournal(keeper.remote(path))


class _Keeper:
    """In the actor."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method, or look up an attribute."""
        found = getattr(self._journal, method)
        return found(*arguments) if callable(found) else found


class SharedJournal:
    """As `dxml.tagging._journal.Journal`, by the actor that has it; processes may share it."""

    def __init__(self, keeper: Any) -> None:
        self._keeper = keeper
        self.identity: str = self._ask("identity")
        self.path: Path = self._ask("path")

    def append(self, action: Action, content: Mapping[str, Any], share: Share | None = None) -> int:
        """Commit an entry to the disk; returns its number."""
        return int(self._ask("append", action, content, share, retries=0))

    def share(self, name: str) -> Share:
        """What somebody has taught."""
        found: Share = self._ask("share", name)
        return found

    def last(self) -> int:
        """The number of the last entry."""
        return int(self._ask("last"))

    def after(self, number: int) -> list[Entry]:
        """The first entries after this one."""
        return list(self._ask("after", number))

    def lessons(self) -> list[Entry]:
        """All entries but requests to reload, in their order."""
        return list(self._ask("lessons"))

    def newest(self, before: int | None, limit: int) -> list[Entry]:
        """The last lessons, newest first."""
        return list(self._ask("newest", before, limit))

    def count(self) -> int:
        """How many lessons there are."""
        return int(self._ask("count"))

    def remove(self, number: int) -> None:
        """Take an entry out."""
        self._ask("remove", number)

    def size(self) -> int:
        """Bytes of all entries."""
        return int(self._ask("size"))

    def in_place(self) -> bool:
        """True, or an error: on a cluster a folder that was replaced is served after a restart."""
        if not self._ask("in_place"):
            raise ServiceError(
                "conflict", "the model's folder was replaced. Start the service again."
            )
        return True

    def close(self) -> None:
        """Nothing: others may have it open, and the actor ends with the command."""

    def _ask(self, method: str, *arguments: Any, retries: int = RETRIES) -> Any:
        import ray

        asked = self._keeper.ask.options(max_task_retries=retries).remote(method, *arguments)
        return ray.get(asked)

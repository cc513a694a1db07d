"""Tokens: who brings one may do what its role allows.

A token file has a name, a role and the SHA-256 of each token, never the token itself. Tokens are
256 random bits, so that their hash needs no salt and cannot be guessed. A service looks at its
token file whenever a token is brought: one that was made or revoked counts at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from dxml._core.files import replacing
from dxml.exceptions import ParameterError

__all__ = [
    "ROLES",
    "Caller",
    "Role",
    "Tokens",
    "hashed",
    "new_token",
    "read_tokens",
    "revoke_token",
]

Role = Literal["read", "teach", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""

MARK = "sha256:"
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_MOST = 1 << 20  # bytes of a token file

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """Who asks: the name of a token, and its role."""

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether this role allows what needs that one.

        >>> Caller("desk", "teach").may("read"), Caller("desk", "teach").may("admin")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True)
class Token(Caller):
    """A token as it is kept: its hash, and the day it was made."""

    hash: str
    made: str = ""


def hashed(token: str) -> str:
    """How a token is kept; what is a hash already stays.

    >>> hashed("secret")[:15], hashed(hashed("secret")) == hashed("secret")
    ('sha256:2bb80d53', True)
    """
    if _HASH.fullmatch(token):
        return token
    return MARK + hashlib.sha256(token.strip().encode()).hexdigest()


class Tokens:
    """The tokens of a service.

    Parameters
    ----------
    token : str, optional
        One that may do everything, or its hash.
    file : str or Path, optional
        A file of others, made by `new_token`.
    """

    def __init__(self, token: str | None = None, file: str | Path | None = None) -> None:
        self.needed = token is not None or file is not None
        self._own = [] if token is None else [Token("token", "admin", hashed(token))]
        self._path = None if file is None else Path(file)
        self._kept: list[Token] = []
        self._seen: tuple[int, int, int] | None = None
        if self._path is not None:
            self._kept, self._seen = read_tokens(self._path), _state(self._path)

    def find(self, given: str) -> Caller | None:
        """Whose token this is; None where it is nobody's.

        All hashes are compared, each in a time that does not depend on what is given.
        """
        what = MARK + hashlib.sha256(given.strip().encode()).hexdigest()
        found = [each for each in self._known() if hmac.compare_digest(each.hash, what)]
        return found[0] if found else None

    def _known(self) -> Sequence[Token]:
        """Those of the file as it is now; none of a file that cannot be read."""
        if self._path is None:
            return self._own
        if (state := _state(self._path)) != self._seen:
            self._seen, self._kept = state, []
            try:
                self._kept = read_tokens(self._path)
            except (OSError, ParameterError) as error:
                _log.error("no token of the file counts until it is mended: %s", error)
        return [*self._own, *self._kept]


def read_tokens(path: str | Path) -> list[Token]:
    """The tokens of a file."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            content = json.loads(file.read(_MOST))
        found = [_checked(each) for each in content["tokens"]]
        names = {each.name for each in found}
    except FileNotFoundError:
        raise ParameterError(
            f"{path}: there is no such token file. Make one with 'dxml token new'."
        ) from None
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ParameterError(f"{path}: this is no token file ({error}).") from None
    if len(names) < len(found):
        raise ParameterError(f"{path}: two tokens have the same name.")
    return found


def new_token(path: str | Path, role: Role, name: str | None = None) -> tuple[str, str]:
    """Make a token and keep its hash in a file, which is made where there is none.

    Returns
    -------
    The token, which nobody can read again, and its name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _one_writer(path.parent):
        known = read_tokens(path) if path.exists() else []
        name = name or f"{role}-{secrets.token_hex(4)}"
        if not _NAME.fullmatch(name):
            raise ParameterError("a token's name has up to 100 letters, digits, '.', '_' and '-'.")
        if name in {each.name for each in known}:
            raise ParameterError(
                f"{path}: there is a token called {name!r} already. Give another --name, or revoke "
                "that one first."
            )
        token = f"dxml_{secrets.token_urlsafe(32)}"
        made = time.strftime("%Y-%m-%d", time.gmtime())
        _write(path, [*known, Token(name, role, hashed(token), made)])
    return token, name


def revoke_token(path: str | Path, name: str) -> None:
    """Take a token out of a file; services that use the file refuse it at once."""
    path = Path(path)
    with _one_writer(path.parent):
        known = read_tokens(path)
        left = [each for each in known if each.name != name]
        if len(left) == len(known):
            names = ", ".join(each.name for each in known) or "none"
            raise ParameterError(f"{path}: there is no token called {name!r}; there are: {names}.")
        _write(path, left)


@contextmanager
def _one_writer(folder: Path) -> Iterator[None]:
    """Inside, no other process changes a token file of this folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # which gives up the lock


def _write(path: Path, tokens: list[Token]) -> None:
    """Replace the file in one step; only its owner may read it."""
    with replacing(path) as beside:
        beside.chmod(0o600)
        beside.write_text(json.dumps({"tokens": [asdict(each) for each in tokens]}, indent=1))


def _checked(entry: Any) -> Token:
    token = Token(**entry)
    good = (
        isinstance(token.name, str)
        and _NAME.fullmatch(token.name)
        and token.role in ROLES
        and isinstance(token.hash, str)
        and _HASH.fullmatch(token.hash)
        and isinstance(token.made, str)
    )
    if not good:
        raise ValueError(f"{token.name!r} needs a name, a role of {', '.join(ROLES)}, and a hash")
    return token


def _state(path: Path) -> tuple[int, int, int] | None:
    """Changes whenever the file does; None where it cannot be looked at."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

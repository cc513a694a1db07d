"""Who may ask, and who may change the model.

By name: a web page that has its own name point to 127.0.0.1 would read what a service at that
address tells, so a service that listens there answers to loopback names only, and to those it was
given (`HostCheck`).

The model is changed by whoever brings a token whose role allows it, or, where the service has no
tokens, by whoever is on this machine: by a connection from it, to a loopback name, that no proxy
says it has passed on. Pages of other origins change nothing, unless the service was told of that
origin and the page brings a token (`Access.check_change`). A private service answers nothing
without a token (`AskCheck`).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dxml.exceptions import ParameterError
from dxml.service._errors import ServiceError
from dxml.service._limits import App, Message, Receive, Send, refuse
from dxml.service._logs import CALLER
from dxml.service._tokens import Caller, Role, Tokens

__all__ = [
    "Access",
    "AskCheck",
    "HostCheck",
    "check_json",
    "check_origins",
    "check_token",
    "headers_of",
    "host_name",
    "is_loopback",
]

ANY = "*"  # allows every name
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII)
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII)
_PASSED_ON = frozenset({"forwarded", "via", "x-real-ip"})  # and x-forwarded-…
_ONCE = ("Host", "Origin", "Sec-Fetch-Site", "Authorization", "Content-Type")
_NO_TOKEN = "this needs the header 'Authorization: Bearer …'."
_WRONG_TOKEN = "this token is not known: it is wrong, or was revoked."

OPEN = frozenset({"/", "/docs", "/health", "/openapi.json"})
"""What a private service tells everyone, with the files of its pages: nothing of the labels."""
LOCAL = Caller("local", "admin")
"""Who changes a model on this machine, where there are no tokens."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "a.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def host_name(header: str) -> str:
    """The name or address in a header ``Host``, without the port.

    >>> [host_name(header) for header in ("LocalHost:8000", "[::1]:8000", "a.org.")]
    ['localhost', '::1', 'a.org']
    """
    found = _HOST.fullmatch(header.lower())
    if found is None:
        message = "the header 'Host' must hold a name or an address, and maybe a port."
        raise ServiceError("bad_request", message)
    return found[1].strip("[]").removesuffix(".")


def check_token(host: str, token: str | None, tokens: object = None) -> None:
    """Refuse to listen without tokens where others can reach the address."""
    if token is not None and not (token.strip() and token.isascii()):
        raise ParameterError("a token must have visible ASCII characters.")
    if token is None and tokens is None and not is_loopback(host):
        raise ParameterError(
            f"others can reach {host}, and could teach the model. "
            "Give --token, or DXML_TOKEN in the environment, or --tokens, or serve on 127.0.0.1."
        )


def check_origins(origins: Sequence[str]) -> None:
    """Refuse what no browser would send as an origin."""
    for origin in origins:
        if origin != ANY and not _ORIGIN.fullmatch(origin):
            raise ParameterError(
                f"an origin is a scheme, a name and maybe a port, such as https://example.org; "
                f"got {origin!r}."
            )


def check_json(headers: Mapping[str, str]) -> None:
    """Refuse content types that a form on any web page could send."""
    given = headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        raise ServiceError(
            "unsupported_type",
            "this needs the header 'Content-Type: application/json', "
            f"got {given[:80] or 'none'!r}. With curl, use --json for -d.",
        )


@dataclass(frozen=True)
class Access:
    """Who may do what.

    Parameters
    ----------
    tokens : Tokens
    private : bool
        Whether asking needs a token as well.
    origins : collection of str
        Of pages elsewhere that may ask, and change with a token; "*" for any.
    """

    tokens: Tokens = field(default_factory=Tokens)
    private: bool = False
    origins: Collection[str] = ()

    def caller(self, headers: Mapping[str, str]) -> Caller | None:
        """Whose token a request brings; None without one, and with a wrong one."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return self.tokens.find(given) if scheme.lower() == "bearer" else None

    def check_ask(self, headers: Mapping[str, str]) -> Caller | None:
        """Refuse to be asked without a token, where that needs one."""
        caller = self.caller(headers)
        if self.private and caller is None:
            raise ServiceError("unauthorized", _why_unknown(headers))
        return caller

    def check_change(self, role: Role, peer: str, headers: Mapping[str, str]) -> Caller:
        """Refuse a change to those who may not make it.

        Parameters
        ----------
        role : Role
            What it needs.
        peer : str
            The address that the connection comes from.
        headers : mapping
            Of the request, by their names in lower case.
        """
        if not self.tokens.needed:
            if why := _why_not_local(peer, headers):
                raise ServiceError(
                    "forbidden",
                    "without a token, changes are taken from this machine and at a loopback "
                    f"address only; {why}. Start the service with --token.",
                )
            return LOCAL
        origin = headers.get("origin", "")
        if not (ANY in self.origins or origin.lower() in self.origins) and _foreign(headers):
            raise ServiceError(
                "forbidden",
                "pages of other sites may not change the model. "
                "Start the service with --allow-origin and the page's origin.",
            )
        caller = self.caller(headers)
        if caller is None:
            raise ServiceError("unauthorized", _why_unknown(headers))
        if not caller.may(role):
            raise ServiceError(
                "forbidden", f"this needs a token of role {role!r}, yours is of {caller.role!r}."
            )
        return caller


def _foreign(headers: Mapping[str, str]) -> bool:
    """Whether a page has made a request that did not come from this service.

    A browser says so itself; an old one gives the page's origin, whose scheme may be that of a
    proxy.
    """
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    return origin is not None and (not host or origin.lower().partition("://")[2] != host)


def _why_unknown(headers: Mapping[str, str]) -> str:
    given = headers.get("authorization", "").lower().startswith("bearer ")
    return _WRONG_TOKEN if given else _NO_TOKEN


def _why_not_local(peer: str, headers: Mapping[str, str]) -> str | None:
    """The reason why a request does not count as made on this machine; None where it does."""
    host = headers.get("host", "")
    if not host or not is_loopback(host_name(host)):
        return "this request is addressed to another name"
    if not is_loopback(peer):
        return "this connection comes from elsewhere"
    for name in headers:
        if name in _PASSED_ON or name.startswith("x-forwarded"):
            return f"the header {name!r} tells of a proxy"
    same = headers.get("origin", f"http://{host}").lower() == f"http://{host.lower()}"
    if not same or headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return "this request was made by a page of another origin"
    return None


class AskCheck:
    """ASGI middleware: at a private service all but the pages and ``/health`` needs a token."""

    def __init__(self, app: App, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Check the token, then pass the request on."""
        if scope["type"] == "http" and not _is_open(scope["path"]):
            try:
                caller = self.access.check_ask(headers_of(scope))
            except ServiceError as error:
                await refuse(send, error.type, error.message)
                return
            if caller is not None:
                scope[CALLER] = caller
        await self.app(scope, receive, send)


def headers_of(scope: Message) -> dict[str, str]:
    """Of a request, by their names in lower case; of one that stands twice the first."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith("/page/")


def _check_once(names: Sequence[bytes]) -> None:
    """Refuse a request with two headers of a name that decides: another may read the other one."""
    for name in _ONCE:
        if names.count(name.lower().encode()) > 1:
            raise ServiceError("bad_request", f"the header {name!r} stands more than once.")


class HostCheck:
    """ASGI middleware: refuses requests that are addressed to a name that is not the service's.

    Parameters
    ----------
    names : sequence of str
        The service's beside loopback names; "*" for any.
    """

    def __init__(self, app: App, names: Sequence[str]) -> None:
        self.app = app
        self.any = ANY in names
        self.names = {name.lower() for name in names}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Check ``Host``, and that what decides stands once, then pass the request on."""
        try:
            if scope["type"] == "http":
                _check_once([name for name, _ in scope["headers"]])
                self._check([value for name, value in scope["headers"] if name == b"host"])
        except ServiceError as error:
            await refuse(send, error.type, error.message)
            return
        await self.app(scope, receive, send)

    def _check(self, given: list[bytes]) -> None:
        name = host_name(given[0].decode("latin-1")) if given else ""
        if not (self.any or is_loopback(name) or name in self.names):
            raise ServiceError(
                "forbidden",
                f"this service is not known as {name[:80]!r}. "
                "Ask it as 127.0.0.1, or start it with --allow-host and that name.",
            )

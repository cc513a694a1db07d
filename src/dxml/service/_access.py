"""Who may ask, and who may change the model.

By name: a web page that has its own name point to 127.0.0.1 would read what a service at that
address tells, so a service that listens there answers to loopback names only, and to those it was
given (`HostCheck`).

The model is changed by whoever brings the token, or, without one, by whoever is on this machine: by
a connection from it, to a loopback name, that no proxy says it has passed on and that no page of
another origin has made (`check_write`).
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Mapping, Sequence

from dxml.exceptions import ParameterError
from dxml.service._errors import ServiceError
from dxml.service._limits import App, Message, Receive, Send, refuse

__all__ = ["HostCheck", "check_json", "check_token", "check_write", "host_name", "is_loopback"]

ANY = "*"  # allows every name
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII)
_PASSED_ON = frozenset({"forwarded", "via", "x-real-ip"})  # and x-forwarded-…


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


def check_token(host: str, token: str | None) -> None:
    """Refuse to listen without a token where others can reach the address."""
    if token is not None and not (token.strip() and token.isascii()):
        raise ParameterError("a token must have visible ASCII characters.")
    if token is None and not is_loopback(host):
        raise ParameterError(
            f"others can reach {host}, and could teach the model. "
            "Give --token, or DXML_TOKEN in the environment, or serve on 127.0.0.1."
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


def check_write(token: str | None, peer: str, headers: Mapping[str, str]) -> None:
    """Refuse a change.

    Parameters
    ----------
    token : str or None
        What the service was started with.
    peer : str
        The address that the connection comes from.
    headers : mapping
        Of the request, by their names in lower case.
    """
    if headers.get("sec-fetch-site") == "cross-site":
        raise ServiceError("forbidden", "pages of other sites may not change the model.")
    if token is None:
        if why := _why_not_local(peer, headers):
            raise ServiceError(
                "forbidden",
                "without a token, changes are taken from this machine and at a loopback address "
                f"only; {why}. Start the service with --token.",
            )
        return
    scheme, _, given = headers.get("authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode(), token.strip().encode())
    if scheme.lower() != "bearer" or not right:
        raise ServiceError("unauthorized", "this needs the header 'Authorization: Bearer …'.")


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
    if headers.get("origin", f"http://{host}").lower() != f"http://{host.lower()}":
        return "this request was made by a page of another origin"
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return "this request was made by a page of another origin"
    return None


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
        """Check the header ``Host``, then pass the request on."""
        try:
            if scope["type"] == "http":
                self._check([value for name, value in scope["headers"] if name == b"host"])
        except ServiceError as error:
            await refuse(send, error.type, error.message)
            return
        await self.app(scope, receive, send)

    def _check(self, given: list[bytes]) -> None:
        if len(given) > 1:
            raise ServiceError("bad_request", "the header 'Host' stands more than once.")
        name = host_name(given[0].decode("latin-1")) if given else ""
        if not (self.any or is_loopback(name) or name in self.names):
            raise ServiceError(
                "forbidden",
                f"this service is not known as {name[:80]!r}. "
                "Ask it as 127.0.0.1, or start it with --allow-host and that name.",
            )

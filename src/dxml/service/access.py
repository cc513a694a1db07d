"""Who may change the model: whoever brings the token, or, without one, whoever is on this machine.

Without a token the name that a request is addressed to must be a loopback name too: a proxy passes
on the name that others use, and a web page that has its own name point to 127.0.0.1 sends that.
"""

from __future__ import annotations

import hmac
import ipaddress

from dxml.exceptions import ParameterError
from dxml.service.errors import ServiceError

__all__ = ["check_token", "check_write", "is_loopback"]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "a.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_token(host: str, token: str | None) -> None:
    """Refuse to listen without a token where others can reach the address."""
    if token is not None and not (token.strip() and token.isascii()):
        raise ParameterError("a token must have visible ASCII characters.")
    if token is None and not is_loopback(host):
        raise ParameterError(
            f"others can reach {host}, and could teach the model. "
            "Give --token, or DXML_TOKEN in the environment, or serve on 127.0.0.1."
        )


def check_write(token: str | None, addressed: str, authorization: str) -> None:
    """Refuse a change.

    Parameters
    ----------
    token : str or None
        What the service was started with.
    addressed : str
        The host of the request's address.
    authorization : str
        The header of that name.
    """
    if token is None:
        if not is_loopback(addressed):
            raise ServiceError(
                "forbidden",
                "without a token, changes are taken at a loopback address only. "
                "Start the service with --token.",
            )
        return
    scheme, _, given = authorization.partition(" ")
    right = hmac.compare_digest(given.strip().encode(), token.strip().encode())
    if scheme.lower() != "bearer" or not right:
        raise ServiceError("unauthorized", "this needs the header 'Authorization: Bearer …'.")

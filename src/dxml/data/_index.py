"""Find a file on the package index that pip is configured with, by asking pip."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import urllib.request
from html.parser import HTMLParser
from pathlib import PurePosixPath
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_TIMEOUT = 60.0
_BUILT_IN = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"


def request(url: str, accept: str = "*/*") -> urllib.request.Request:
    """A request for `url`; a user and password in it go into a header, as pip sends them."""
    parts = urlsplit(url)
    headers = {"User-Agent": "dxml", "Accept": accept}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return urllib.request.Request(url, headers=headers)


def _output(*arguments: str) -> str:
    """The output of Python run with these arguments, or an empty string where it fails."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=_TIMEOUT, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def index_url() -> str:
    """The simple index's address: from the environment, pip's settings, or pip's own default."""
    url = (
        os.environ.get("PIP_INDEX_URL")
        or _output("-m", "pip", "config", "get", "global.index-url")
        or _output("-c", _BUILT_IN)
    )
    if not url:
        raise LookupError("pip, which knows the index, is not installed")
    return url.rstrip("/") + "/"


class _Links(HTMLParser):
    """Collects the addresses of all links."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if name == "href" and value]


def _addresses(body: str, content_type: str) -> list[str]:
    """The addresses on a project's page, which is JSON (PEP 691) or HTML (PEP 503)."""
    if "json" in content_type:
        return [str(file["url"]) for file in json.loads(body)["files"]]
    links = _Links()
    links.feed(body)
    return links.addresses


def find_sdist(project: str, file: str) -> str:
    """The address of `file` on the project's page of the index."""
    page = urljoin(index_url(), f"{project}/")
    with urllib.request.urlopen(request(page, _ACCEPT), timeout=_TIMEOUT) as response:
        body = response.read().decode("utf-8")
        addresses = _addresses(body, response.headers.get("Content-Type", ""))
    for address in addresses:
        url = urldefrag(urljoin(page, address)).url
        if PurePosixPath(unquote(urlsplit(url).path)).name == file:
            return url
    raise LookupError(f"the index has no {file}")

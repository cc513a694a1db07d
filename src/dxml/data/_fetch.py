"""Download a registered data set into the cache directory, verified, all of it or nothing.

pooch was tried instead. It makes `fetch` and `_index` longer (261 lines instead of 242) and brings
eight packages. Its progress bar needs an adapter to ours, and it cannot look up files on the index
of pip. Below Python 3.12 its `Untar` follows paths in an archive that lead outside the folder.
"""

from __future__ import annotations

import hashlib
import http.client
import lzma
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO
from xml.etree.ElementTree import ParseError

from dxml.data._index import find_sdist, request
from dxml.data._loading import cache_directory, find_file
from dxml.data._registry import Archive, DatasetInfo, Sdist, lookup
from dxml.exceptions import DatasetNotFoundError
from dxml.progress import SILENT, Progress
from dxml.text._files import COMPRESSIONS

__all__ = ["fetch"]

_BLOCK = 1 << 18  # bytes read at a time
_TIMEOUT = 60.0  # seconds without a byte
_FAILURES = (
    OSError,  # also urllib's errors and timeouts
    EOFError,
    ValueError,
    LookupError,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    http.client.HTTPException,
    ParseError,  # of XML
)


def fetch(name: str, progress: Progress = SILENT, cache_dir: str | Path | None = None) -> Path:
    """Download a registered data set, unless it is there already.

    Parameters
    ----------
    name : str
        A key of `dxml.data.REGISTRY`.
    progress : Progress
        Counts the bytes downloaded, and those converted.
    cache_dir : path, optional
        Where to put it; by default where `dxml.data.load_dataset` looks.

    Returns
    -------
    folder : Path
        The folder `name` in the cache directory, with the data set's files.

    Raises
    ------
    DatasetNotFoundError
        No address gave the data; the message lists what was tried. Nothing is left behind.
    """
    info = lookup(name)
    root = cache_directory() if cache_dir is None else Path(cache_dir)
    folder = root / info.name
    if all(find_file(folder, file) for file in info.files):
        return folder
    root.mkdir(parents=True, exist_ok=True)
    tried = []
    for source in info.sources:
        try:
            with tempfile.TemporaryDirectory(prefix=f".{info.name}.", dir=root) as beside:
                _fetch_from(source, info, Path(beside), progress)
                _move_files(Path(beside) / "files", folder)
        except _FAILURES as error:
            tried.append(f"  {source}: {error or type(error).__name__}")
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # it holds the answer
            continue
        return folder
    raise DatasetNotFoundError(
        f"data set {info.name!r} could not be fetched. Tried:\n"
        + "\n".join(tried or [f"  nothing, as no address is known. {info.note}"])
        + f"\nCheck the network, or place {', '.join(info.files)} in {folder} yourself."
    )


def _fetch_from(
    source: Archive | Sdist, info: DatasetInfo, beside: Path, progress: Progress
) -> None:
    url = find_sdist(source.project, source.file) if isinstance(source, Sdist) else source.url
    archive = beside / "archive"
    _download(url, archive, source.sha256, f"download {info.name}", progress)
    (beside / "files").mkdir()
    if isinstance(source, Archive) or source.conversion is None:
        _extract(archive, info.files, beside / "files")
        return
    conversion = source.conversion
    _extract(archive, (conversion.member,), beside)
    target = beside / "files" / conversion.target
    conversion.convert(beside / conversion.member, target, progress)


def _download(url: str, to: Path, sha256: str | None, title: str, progress: Progress) -> None:
    """Save the bytes at `url`, and check that all came and that they are the right ones."""
    digest = hashlib.sha256()
    received = 0
    with urllib.request.urlopen(request(url), timeout=_TIMEOUT) as response:
        declared = response.headers.get("Content-Length")
        total = int(declared) if declared else None
        with open(to, "wb") as file, progress.stage(title, total, "bytes") as stage:
            while block := response.read(_BLOCK):
                file.write(block)
                digest.update(block)
                received += len(block)
                stage.advance(len(block))
    if total is not None and received != total:
        raise ValueError(f"the download broke off after {received} of {total} bytes")
    if sha256 is not None and digest.hexdigest() != sha256:
        raise ValueError(f"expected sha256 {sha256}, found {digest.hexdigest()}")


@contextmanager
def _members(archive: Path) -> Iterator[dict[str, IO[bytes]]]:
    """The plain files of a .zip or .tar.*, opened, by name without folders."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            names = [item for item in packed.namelist() if not item.endswith("/")]
            yield {PurePosixPath(item).name: packed.open(item) for item in names}
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as packed_tar:
            files = ((item, packed_tar.extractfile(item)) for item in packed_tar if item.isfile())
            yield {PurePosixPath(item.name).name: file for item, file in files if file}
    else:
        raise ValueError("expected a zip or tar archive, found something else")


def _extract(archive: Path, wanted: tuple[str, ...], folder: Path) -> None:
    """Copy the wanted files by name; folders in the archive are ignored, so no path can escape."""
    with _members(archive) as members:
        for name in wanted:
            present = [f"{name}{suffix}" for suffix in ("", *COMPRESSIONS)]
            found = next((item for item in present if item in members), None)
            if found is None:
                raise LookupError(f"the archive holds no {name}")
            with members[found] as source, open(folder / found, "wb") as target:
                shutil.copyfileobj(source, target)


def _move_files(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        os.replace(path, folder / path.name)

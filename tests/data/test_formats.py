"""Reading and writing: hand-written files, a naive oracle, exact round trips."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, save_npz

from dxml.data import Dataset, read, read_pair, recognise, write
from dxml.text import _files as files

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
PLAIN = b"3 5 4\n0,2 1:0.5 3:2\n 0:1e-05\n3\n"
X = [[0, 0.5, 0, 2, 0], [1e-05, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
Y = [[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


def save(path: Path, text: bytes | str) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def check(dataset: Dataset, X: object = X, Y: object = Y) -> None:
    np.testing.assert_array_equal(dataset.X.toarray(), np.array(X, dtype=np.float32))
    np.testing.assert_array_equal(dataset.Y.toarray(), np.array(Y, dtype=bool))
    assert (dataset.X.dtype, dataset.Y.dtype) == (np.float32, np.bool_)
    for matrix in (dataset.X, dataset.Y):
        assert isinstance(matrix, csr_matrix)
        assert matrix.has_canonical_format
        assert matrix.indices.dtype == np.int32


def assert_same(a: Dataset, b: Dataset) -> None:
    for left, right in ((a.X, b.X), (a.Y, b.Y)):
        assert left.shape == right.shape
        np.testing.assert_array_equal(left.indptr, right.indptr)
        np.testing.assert_array_equal(left.indices, right.indices)
        assert left.data.tobytes() == right.data.tobytes()


@pytest.mark.parametrize("suffix", COMPRESS)
def test_reads_the_repository_format_plain_and_compressed(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"small.txt{suffix}", COMPRESS[suffix](PLAIN))
    dataset = read(path)
    check(dataset)
    assert dataset.name == "small"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.rstrip(b"\n"),
        PLAIN + b"\n \n\r\n",
        b"\xef\xbb\xbf" + PLAIN,
        b"3 5 4 \n0,2\t1:0.5\t3:2  \n\t0:1e-05\t\n3 \n",
        b"3 5 4\n2,0 3:2.0 1:5E-1\n  0:0.00001\n3 4:0 2:-0.0\n",
        b"3 5 4\n0,2,0 1:+.5 3:2.\n 0:1.e-5\n+3 \n",
        b"3 5 4\n0,2 1:0.50000000000000000000000000 3:0.2e+1\n0:0000010e-06\n3\n",
        b"3 5 4\n0,2 1:0.5 3:2000000000000000000000000e-24\n 0:1e-05 1:1e-9999\n3\n",
    ],
    ids=[
        "crlf",
        "no-final-newline",
        "blank-lines-at-the-end",
        "byte-order-mark",
        "tabs-and-trailing-spaces",
        "unsorted-and-zeros",
        "repeated-label-and-signs",
        "many-digits-and-no-leading-space",
        "digits-beyond-float64",
    ],
)
def test_reads_every_way_of_writing_the_same_data(tmp_path: Path, text: bytes) -> None:
    check(read(save(tmp_path / "small.txt", text)))


def test_an_empty_line_is_a_point_with_nothing(tmp_path: Path) -> None:
    check(read(save(tmp_path / "a.txt", "3 1 1\n\n0 0:1\n\n")), [[0], [1], [0]], [[0], [1], [0]])


def test_libsvm_counts_features_from_1_and_labels_from_0(tmp_path: Path) -> None:
    path = save(tmp_path / "a.svm", "0,2 2:0.5 4:2\n 1:1e-05\n3\n")
    check(read(path, n_features=5))
    assert read(path).X.shape == (3, 4)
    assert read(path, n_labels=9).Y.shape == (3, 9)


def test_libsvm_bases_are_what_the_caller_says(tmp_path: Path) -> None:
    path = save(tmp_path / "a.libsvm", "1,3 1:0.5 3:2\n 0:1e-05\n4\n")
    check(read(path, n_features=5, feature_base=0, label_base=1))


def test_format_overrides_the_suffix(tmp_path: Path) -> None:
    check(read(save(tmp_path / "data.dat", PLAIN), format="repository"))
    check(
        read(save(tmp_path / "base1.txt", "1 2 2\n1,2 2:3\n"), feature_base=1, label_base=1),
        [[0, 3]],
        [[1, 1]],
    )


def test_reads_the_two_file_format(tmp_path: Path) -> None:
    x = save(tmp_path / "trn_X_Xf.txt", "3 5\n1:0.5 3:2\n0:1e-05\n\n")
    y = save(tmp_path / "trn_X_Y.txt", "3 4\n0:1 2:1.0\n1:0\n3:1\n")
    check(read_pair(x, y))
    check(read(f"{x},{y}"))
    assert read_pair(x, y).name == "trn_X_Xf"


@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
def test_reads_npz_by_folder_and_by_names(tmp_path: Path, kind: type) -> None:
    save_npz(tmp_path / "X.npz", kind(np.array(X)))
    save_npz(tmp_path / "Y.npz", kind(np.array(Y)))
    check(read(tmp_path))
    check(read(f"{tmp_path}/X.npz,{tmp_path}/Y.npz"))


def test_recognises_a_format_by_the_path() -> None:
    assert recognise("a.txt.xz") == "repository"
    assert recognise("a.svm.bz2") == recognise("a.libsvm") == "libsvm"
    assert recognise("a_X.txt,a_Y.txt") == "pair"


def test_a_line_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 7)
    pairs = " ".join(f"{i}:{i + 1}" for i in range(500))
    dataset = read(save(tmp_path / "a.txt", f"3 500 2\n1 {pairs}\n0 3:1\n {pairs}"))
    expected = np.zeros((3, 500))
    expected[0] = expected[2] = np.arange(1, 501)
    expected[1, 3] = 1
    check(dataset, expected, [[0, 1], [1, 0], [0, 0]])


class Counter:
    """A progress that adds up what it hears."""

    total: float | None = None
    done = 0.0

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "") -> Iterator[Counter]:
        assert unit == "bytes"
        self.total = total
        yield self

    def advance(self, amount: float = 1) -> None:
        self.done += amount

    def note(self, text: str) -> None:
        raise AssertionError(text)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_progress_hears_of_every_byte_on_disk(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"a.txt{suffix}", COMPRESS[suffix](PLAIN))
    counter = Counter()
    read(path, progress=counter)
    assert counter.done == counter.total == path.stat().st_size


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False).filter(lambda v: v != 0)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    n, d, n_labels = draw(st.integers(1, 6)), draw(st.integers(1, 9)), draw(st.integers(1, 5))
    X = np.zeros((n, d), np.float32)
    for cell in draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, d - 1)))):
        X[cell] = draw(FLOATS)
    Y = np.array(draw(st.lists(st.booleans(), min_size=n * n_labels, max_size=n * n_labels)))
    return Dataset(csr_matrix(X), csr_matrix(Y.reshape(n, n_labels)))


@pytest.mark.parametrize(
    "path",
    [f"a.txt{s}" for s in COMPRESS]
    + [f"a.svm{s}" for s in COMPRESS]
    + [f"x.txt{s},y.txt{s}" for s in COMPRESS]
    + ["p.npz,q.npz", "folder"],
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dataset=datasets())
def test_round_trip_is_exact(tmp_path: Path, path: str, dataset: Dataset) -> None:
    full = ",".join(str(tmp_path / part) for part in path.split(","))
    write(dataset, full)
    shape = {"n_features": dataset.n_features, "n_labels": dataset.n_labels}
    assert_same(read(full, **(shape if ".svm" in path else {})), dataset)
    assert not list(tmp_path.glob(".*"))


def test_round_trip_of_every_power_of_two_and_its_neighbours(tmp_path: Path) -> None:
    powers = np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32)
    values = np.concatenate([powers, np.nextafter(powers, np.float32(0)), -powers])
    values = values[values != 0][None, :]
    dataset = Dataset(csr_matrix(values), csr_matrix(np.ones((1, 1), bool)))
    write(dataset, tmp_path / "a.txt")
    assert_same(read(tmp_path / "a.txt"), dataset)


@pytest.mark.parametrize(("feature_base", "label_base"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_libsvm_round_trip_in_every_base(
    tmp_path: Path, feature_base: int, label_base: int
) -> None:
    dataset = Dataset(csr_matrix(np.array(X)), csr_matrix(np.array(Y)))
    write(dataset, tmp_path / "a.svm", feature_base=feature_base, label_base=label_base)
    check(read(tmp_path / "a.svm", feature_base=feature_base, label_base=label_base, n_features=5))


def test_written_text_is_short(tmp_path: Path) -> None:
    write(Dataset(csr_matrix(np.array(X)), csr_matrix(np.array(Y))), tmp_path / "new" / "a.txt")
    assert (tmp_path / "new" / "a.txt").read_text() == "3 5 4\n0,2 1:0.5 3:2\n 0:1e-05\n3 \n"


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Dataset(csr_matrix(np.array(X)), csr_matrix(np.array(Y)))
    old = save(tmp_path / "a.txt", "old")

    def crash(*_: object) -> None:
        raise RuntimeError("disk")

    monkeypatch.setattr("dxml.data._write._number_texts", crash)
    with pytest.raises(RuntimeError, match=r"disk"):
        write(dataset, old)
    with pytest.raises(RuntimeError, match=r"disk"):
        write(dataset, f"{tmp_path}/x.txt,{tmp_path}/y.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert old.read_text() == "old"


def naive(text: str) -> tuple[np.ndarray, np.ndarray]:
    """The format's definition, line by line, in plain Python."""
    header, *lines = text.split("\n")
    n, d, n_labels = map(int, header.split())
    X, Y = np.zeros((n, d), np.float32), np.zeros((n, n_labels), bool)
    for row, line in enumerate(lines[:n]):
        labels, *pairs = line.replace("\t", " ").split(" ")
        for label in filter(None, labels.split(",")):
            Y[row, int(label)] = True
        for pair in filter(None, pairs):
            index, value = pair.split(":")
            X[row, int(index)] = float(value)
    return X, Y


DECIMALS = st.one_of(
    FLOATS.map(repr),
    st.floats(-1e30, 1e30).map(lambda v: f"{v:.6f}"),
    st.from_regex(
        r"\A[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?\Z"
    ).filter(lambda s: abs(float(s)) < 3e38),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_kernel_agrees_with_a_naive_parser(tmp_path: Path, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    lines = [f"{n} 12 7"]
    for _ in range(n):
        labels = ",".join(map(str, data.draw(st.lists(st.integers(0, 6), max_size=4))))
        ids = data.draw(st.lists(st.integers(0, 11), unique=True, max_size=6))
        gap = data.draw(st.sampled_from([" ", "  ", "\t"]))
        lines.append(labels + "".join(f"{gap}{i}:{data.draw(DECIMALS)}" for i in ids))
    text = "\n".join(lines) + "\n"
    with np.errstate(under="ignore"):
        X, Y = naive(text)
    check(read(save(tmp_path / "a.txt", text)), X, Y)


@pytest.mark.parametrize("block", [5, 64, 1000])
def test_the_size_of_a_block_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    rng = np.random.default_rng(0)
    lines = ["60 40 9"]
    for _ in range(60):
        labels = ",".join(map(str, rng.choice(9, rng.integers(4), replace=False)))
        ids = rng.choice(40, rng.integers(10), replace=False)
        lines.append(f"{labels} " + " ".join(f"{i}:{rng.normal():.6f}" for i in ids))
    path = save(tmp_path / "a.txt", "\n".join(lines))
    monkeypatch.setattr(files, "BLOCK", block)
    check(read(path), *naive("\n".join(lines)))

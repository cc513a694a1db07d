"""Every complaint about a file: what was expected, what came, what to do."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_matrix, save_npz

from dxml.data import Dataset, read, read_pair, recognise, write
from dxml.exceptions import DataFormatError, ParameterError

HEAD = b"2 5 4\n0,1 0:1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD, "line 3: the header declares 2 points but the file ends after 1. The file is cut"),
        (HEAD + b"1 2:1\n\n2 3:1\n", "line 5: the header declares 2 points but here is one more"),
        (HEAD + b"1 5:1\n", "line 3: feature index 5 is outside 0..4 declared in the header. "
                            "Use feature_base=1 if indices start at 1."),
        (HEAD + b"1 -1:1\n", "line 3: feature index -1 is outside 0..4"),
        (HEAD + b"1 99999999999999999999:1\n", "feature index 99999999999999999999 is outside"),
        (HEAD + b"1,4 2:1\n", "line 3: label index 4 is outside 0..3 declared in the header. "
                              "Use label_base=1 if labels start at 1."),
        (HEAD + b"-2 2:1\n", "line 3: label index -2 is outside 0..3"),
        (b"1 0 1\n0 0:1\n", "line 2: feature index 0 is outside the empty range declared in the"),
        (HEAD + b"1 2:nan\n", "line 3: the value of feature 2 is nan, expected a finite number. "
                              "Replace it or leave the pair out."),
        (HEAD + b"1 2:-Inf\n", "line 3: the value of feature 2 is -Inf, expected a finite number"),
        (HEAD + b"1 2:infinity", "line 3: the value of feature 2 is infinity, expected"),
        (HEAD + b"1 2:1e39\n", "line 3: the value 1e39 is too large for a 32-bit float. Scale it."),
        (HEAD + b"1 2:1e999\n", "line 3: the value 1e999 is too large"),
        (HEAD + b"1 2:\n", "line 3: expected a pair 'feature:value' such as '12:0.5', found '2:'"),
        (HEAD + b"1 2\n", "expected a pair 'feature:value' such as '12:0.5', found '2'. Correct"),
        (HEAD + b"1 :2\n", "line 3: expected a pair .* found ':2'"),
        (HEAD + b"1 2:3:4\n", "line 3: expected a pair .* found '2:3:4'"),
        (HEAD + b"1 2:1x\n", "line 3: expected a pair .* found '2:1x'"),
        (HEAD + b"1 2:1_0\n", "line 3: expected a pair .* found '2:1_0'"),
        (HEAD + b"1 2:1e\n", "line 3: expected a pair .* found '2:1e'"),
        (HEAD + b"1 2:1e--5\n", "line 3: expected a pair .* found '2:1e--5'"),
        (HEAD + b"1 2:.\n", "line 3: expected a pair .* found '2:.'"),
        (HEAD + b"1 2:1.2.3\n", "line 3: expected a pair .* found '2:1.2.3'"),
        (HEAD + b"1 " + b"z" * 60, "found '" + "z" * 40 + "'…"),
        (HEAD + b"a 2:1\n", "line 3: expected labels such as '3,17', found 'a'. Start the line"),
        (HEAD + b"1,,2 2:1\n", "line 3: expected labels such as '3,17', found ',2'"),
        (HEAD + b"1, 2:1\n", "line 3: expected labels such as '3,17', found ''"),
        (HEAD + b"1,2:1\n", "line 3: expected labels such as '3,17', found '2:1'"),
        (HEAD + b"1 2:1 2:3\n", "line 3: feature index 2 appears more than once. Keep one"),
        (HEAD + b"1 3:1 2:1 3:1e-30\n", "line 3: feature index 3 appears more than once"),
        (HEAD + b"1 2:\xff\xfe\n", "line 3: .* which holds byte 0xff and so is not text"),
        (HEAD + b"\x00\x01\n", "line 3: expected labels .* holds byte 0x00 and so is not text"),
        (b"\x89PNG\r\n\x1a\n", "line 1: expected the header .* holds byte 0x89"),
        (b"2 5\n", r"line 1: expected the header 'points features labels' \(3 whole numbers\), "
                   "found '2 5'. Choose another format="),
        (b"2 5 x\n", "line 1: expected the header .* found '2 5 x'"),
        (b"-2 5 4\n", "line 1: expected the header .* found '-2 5 4'"),
        (b"\n\n", "line 1: expected the header .* found ''"),
        (b"1 2147483648 4\n0 4294967299:1\n", "line 1: the header declares 2147483648 features, "
                                               "and there may be up to 2147483647. Correct the"),
        (b"1 5 2199023255552\n-7 1:1\n", "line 1: the header declares 2199023255552 labels"),
        (b"", r"a.txt: the file is empty \(0 bytes\). Download or write it again"),
        pytest.param(gzip.compress(HEAD), "line 1: expected text, found a gzip archive. "
                                          "Name compressed files", id="gzip"),
        pytest.param(lzma.compress(HEAD), "line 1: expected text, found a xz archive", id="xz"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    with pytest.raises(DataFormatError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_truncated_archive(tmp_path: Path, suffix: str) -> None:
    compress = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    text = b"9 9 9\n" + b"".join(b"%d 1:0.%d\n" % (i, i) for i in range(9))
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(compress(text)[:-20])
    message = f"the {suffix[1:]} archive is truncated or damaged .* Download it again"
    with pytest.raises(DataFormatError, match=message):
        read(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_text_that_is_named_like_an_archive(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(HEAD)
    with pytest.raises(DataFormatError, match=r"line 1: the .* archive is truncated or damaged"):
        read(path)


def test_an_empty_file_in_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(DataFormatError, match=r"line 1: the archive holds an empty file"):
        read(path)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataFormatError, match=r"a.txt: there is no such file. Check the path"):
        read(tmp_path / "a.txt")
    with pytest.raises(DataFormatError, match=r"expected a file, found a folder. Name a file"):
        read(tmp_path, format="repository")
    with pytest.raises(DataFormatError, match=r"X.npz: there is no such file"):
        read(tmp_path)


def test_an_error_far_down_has_the_right_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    rows = 400_000
    path.write_text(f"{rows} 5 4\n" + "0 0:1\n" * (rows - 1) + "0 7:1\n")
    with pytest.raises(DataFormatError, match=f"line {rows + 1}: feature index 7"):
        read(path)


def test_libsvm_says_where_ids_start(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("0 1:1\n1 0:1\n")
    message = r"line 2: feature index 0 is outside 1..\d+. Features are taken to start at 1: set"
    with pytest.raises(DataFormatError, match=message):
        read(path)
    message = "feature index 1 is outside 0..0 given as n_features and n_labels"
    with pytest.raises(DataFormatError, match=message):
        read(path, feature_base=0, n_features=1)


def test_two_files_must_agree(tmp_path: Path) -> None:
    x, y = tmp_path / "x.txt", tmp_path / "y.txt"
    x.write_text("2 3\n0:1\n1:1\n")
    y.write_text("1 2\n0:1\n")
    with pytest.raises(DataFormatError, match=r"x.txt has 2 points but .*y.txt has 1. Give"):
        read_pair(x, y)
    y.write_text("2 2\n0:1\n2:1\n")
    with pytest.raises(DataFormatError, match=r"y.txt line 3: label index 2 is outside 0..1"):
        read_pair(x, y)
    x.write_text("2 3\n0,1 0:1\n1:1\n")
    with pytest.raises(DataFormatError, match=r"x.txt line 2: expected a pair .* found '0,1'"):
        read_pair(x, y)
    with pytest.raises(DataFormatError, match=r"expected two file names with a comma between"):
        read(x, format="pair")


def test_a_damaged_npz(tmp_path: Path) -> None:
    save_npz(tmp_path / "X.npz", csr_matrix(np.eye(3)))
    whole = (tmp_path / "X.npz").read_bytes()
    np.savez(tmp_path / "Y.npz", a=np.arange(3))
    with pytest.raises(DataFormatError, match=r"Y.npz: expected a sparse matrix of numbers"):
        read(tmp_path)
    (tmp_path / "Y.npz").write_bytes(whole[:-30])
    with pytest.raises(DataFormatError, match=r"found something else or a damaged file"):
        read(tmp_path)
    np.savez(
        tmp_path / "Y.npz",
        format=b"csr", shape=(3, 3), data=np.ones(1), indices=[7], indptr=[0, 1, 1, 1],
    )  # fmt: skip
    with pytest.raises(DataFormatError, match=r"Y.npz: expected a sparse matrix .*ind(ices|ex)"):
        read(tmp_path)
    save_npz(tmp_path / "Y.npz", coo_array(np.arange(3)))
    with pytest.raises(DataFormatError, match=r"Y.npz: expected a sparse matrix"):
        read(tmp_path)


def test_npz_never_unpickles(tmp_path: Path) -> None:
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "X.npz", format=objects, allow_pickle=True)
    with pytest.raises(DataFormatError, match=r"allow_pickle=False"):
        read(tmp_path)


def test_npz_values_must_be_finite_and_rows_agree(tmp_path: Path) -> None:
    save_npz(tmp_path / "X.npz", csr_matrix(np.array([[1.0, 0.0], [0.0, np.nan]])))
    save_npz(tmp_path / "Y.npz", csr_matrix(np.eye(2)))
    with pytest.raises(DataFormatError, match=r"X.npz row 1: the value of feature 1 is nan"):
        read(tmp_path)
    save_npz(tmp_path / "X.npz", csr_matrix(np.eye(3)))
    with pytest.raises(DataFormatError, match=r"X.npz has 3 points but .*Y.npz has 2"):
        read(tmp_path)


def test_a_format_that_cannot_be_told() -> None:
    with pytest.raises(DataFormatError, match=re.escape("cannot be told from the suffix '.csv'")):
        recognise("a.csv")
    with pytest.raises(DataFormatError, match="A table of texts is for a tagger: dxml train with"):
        recognise("a.jsonl")
    with pytest.raises(DataFormatError, match="A table of texts is for a tagger: dxml train with"):
        recognise("A.XLSX")
    with pytest.raises(DataFormatError, match=r"one .npz holds one matrix, expected two"):
        recognise("a.npz")


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 1 1\n0 0:1\n")
    with pytest.raises(ParameterError, match=r"unknown format 'libsmv'; did you mean 'libsvm'"):
        read(path, format="libsmv")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"n_features and n_labels are for libsvm"):
        read(path, n_features=3)
    with pytest.raises(ParameterError, match=r"feature_base must be 0 or 1, got 2"):
        read(path, feature_base=2)
    with pytest.raises(ParameterError, match=r"ids in format 'repository' start at 0"):
        write(Dataset(csr_matrix((1, 1)), csr_matrix((1, 1))), path, label_base=1)


def test_ids_of_libsvm_fit_32_bits(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 3:1\n")
    with pytest.raises(ParameterError, match="n_features must be 0 to 2147483647, got 2147483648"):
        read(tmp_path / "a.svm", format="libsvm", n_features=2**31)


def save_pair(folder: Path, X: object, Y: object) -> Path:
    for name, matrix in (("X", X), ("Y", Y)):
        save_npz(folder / f"{name}.npz", matrix)
    return folder


@pytest.mark.parametrize(
    ("part", "values"), [("indices", [0, 9, 1]), ("indices", [0, -1, 1]), ("indptr", [0, 9, 3])]
)
@pytest.mark.parametrize("kind", [csr_matrix, csc_matrix])
def test_a_matrix_that_leads_out_of_itself_is_refused(
    tmp_path: Path, kind: type, part: str, values: list[int]
) -> None:
    """A conversion of such a matrix checks no bounds, and has ended the process."""
    good = kind(np.array([[1, 0], [2, 3]], dtype=np.float32))
    truth = csr_matrix(np.eye(2, dtype=bool))
    assert read(save_pair(tmp_path, good, truth)).X.nnz == 3
    setattr(good, part, np.array(values, np.int32))
    with pytest.raises(DataFormatError, match="X.npz: expected a sparse matrix of numbers"):
        read(save_pair(tmp_path, good, truth))


@pytest.mark.parametrize("value", [2.0, -1.0, np.nan, 0.5])
def test_labels_are_0_or_1(tmp_path: Path, value: float) -> None:
    X = csr_matrix(np.eye(2, dtype=np.float32))
    folder = save_pair(tmp_path, X, csr_matrix(np.array([[1, 0], [0, value]])))
    with pytest.raises(DataFormatError, match=f"Y.npz row 1: the value of label 1 is {value:g}, "):
        read(folder)


def test_features_fit_32_bits(tmp_path: Path) -> None:
    X = csr_matrix(np.array([[1.0, 0], [0, 1e300]]))
    folder = save_pair(tmp_path, X, csr_matrix(np.eye(2, dtype=bool)))
    with pytest.raises(DataFormatError, match="X.npz row 1: the value 1e.300 of feature 1 is too"):
        read(folder)

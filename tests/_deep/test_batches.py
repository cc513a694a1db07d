from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from dxml._deep.batches import PlacedTokens, padded_length, similar_batches, sorted_batches
from dxml._deep.plan import plan_epoch
from dxml._deep.tokens import Tokens

CPU = torch.device("cpu")


def test_batches_hold_every_text_once_and_little_padding() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 200, size=1000)
    batches = similar_batches(lengths, 16, rng)
    assert sorted(np.concatenate(batches).tolist()) == list(range(1000))
    assert max(map(len, batches)) == 16 and len(batches) == 63
    padded = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    assert padded < 1.1 * lengths.sum()
    longest = [int(lengths[batch].max()) for batch in batches]
    assert longest != sorted(longest)  # in a random order


def test_there_are_few_distinct_lengths() -> None:
    lengths = {padded_length(n, 256) for n in range(1, 257)}
    assert len(lengths) <= 16 and max(lengths) == 256
    assert all(padded_length(n, 256) >= n for n in range(1, 257))
    assert padded_length(63, 60) == 63  # never cut


def test_sorted_batches_stay_within_their_tokens() -> None:
    lengths = np.array([5, 100, 7, 30, 64])
    batches = list(sorted_batches(lengths, 64))
    assert [batch.tolist() for batch in batches] == [[1], [4], [3, 2], [0]]


def test_padded_batches_are_gathered() -> None:
    texts = PlacedTokens(Tokens.of([[5, 6, 7], [8], [9, 9]]), 1, 32, CPU)
    ids, real = texts.batch(np.array([2, 0]))
    assert ids.shape == (2, 8)
    assert ids[:, :4].tolist() == [[9, 9, 1, 1], [5, 6, 7, 1]] and (ids[:, 3:] == 1).all()
    assert real.sum(dim=1).tolist() == [2, 3]


def test_an_epoch_lays_out_labels_and_a_name_for_each_text() -> None:
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix(rng.random((50, 9)) < 0.2)
    assert (np.diff(Y.indptr) == 0).any()
    epoch = plan_epoch(rng.integers(3, 9, 50), Y, 8, rng, CPU)
    seen = []
    for batch in range(len(epoch)):
        for count in (1, 3):
            pieces = epoch.pieces(batch, count)
            assert len(pieces) == min(count, sum(len(piece.texts) for piece in pieces))
            for piece in pieces:
                found = np.zeros((len(piece.texts), 9), dtype=bool)
                found[piece.rows.numpy(), piece.columns.numpy()] = True
                assert np.array_equal(found, Y[piece.texts].toarray())
                assert np.array_equal(piece.host_columns, piece.columns.numpy())
                own = found[np.arange(len(found)), piece.named]
                assert np.array_equal(own & (piece.named >= 0), found.any(axis=1))
        texts, labels = epoch.batch(batch)
        assert texts.tolist() == [text for piece in pieces for text in piece.texts.tolist()]
        assert labels.tolist() == Y[texts].indices.tolist()
        seen += [text for piece in pieces for text in piece.texts.tolist()]
    assert sorted(seen) == list(range(50))

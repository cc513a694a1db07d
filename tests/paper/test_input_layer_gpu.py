"""The first layer by Triton's kernels: step by step what the CPU's layer does."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml.paper._input_layer import CpuInputLayer

SPEED = (0.05, 0.9, 0.01)


@pytest.mark.gpu
@pytest.mark.parametrize("planned", [1 << 26, 200])  # one plan an epoch, and several
def test_the_same_weights_as_on_a_cpu(planned: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from dxml.paper import _input_layer_gpu as module

    monkeypatch.setattr(module, "PLANNED", planned)
    rng = np.random.default_rng(0)
    rows = sp.random(90, 400, density=0.05, format="csr", dtype=np.float32, random_state=0)
    X = sp.vstack([sp.csr_matrix((1, 400), dtype=np.float32), rows], format="csr")
    first = rng.standard_normal((400, 150), dtype=np.float32)
    cpu = CpuInputLayer(X, first.copy(), *SPEED, 100)
    gpu = module.KernelInputLayer(X, first.copy(), *SPEED, 100, "cuda")
    for _ in range(3):
        batches = np.array_split(rng.permutation(91), 11)
        gpu.start_epoch(batches)
        for batch in batches:
            product = gpu.forward(batch)  # begins the next of the batches that were said to come
            assert np.allclose(product.detach().cpu(), cpu.forward(batch).detach(), atol=1e-4)
            gradient = torch.from_numpy(rng.standard_normal((len(batch), 150), dtype=np.float32))
            gpu.step(gradient.cuda())
            cpu.step(gradient)
    assert np.allclose(gpu.weights(), cpu.weights(), atol=1e-4)

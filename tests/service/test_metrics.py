"""Counts in the format of Prometheus: of one process, and of several added up."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dxml.service._metrics import FOLDER, Metrics, folder_of_counts

from .conftest import PATIENCE, TestClient, names_of

WORKER = """
import sys
from dxml.service._metrics import Metrics, share_counts
slot = share_counts(sys.argv[1])
metrics = Metrics(lambda: {"dxml_model_labels": ("Labels of the model.", 4)})
for seconds in map(float, sys.argv[2:]):
    metrics.observe("POST", "/predict", 200, seconds)
    metrics.observe_batch(3)
metrics.observe("GET", "other", 404, 0.001)
print(metrics.text()[0].decode(), end="<end>", flush=True)
sys.stdin.read()
"""


def worker(folder: Path, *seconds: float) -> tuple[subprocess.Popen[str], list[str]]:
    """A process that counts and then waits; what it reported."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder), *map(str, seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    while not said.endswith("<end>"):
        got = process.stdout.read(1)
        assert got, "the worker has stopped"
        said += got
    return process, said.removesuffix("<end>").splitlines()


def test_counts_of_several_processes_are_added_up_and_stay_when_one_is_killed(
    tmp_path: Path,
) -> None:
    first, alone = worker(tmp_path, 0.02, 0.3)
    assert 'dxml_requests_total{method="POST",path="/predict",status="200"} 2.0' in alone
    second, both = worker(tmp_path, 0.02)
    for line in (
        'dxml_requests_total{method="POST",path="/predict",status="200"} 3.0',
        'dxml_errors_total{type="not_found"} 2.0',
        'dxml_request_seconds_bucket{le="0.01",path="/predict"} 0.0',
        'dxml_request_seconds_bucket{le="0.025",path="/predict"} 2.0',
        'dxml_request_seconds_bucket{le="+Inf",path="/predict"} 3.0',
        'dxml_request_seconds_count{path="/predict"} 3.0',
        "dxml_batches_total 3.0",
        "dxml_ranked_total 9.0",
        "dxml_model_labels 4.0",  # the same in both, so not added
    ):
        assert line in both
    files = sorted(tmp_path.iterdir())
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=PATIENCE)
    third, after = worker(tmp_path, 0.02)
    assert 'dxml_requests_total{method="POST",path="/predict",status="200"} 4.0' in after
    assert sorted(tmp_path.iterdir()) == files  # the place of the one killed is used again
    for process in (second, third):
        process.communicate("", timeout=PATIENCE)


def test_one_process_counts_in_memory(client: TestClient) -> None:
    assert FOLDER not in os.environ
    names_of(client, "herring")
    client.get("/nothing")
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.text.splitlines()
    assert 'dxml_requests_total{method="POST",path="/predict",status="200"} 1.0' in lines
    assert 'dxml_requests_total{method="GET",path="other",status="404"} 1.0' in lines
    assert 'dxml_errors_total{type="not_found"} 1.0' in lines
    assert 'dxml_request_seconds_bucket{le="+Inf",path="/predict"} 1.0' in lines
    assert 'dxml_request_seconds_count{path="/predict"} 1.0' in lines
    assert "dxml_model_labels 4.0" in lines
    assert "dxml_ranked_total 1.0" in lines
    assert "# TYPE dxml_request_seconds histogram" in lines
    assert "_created" not in answer.text
    newer = client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert newer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert newer.text.endswith("# EOF\n")


def test_methods_that_clients_make_up_are_counted_together(client: TestClient) -> None:
    for i in range(20):
        client.request(f"MADE{i}", "/health")
    text = client.get("/metrics").text
    assert "MADE" not in text
    assert re.search(r'dxml_requests_total\{method="other",path=".*",status="405"\} 20.0\n', text)


@pytest.mark.parametrize("seconds, first", [(0.005, "0.005"), (0.0051, "0.01"), (99.0, "+Inf")])
def test_a_latency_is_counted_from_its_bucket_on(seconds: float, first: str) -> None:
    metrics = Metrics()
    metrics.observe("GET", "/", 200, seconds)
    text = metrics.text()[0].decode()
    counts = re.findall(r'dxml_request_seconds_bucket\{le="(.+?)",path="/"\} (.*)', text)
    assert next(bound for bound, n in counts if n == "1.0") == first


def test_folders_of_services_that_were_killed_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("dxml-metrics-dead", "dxml-metrics-starting", "dxml-other"):
        (tmp_path / name).mkdir()
    (tmp_path / "dxml-metrics-dead" / "service.lock").touch()
    with folder_of_counts() as first:
        with folder_of_counts() as second:
            assert first.exists() and second.exists() and first != second
        assert not second.exists()
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {first.name, "dxml-metrics-starting", "dxml-other"}
    assert not first.exists()

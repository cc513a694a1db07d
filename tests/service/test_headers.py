"""Every answer tells browsers what they may not do with it."""

from __future__ import annotations

import pytest

from .conftest import TestClient


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/docs", 200),
        ("GET", "/page/app.js", 200),
        ("GET", "/labels", 200),
        ("GET", "/openapi.json", 200),
        ("POST", "/predict", 422),
        ("GET", "/nowhere", 404),
        ("GET", "/page/none.js", 404),
        ("PUT", "/predict", 405),
    ],
)
def test_headers_of_all_answers(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    is_page = status == 200 and (path in ("/", "/docs") or path.startswith("/page/"))
    assert policy.startswith("default-src 'self'" if is_page else "default-src 'none'")
    assert "unsafe" not in policy and "http" not in policy
    assert answer.headers["cache-control"] == ("no-cache" if is_page else "no-store")


def test_a_refusal_before_the_routes_has_them_too(client: TestClient) -> None:
    answer = client.get("/labels", headers={"host": "evil.org"})
    assert answer.status_code == 403 and answer.headers["x-frame-options"] == "DENY"

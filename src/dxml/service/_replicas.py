"""The service on a Ray cluster: replicas of the app by Ray Serve, one journal for all.

Serve's proxies take the requests and give each to a replica. It starts another replica for one
that died. What was asked of that one is an error to the client, who may ask again: lessons with ids
can be sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dxml.exceptions import ClusterError
from dxml.service._access import is_loopback
from dxml.service._limits import Limits
from dxml.service._served import check_method
from dxml.service._shared_journal import SharedJournal, keep_journal
from dxml.tagging._journal import JOURNAL

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["serve_replicas"]

AT_ONCE = 256  # requests that a replica may have; it ranks them together


@contextmanager
def serve_replicas(
    model: str | Path,
    *,
    host: str,
    port: int,
    replicas: int,
    options: Mapping[str, Any] | None = None,
) -> Iterator[None]:
    """Inside, a model is served by the Ray cluster that this process is connected to.

    Parameters
    ----------
    model : str or Path
        A folder that all machines reach by the same path.
    host, port : str, int
        Where the proxies listen: one on the head where `host` is a loopback address, else one on
        each machine.
    replicas : int
        Processes that rank, a core each.
    options : mapping, optional
        Arguments of `dxml.service.app.create_app`: who may ask and change.
    """
    ray, serve = _imported()
    folder = Path(model).absolute()
    check_method(folder)
    _check_idle(ray)
    journal = keep_journal(folder / JOURNAL)
    where = "HeadOnly" if is_loopback(host) else "EveryNode"
    replica = serve.deployment(
        name="model",
        num_replicas=replicas,
        max_ongoing_requests=AT_ONCE,
        ray_actor_options={"num_cpus": 1},
        graceful_shutdown_timeout_s=Limits().seconds,
        logging_config={"log_level": "ERROR", "enable_access_log": False},
    )
    app = serve.ingress(_builder(folder, journal, options or {}))()
    try:
        try:
            serve.start(proxy_location=where, http_options={"host": host, "port": port})
            serve.run(replica(app).bind(), name="dxml", route_prefix="/")
        except RuntimeError as error:
            raise ClusterError(
                f"the replicas did not start. All machines must reach {folder}, and port {port} "
                "must be free there."
            ) from error
        yield
    finally:
        serve.shutdown()


def _check_idle(ray: Any) -> None:
    """Ray Serve has one address in a cluster, and keeps that of whoever was first."""
    try:
        ray.get_actor("SERVE_CONTROLLER_ACTOR", namespace="serve")
    except ValueError:
        return
    raise ClusterError(
        "Ray Serve runs on this cluster already. Stop what it serves with `serve shutdown`, or "
        "take another cluster."
    )


def _builder(folder: Path, journal: SharedJournal, options: Mapping[str, Any]) -> Any:
    def build() -> FastAPI:
        from dxml.service.app import create_app

        return create_app(folder, journal=journal, threads=1, **options)

    return build


def _imported() -> tuple[Any, Any]:
    try:
        import ray
        from ray import serve
    except ImportError as error:
        raise ClusterError(
            "Ray Serve is not installed. Install it: pip install 'dxml[ray,serve]'."
        ) from error
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    return ray, serve

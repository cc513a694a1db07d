"""Starting the service: one process, several that share address and journal, or a Ray cluster."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dxml._core.cluster import ray_cluster
from dxml.exceptions import ParameterError
from dxml.service._access import check_origins, check_token, is_loopback
from dxml.service._copied_journal import open_journal
from dxml.service._limits import Limits
from dxml.service._logs import configure_logs
from dxml.service._replicas import serve_replicas
from dxml.service._served import check_method
from dxml.service._tokens import Tokens, hashed
from dxml.tagging._journal import JOURNAL

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["app_of_a_worker", "end_with_parent", "loop_of_a_worker", "serve"]

STARTED_WITHIN = 120
"""Seconds that a process may take to start; a busy machine takes longer than uvicorn's 5."""

_SETTINGS = "DXML_SERVE"  # variable by which worker processes get their settings


def serve(
    model: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    token: str | None = None,
    tokens: str | Path | None = None,
    private: bool = False,
    allow_hosts: Sequence[str] = (),
    allow_origins: Sequence[str] = (),
    ray: str | None = None,
    log_level: str = "warning",
    log_json: bool = False,
    announce: Callable[[], None] = lambda: None,
) -> None:
    """Serve a model until told to stop.

    Parameters
    ----------
    model : str or Path
        The folder of a tagger or of a joint model.
    workers : int
        Processes; they see each other's lessons.
    token, tokens, private
        As in `dxml.service.app.create_app`. An address that others can reach needs a token.
    allow_hosts : sequence of str
        Names, beside loopback names, that requests may be addressed to; at an address that others
        can reach any by default.
    allow_origins : sequence of str
        Origins of other sites whose pages may ask.
    ray : str, optional
        Address of a Ray cluster whose machines serve the model, as in `dxml._core.cluster`.
    log_level, log_json
        As in `dxml.service._logs.configure_logs`.
    announce : callable
        Called when all checks have passed, before the server starts.
    """
    try:
        import uvicorn

        from dxml.service._connections import Connection
        from dxml.service._metrics import folder_of_counts
        from dxml.service.app import create_app
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"serving needs the package {error.name}, which is missing. "
            "Install what serving needs with: pip install 'dxml[serve]'."
        ) from error
    check_token(host, token, tokens)
    check_origins(allow_origins)
    settings = {
        "host": host,
        "port": port,
        "access_log": False,
        "proxy_headers": False,  # X-Forwarded-For could fake the client's address
        "server_header": False,
        "log_config": None,
        "log_level": log_level,
        "http": Connection,
        "ws": "none",
        "timeout_graceful_shutdown": int(Limits().seconds),
        "timeout_worker_healthcheck": STARTED_WITHIN,
    }
    _check_free(host, port)
    configure_logs(log_level, log_json)
    hosts = list(allow_hosts) if allow_hosts or is_loopback(host) else ["*"]
    options = {
        "token": None if token is None else hashed(token),
        "tokens": None if tokens is None else str(Path(tokens).absolute()),
        "private": private,
        "hosts": hosts,
        "origins": list(allow_origins),
    }
    if ray is not None:
        with (
            ray_cluster(ray),
            serve_replicas(model, host=host, port=port, replicas=workers, options=options),
        ):
            announce()
            _wait_for_stop()
        return
    if workers == 1:
        app = create_app(model, **options)  # type: ignore[arg-type]
        announce()
        uvicorn.run(app, **settings)  # type: ignore[arg-type]
        return
    Tokens(file=tokens)
    check_method(model)  # errors are reported here once, not by each worker
    open_journal(Path(model) / JOURNAL).close()
    announce()
    threads = max(1, (os.cpu_count() or 1) // workers)
    worker = {"model": str(model), "threads": threads, **options}
    where = "dxml.service._server:app_of_a_worker"
    with folder_of_counts() as folder:
        os.environ[_SETTINGS] = json.dumps(
            {
                "counts": str(folder),
                "workers": workers,
                "logs": [log_level, log_json],
                "app": worker,
            }
        )
        settings["loop"] = "dxml.service._server:loop_of_a_worker"
        uvicorn.run(where, factory=True, workers=workers, **settings)  # type: ignore[arg-type]


def _wait_for_stop() -> None:
    """Until Ctrl-C or SIGTERM."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.wait(1.0):
        pass


def _check_free(host: str, port: int) -> None:
    """Raise an error in words where the address cannot be bound."""
    try:
        kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise ParameterError(
            f"cannot listen at {host}, port {port} ({error.strerror or error}). "
            "Give another with --port or --host."
        ) from error


def app_of_a_worker() -> FastAPI:
    """The app of one process out of several; its counts are added to those of the others."""
    from dxml.service._metrics import share_counts
    from dxml.service.app import create_app

    end_with_parent()
    settings = json.loads(os.environ[_SETTINGS])
    configure_logs(*settings["logs"])
    slot = share_counts(settings["counts"])
    app = create_app(**settings["app"])
    app.state.slot = slot  # open as long as the app exists
    return app


def loop_of_a_worker() -> asyncio.AbstractEventLoop:
    """The event loop of one process out of several; it leaves connections to those with fewer."""
    from dxml.service._accepting import Tally, sharing_loop

    settings = json.loads(os.environ[_SETTINGS])
    return sharing_loop(Tally(settings["counts"], settings["workers"]))


def end_with_parent() -> None:
    """Stop this process when the one that started it has ended, also by SIGKILL.

    Workers that outlived it would keep the address, and no other service could be started there.
    """
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="dxml-parent", daemon=True).start()

"""``dxml serve``."""

from __future__ import annotations

from pathlib import Path

import typer

from dxml._cli._options import MODEL, QUIET, RAY

__all__ = ["serve"]


def serve(
    model: Path = MODEL,
    host: str = typer.Option(
        "127.0.0.1", "--host", metavar="NAME", help="The address to listen at."
    ),
    port: int = typer.Option(8000, "--port", metavar="N", min=1, max=65535, help="The port."),
    workers: int = typer.Option(
        1, "--workers", metavar="N", min=1, help="Processes; they share lessons."
    ),
    token: str | None = typer.Option(
        None,
        "--token",
        envvar="DXML_TOKEN",
        metavar="TEXT",
        help="Needed to change the model.",
    ),
    tokens: Path | None = typer.Option(
        None, "--tokens", metavar="FILE", help="Tokens with roles, made by dxml token new."
    ),
    private: bool = typer.Option(False, "--private", help="Asking needs a token too."),
    allow_host: list[str] = typer.Option(
        [],
        "--allow-host",
        metavar="NAME",
        help="A name it is asked by; may come again.",
    ),
    allow_origin: list[str] = typer.Option(
        [],
        "--allow-origin",
        metavar="URL",
        help="Pages of this origin may ask it; may come again.",
    ),
    log_level: str = typer.Option(
        "warning", "--log-level", metavar="LEVEL", help="debug, info, warning or error."
    ),
    log_json: bool = typer.Option(False, "--log-json", help="Log in JSON, an object a line."),
    ray: str | None = RAY,
    quiet: bool = QUIET,
) -> None:
    """Serve a model over HTTP: predict, explain, learn, forget.

    What is taught is kept in the model's folder before the answer is sent, and is
    there again after a restart. SIGHUP loads the folder again without dropping a
    request. /docs on the service describes the routes.

    With --ray the processes run on a Ray cluster, whose machines must reach the
    model's folder by the same path.

    Where others can reach the address, a token is needed; in the environment
    nobody sees it in the list of processes.
    """
    from dxml.exceptions import ParameterError, did_you_mean
    from dxml.service._access import check_token
    from dxml.service._logs import LEVELS
    from dxml.service._server import serve as run

    def announce() -> None:
        if not quiet:
            name = f"[{host}]" if ":" in host else host
            typer.echo(f"serving {model} at http://{name}:{port} (routes: /docs); Ctrl-C stops it")

    if log_level not in LEVELS:
        raise ParameterError(f"unknown level {log_level!r}{did_you_mean(log_level, LEVELS)}")
    check_token(host, token, tokens)
    run(
        model,
        host=host,
        port=port,
        workers=workers,
        token=token,
        tokens=tokens,
        private=private,
        allow_hosts=allow_host,
        allow_origins=allow_origin,
        ray=ray,
        log_level=log_level,
        log_json=log_json,
        announce=announce,
    )

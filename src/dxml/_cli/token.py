"""``dxml token``: who may ask and teach a service."""

from __future__ import annotations

from pathlib import Path

import typer

from dxml._cli._options import QUIET

__all__ = ["app"]

app = typer.Typer(help="Tokens of a service: make, list, revoke.", no_args_is_help=True)
FILE = typer.Option(..., "--tokens", metavar="FILE", help="The file of dxml serve --tokens.")


@app.command()
def new(
    tokens: Path = FILE,
    role: str = typer.Option(..., "--role", metavar="ROLE", help="read, teach or admin."),
    name: str | None = typer.Option(
        None, "--name", metavar="TEXT", help="Of whom it is for; made up by default."
    ),
    quiet: bool = QUIET,
) -> None:
    """Make a token, print it, and keep its hash.

    It is printed this once: the file has its hash alone. read may ask, teach may
    also teach and take back, admin may also load another model. Services that
    run with this file know the token at once.
    """
    from dxml.exceptions import ParameterError, did_you_mean
    from dxml.service._tokens import ROLES, new_token

    found = next((each for each in ROLES if each == role), None)
    if found is None:
        raise ParameterError(f"unknown role {role!r}{did_you_mean(role, ROLES)}")
    token, name = new_token(tokens, found, name)
    typer.echo(token)
    if not quiet:
        typer.echo(f"{tokens} has the hash of the token {name!r}, role {role}", err=True)


@app.command("list")
def list_tokens(tokens: Path = FILE) -> None:
    """The tokens of a file: names, roles, and when they were made."""
    from dxml.service._tokens import read_tokens

    found = read_tokens(tokens)
    for each in found:
        typer.echo(f"{each.made}  {each.role:<5}  {each.name}")
    if not found:
        typer.echo("no tokens")


@app.command()
def revoke(
    name: str = typer.Argument(..., metavar="NAME", help="Of dxml token list."),
    tokens: Path = FILE,
    quiet: bool = QUIET,
) -> None:
    """Take a token back; services that run with this file refuse it at once."""
    from dxml.service._tokens import revoke_token

    revoke_token(tokens, name)
    if not quiet:
        typer.echo(f"revoked {name}")

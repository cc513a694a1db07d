"""What `mkdocs build` does beyond its settings in mkdocs.yml.

The README is the site's first page. The reference gets a page for each public module, made from the
docstrings. Files of the repository that a page links to, such as stored results, come along under
``repository/``. docs/tutorial.ipynb is a page, with the outputs that are stored in it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.resolve()
ROOT = DOCS.parent
README = ROOT / "README.md"
NOTEBOOK = DOCS / "tutorial.ipynb"
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
ROW = re.compile(r"^\| `(dxml[\w.]*)` \| `(\w+)` \| (.+) \|$", re.MULTILINE)
SAME = re.compile(r"the same as in `(dxml[\w.]*)`")


def place(path: Path) -> str:
    """Where a file of the repository stands on the site."""
    if path == README:
        return "index.md"
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return "repository/" + path.relative_to(ROOT).as_posix()


def linked(page: Path) -> list[Path]:
    """The files of the repository outside docs/ that a page links to."""
    targets = [target for target, _ in LINK.findall(page.read_text("utf-8"))]
    there = [(page.parent / target).resolve() for target in targets if ":" not in target]
    return [
        path
        for path in there
        if path.is_file() and path.is_relative_to(ROOT) and not path.is_relative_to(DOCS)
    ]


def all_linked(pages: Iterable[Path]) -> list[Path]:
    """Pages outside docs/, what pages link to there, what that links to, and so on."""
    waiting = list(pages)
    found = {path for path in waiting if not path.is_relative_to(DOCS)}
    while waiting:
        new = set(linked(waiting.pop())) - found
        found |= new
        waiting += [path for path in new if path.suffix == ".md"]
    return sorted(found)


def relinked(markdown: str, page: Path) -> str:
    """The text of a page whose links lead to the places on the site.

    A link to a folder, for which a site has no page, becomes plain text.
    """
    here = os.path.dirname(place(page))

    def replace(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        path = (page.parent / target).resolve()
        if ":" in target or not path.is_relative_to(ROOT):
            return match[0]
        return f"]({os.path.relpath(place(path), here or '.')}{anchor})"

    return LINK.sub(replace, without_folders(markdown, page))


def without_folders(markdown: str, page: Path) -> str:
    def replace(match: re.Match[str]) -> str:
        return match[1] if (page.parent / match[2]).is_dir() else match[0]

    return re.sub(r"\[([^\]]*)\]\(([^)#\s:]+)\)", replace, markdown)


def public_names(table: str) -> dict[str, list[str]]:
    """Module → its public names, from the table of docs/reference.md; each name in one place."""
    modules: dict[str, list[str]] = {}
    for module, name, meaning in ROW.findall(table):
        if not SAME.search(meaning):
            modules.setdefault(module, []).append(name)
    return modules


def module_page(module: str, names: Iterable[str]) -> str:
    """The reference of a module: mkdocstrings puts the docstring of each name in."""
    return "\n\n".join([f"# {module}", *(f"::: {module}.{name}" for name in names)]) + "\n"


def notebook_page(notebook: dict[str, Any]) -> str:
    """The cells of a notebook and what they showed, as a page."""
    blocks = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        blocks.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        blocks += [shown(output) for output in cell.get("outputs", ())]
    return "\n\n".join(blocks) + "\n"


def shown(output: dict[str, Any]) -> str:
    """What a cell showed: HTML where there is some, or the text."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "text/html" in data:
        return f"<div>{''.join(data['text/html'])}</div>"
    return f"```text\n{''.join(data['text/plain']).rstrip()}\n```"


def with_links(table: str) -> str:
    """The table of docs/reference.md, with each name a link to its docstring."""

    def replace(match: re.Match[str]) -> str:
        module, name, meaning = match.groups()
        same = SAME.search(meaning)
        home = same[1] if same else module
        return f"| `{module}` | [`{name}`](reference/{home}.md#{home}.{name}) | {meaning} |"

    return ROW.sub(replace, table)


def on_config(config: Any) -> Any:
    """Put the modules into the navigation."""
    (section,) = (item["Reference"] for item in config.nav if "Reference" in item)
    modules = public_names((DOCS / "reference.md").read_text("utf-8"))
    section += [{module: f"reference/{module}.md"} for module in sorted(modules)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the modules and of the notebook, and the files that pages link to."""
    from mkdocs.structure.files import File, InclusionLevel

    for module, names in public_names((DOCS / "reference.md").read_text("utf-8")).items():
        text = module_page(module, names)
        files.append(File.generated(config, f"reference/{module}.md", content=text))
    text = notebook_page(json.loads(NOTEBOOK.read_text("utf-8")))
    files.append(File.generated(config, "notebook.md", content=text))
    for path in all_linked([README, *sorted(DOCS.rglob("*.md"))]):
        file = File.generated(config, place(path), abs_src_path=str(path))
        file.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead the links of a page to the places on the site."""
    if page.file.src_uri == "reference.md":
        return with_links(markdown)
    if page.file.abs_src_path is None:  # made by this hook
        return markdown
    return relinked(markdown, Path(page.file.abs_src_path).resolve())

"""What MkDocs does beside the pages of docs/: hooks of mkdocs.yml.

The site has a page for each module of the public interface, made from docstrings, and one for each
file outside of docs/ that a page links to, so that no link leaves the version that it describes.
Diagrams are pictures, so that a browser needs neither a network nor Mermaid's 3 MB of JavaScript.
"""

from __future__ import annotations

import json
import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import mermaidx
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from docs import api
from tools.pages import DOCS, LINK, ROOT, links

_NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
_LANGUAGES = {"": "text", "cfg": "ini", "hpp": "cpp", "py": "python", "sbatch": "sh", "urdf": "xml"}
"""By a file's ending, where that is not the language's name."""


_DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_THEMES = {"light": "default", "dark": "dark"}
"""Of Mermaid, by the site's colours."""


def homes() -> dict[tuple[str, str], str]:
    """The module on whose page a definition stands, by the module that defines it and its name."""
    found: dict[tuple[str, str], str] = {}
    for room in api.ROOMS:  # the first one repeats names of others
        for name in api.public_names(room):
            if (home := defined(room, name)) is not None:
                found[home] = room
    return found


def defined(room: str, name: str) -> tuple[str, str] | None:
    """The module that defines a public name, and its name there; None: another package does."""
    found = api.definition(room, name)
    return found and (found.module, getattr(found.node, "name", name))


def api_page(room: str, names: list[tuple[str, str]]) -> str:
    """The page of a public module."""
    about = api.section(room).split("\n\n")[1].replace("](", "](../")
    blocks = [f"::: {module}.{name}\n" for module, name in names]
    return "\n".join([f"# {room}\n\n{about}\n", *blocks])


def place(file: Path) -> str:
    """Where a file of the repository is in the sources of the site."""
    if file.is_relative_to(DOCS) and file.suffix != ".py":
        return str(file.relative_to(DOCS))
    inside = f"code/{file.relative_to(ROOT)}"
    return f"{inside}/index.md" if file.is_dir() else f"{inside.removesuffix('.md')}.md"


def code_page(file: Path) -> str:
    """The page of a file or folder outside of docs/, not yet with the site's links."""
    name = file.relative_to(ROOT)
    if file.is_dir():
        names = sorted(each.name for each in file.glob("[!_.]*"))
        return "\n".join([f"{_NOT_SEARCHED}# {name}/\n", *(f"- `{each}`" for each in names)])
    text = file.read_text()
    if file.suffix == ".md":
        return text
    fence = "`" * max(map(len, ["``", *re.findall("`+", text)])) + "`"
    language = _LANGUAGES.get(file.suffix[1:], file.suffix[1:])
    return f"{_NOT_SEARCHED}# {name}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def outside() -> set[Path]:
    """Files and folders outside of docs/ that pages lead to."""
    found, ahead = set[Path](), sorted(DOCS.rglob("*.md"))
    while ahead:
        for link in links(ahead.pop()):
            if place(link.file).startswith("code/") and link.file not in found:
                found.add(link.file)
                ahead += [link.file] if link.file.suffix == ".md" else []
    return found


def diagram(source: str, colors: str) -> str:
    """Where the picture of a diagram is in the site."""
    return f"diagrams/{sha256(source.encode()).hexdigest()[:12]}-{colors}.svg"


def shown_diagram(source: str, page: str) -> str:
    """The pictures of a diagram, of which a reader of the page sees that of the present colours."""
    title = re.search(r"^\s*accTitle: (.+)$", source, re.MULTILINE)
    if title is None:
        raise ValueError(f"{page}: expected a line 'accTitle: ...' in the diagram\n{source}")
    here = os.path.dirname(page) or "."
    files = {colors: os.path.relpath(diagram(source, colors), here) for colors in _THEMES}
    return "\n".join(f"![{title[1]}]({file}#only-{colors})" for colors, file in files.items())


def on_config(config: MkDocsConfig) -> None:
    """Put the pages of the public interface into the navigation."""
    pages = [f"reference/api/{room}.md" for room in sorted(set(homes().values()))]
    reference = next(group["Reference"] for group in config.nav or () if "Reference" in group)
    reference[reference.index("reference/api.md")] = {
        "Public interface": ["reference/api.md", *pages]
    }


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages that are generated."""
    rooms: dict[str, list[tuple[str, str]]] = {}
    for home, room in homes().items():
        rooms.setdefault(room, []).append(home)
    for room, names in rooms.items():
        files.append(
            File.generated(config, f"reference/api/{room}.md", content=api_page(room, names))
        )
    for markdown in DOCS.rglob("*.md"):
        for source in _DIAGRAM.findall(markdown.read_text()):
            for colors, theme in _THEMES.items():
                svg = mermaidx.render(source, theme=theme).svg()
                files.append(File.generated(config, diagram(source, colors), content=svg))
    for file in outside():
        page = File.generated(
            config, place(file), content=code_page(file), inclusion=InclusionLevel.NOT_IN_NAV
        )
        files.append(page)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to where the site has the files, and names to their docstrings."""
    source = page.file.src_uri
    if source.startswith("reference/api/"):
        return markdown
    at = ROOT / source.removeprefix("code/") if source.startswith("code/") else DOCS / source
    if source == "reference/api.md":
        markdown = _linked_names(markdown)
    markdown = _DIAGRAM.sub(lambda block: shown_diagram(block[1], source), markdown)

    def moved(link: re.Match[str]) -> str:
        file = (at.parent / link[1]).resolve()
        if not link[1] or not file.is_relative_to(ROOT) or not file.exists():
            return link[0]
        target = os.path.relpath(place(file), os.path.dirname(source) or ".")
        return f"]({target}#{link[2]})" if link[2] else f"]({target})"

    return "\n".join(_cells(LINK.sub(moved, line)) for line in markdown.splitlines())


def _cells(line: str) -> str:
    """A line, in code within tables without the backslashes that only GitHub needs."""
    if not line.startswith("|"):
        return line
    return re.sub(r"`[^`]+`", lambda code: code[0].replace(r"\|", "|"), line)


def _linked_names(markdown: str) -> str:
    """The page of the public interface, with links from its names to their docstrings."""
    room, known, lines = "", homes(), []
    for line in markdown.splitlines():
        room = line.removeprefix("## ") if line.startswith("## ") else room
        row = re.match(r"\| `(\w+)[^`]*` ", line)
        if row and (home := defined(room, row[1])) is not None:
            call = row[0].removeprefix("| ").strip()
            to = f"api/{known[home]}.md#{'.'.join(home)}"
            line = f"| [{call}]({to}) {line[row.end() :]}"
        lines.append(line)
    return "\n".join(lines)


def on_page_content(html: str, **_: Any) -> str:
    """Let a browser load pictures when they come into sight, all but a page's first one."""
    first, tag, others = html.partition("<img ")
    return first + tag + others.replace("<img ", '<img loading="lazy" ')


def on_post_build(config: MkDocsConfig) -> None:
    """Write the list of versions beside this one, and lead the site's root to the newest."""
    site = Path(config.site_dir)
    known = [index.parent.name for index in site.parent.glob("*/index.html")]
    known.sort(key=lambda version: [int(part) for part in version.split(".")], reverse=True)
    versions = [{"version": each, "title": each, "aliases": []} for each in known]
    (site.parent / "versions.json").write_text(json.dumps(versions, indent=1))
    (site.parent / "index.html").write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0; url={known[0]}/">'
        f'<a href="{known[0]}/">crazyflow_ros {known[0]}</a>\n'
    )

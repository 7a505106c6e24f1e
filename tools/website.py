"""Builds the website from the pages of ``docs/``, the op table and the docstrings, and checks it.

    python tools/website.py            # build into build/site/html, warnings are errors; then look for dead links
    python tools/website.py --look     # also open every page in a headless Chromium, and search
    python tools/website.py --links    # only look for dead links in what is built

``pip install '.[docs]'`` installs what it needs. Pages are collected in ``build/site/source``: those of ``docs/`` with
the places they have on the site, ``bench/RESULTS.md``, the reference (``tools/website_reference.py``), ``docs/how`` and
``examples/gallery``. Their links are changed accordingly. Open ``build/site/html/index.html``: no server is needed.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
if any((ROOT / "taeda" / "_core").glob("tensor*.so")):
    sys.path.insert(0, str(ROOT))

BUILD = ROOT / "build" / "site"
SOURCE, HTML = BUILD / "source", BUILD / "html"

#: Pages of docs/ that do not stand among the guides, and pages from elsewhere: where they are on the site.
PLACES = {
    "docs/README.md": "index",
    "README.md": "index",
    "docs/reference.md": "reference/ops",
    "docs/canonical.md": "reference/canonical",
    "docs/array-api.md": "reference/array-api",
    "docs/export-format.md": "reference/export-format",
    "docs/path.md": "how/path",
    "docs/devices.md": "how/devices",
    "docs/kernels.md": "how/kernels",
    "docs/conformance.md": "measurements/conformance",
    "docs/features.md": "features",
    "docs/tour.py": "first/tour",
    "bench/RESULTS.md": "measurements/speed",
    "CHANGELOG.md": "notes/changelog",
    "CONTRIBUTING.md": "notes/contributing",
}
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(\))")


def places() -> dict[str, str]:
    """Each file of the repository that has a page, and the page's file on the site."""
    found = {origin: f"{page}.md" for origin, page in PLACES.items()}
    docs = ROOT / "docs"
    for path in sorted(docs.glob("*.md")):
        found.setdefault(f"docs/{path.name}", f"guides/{path.name}")
    for folder in ("first", "how", "notes"):
        for path in sorted((docs / folder).glob("*.md")):
            name = "index.md" if path.name == "README.md" else path.name
            found[f"docs/{folder}/{path.name}"] = f"{folder}/{name}"
    for path in sorted((ROOT / "examples").glob("*.py")):
        found[f"examples/{path.name}"] = f"gallery/{path.stem}.md"
    return found


def relinked(text: str, origin: str, page: str, pages: dict[str, str]) -> str:
    """The text of ``origin`` with its links as they are on the site, where it is ``page``. Files that have no page are
    copied, and can be downloaded."""

    def new(match: re.Match[str]) -> str:
        target, _, anchor = match[2].partition("#")
        if "://" in target or target.startswith("mailto:") or not target:
            return match[0]
        path = os.path.normpath(os.path.join(os.path.dirname(origin), target))
        if path in ("docs/notes", "docs/how", "docs/first"):
            path += "/README.md"
            to = f"{Path(path).parent.name}/index.md"
        elif path in pages:
            to = pages[path]
        elif path.removesuffix("/README.md") == "examples/gallery":
            to = "gallery/index.md"
        elif (ROOT / path).is_file():
            to = f"files/{path}"
            (SOURCE / to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, SOURCE / to)
        elif (ROOT / path).is_dir():
            return re.match(r"!?\[(.*)\]\($", match[1], re.S)[1]  # type: ignore[index]
        else:
            raise SystemExit(f"{origin}: a link to {target}, which does not exist")
        there = os.path.relpath(to, os.path.dirname(page) or ".")
        return f"{match[1]}{there}{'#' + anchor if anchor else ''}{match[3]}"

    fenced = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
    return "".join(part if part.startswith("```") else LINK.sub(new, part) for part in fenced)


def contents(text: str, folder: str, pages: dict[str, str]) -> str:
    """The table of contents of a section: the pages that its text links, in that order, then the others."""
    inside = {os.path.basename(page) for page in pages.values() if os.path.dirname(page) == folder} - {"index.md"}
    linked = [link for match in LINK.finditer(text) if (link := match[2]) in inside]
    names = dict.fromkeys([*linked, *sorted(inside)])
    return "\n```{toctree}\n:hidden:\n\n" + "".join(f"{name[:-3]}\n" for name in names) + "```\n"


def program_page(path: Path) -> str:
    """A page that shows a program: its docstring, then the code."""
    text = path.read_text()
    doc = ast.get_docstring(ast.parse(text)) or path.stem
    first, _, rest = doc.partition("\n")
    code = re.sub(r'^""".*?"""\n+', "", text, count=1, flags=re.S)
    title = re.split(r"(?<=\w)[:.](?:\s|$)", first)[0].replace("``", "`")
    shown = f"{first}\n{rest}".replace("``", "`")
    return f"# {title}\n\n`{path.relative_to(ROOT)}`\n\n{shown}\n\n````python\n{code}````\n"


#: Sphinx-Gallery runs a program without its docstring, which programs show as their help.
HIDDEN = "# sphinx_gallery_start_ignore\n__doc__ = {!r}\n# sphinx_gallery_end_ignore\n"


def gallery_program(text: str) -> str:
    """A gallery program whose docstring begins with a title, as Sphinx-Gallery requires."""
    doc = ast.get_docstring(ast.parse(text), clean=False)
    if doc is None:
        raise SystemExit(f"a program of the gallery without a docstring: {text[:60]!r}")
    lines = doc.strip().splitlines()
    if len(lines) < 2 or not re.fullmatch(r"([=\-~*#])\1+", lines[1].strip()):
        title = lines[0].rstrip(".").partition(": ")[0]
        lines = [title, "=" * len(title), "", *lines]
    before, code = text.split(doc, 1)
    quotes, _, rest = code.lstrip().partition("\n")
    return f"{before}{chr(10).join(lines)}\n{quotes}\n{HIDDEN.format(doc.strip())}{rest}"


def short(*_: object) -> list[str]:
    """The arguments with which Sphinx-Gallery runs the programs."""
    return ["--short"]


def assemble() -> None:
    """Collect the sources of all pages."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.rmtree(BUILD / "gallery-programs", ignore_errors=True)
    SOURCE.mkdir(parents=True)
    site = ROOT / "docs" / "site"
    shutil.copyfile(site / "conf.py", SOURCE / "conf.py")
    shutil.copytree(site / "static", SOURCE / "_static")
    for picture in (ROOT / "docs").glob("speed*.svg"):
        shutil.copyfile(picture, SOURCE / "_static" / picture.name)
    pages = places()
    for origin, page in pages.items():
        target = SOURCE / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.endswith(".py"):
            target.write_text(program_page(ROOT / origin))
        elif page != "index.md" and (ROOT / origin).exists():
            text = relinked((ROOT / origin).read_text(), origin, page, pages)
            target.write_text(
                text + contents(text, os.path.dirname(page), pages) if page.endswith("/index.md") else text
            )
    for path in site.rglob("*.md"):  # the site's own: the front page and those that open a section
        page = path.relative_to(site).as_posix()
        if (SOURCE / page).exists():  # the folder has a README.md of its own
            continue
        (SOURCE / page).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / page).write_text(relinked(path.read_text(), f"docs/site/{page}", page, pages))
    index = SOURCE / "guides" / "index.md"
    listed = re.findall(r"[\w-]+(?=>?$)", index.read_text(), re.M)
    more = [p.stem for p in sorted(index.parent.glob("*.md")) if p.stem not in [*listed, "index"]]
    if more:
        with index.open("a") as file:
            file.write("\n```{toctree}\n:caption: More\n:maxdepth: 1\n\n" + "\n".join(more) + "\n```\n")
    programs = sorted((ROOT / "examples" / "gallery").glob("*.py"))
    if programs:
        there = BUILD / "gallery-programs"
        shutil.copytree(ROOT / "examples" / "gallery", there, ignore=shutil.ignore_patterns("__pycache__", "*.md"))
        for path in there.glob("*.py"):
            path.write_text(gallery_program(path.read_text()))
        (there / "GALLERY_HEADER.rst").write_text("Programs with pictures\n======================\n")
        index = SOURCE / "gallery" / "index.md"
        index.write_text(index.read_text().replace("\n*\n", "\nprograms/index\n*\n", 1))

    import website_reference

    print(f"{website_reference.write(SOURCE / 'reference')} names in the reference")


def build() -> int:
    """Run Sphinx. Its exit code: warnings are errors."""
    from sphinx.cmd.build import main as sphinx

    shutil.rmtree(HTML, ignore_errors=True)
    jobs = str(min(4, len(os.sched_getaffinity(0))))
    return sphinx(["-q", "-W", "--keep-going", "-j", jobs, "-d", str(BUILD / "doctrees"), "-E", str(SOURCE), str(HTML)])


class Links(HTMLParser):
    """The ids, and the targets of links, pictures, scripts and styles of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids |= {value for key in ("id", "name") if (value := found.get(key))}
        key = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "srcset"}.get(tag)
        if key and (value := found.get(key)):
            self.targets.append(value)


def built(folder: Path) -> list[Path]:
    """The pages of the site, without the templates among the theme's files."""
    return [path for path in sorted(folder.rglob("*.html")) if not path.is_relative_to(folder / "_static")]


def dead_links() -> list[str]:
    """The links within the site that lead nowhere: to no file, or to no part of a page."""
    parsed = {}
    for path in built(HTML):
        parsed[path] = Links()
        parsed[path].feed(path.read_text())
    dead, count = [], 0
    for path, links in parsed.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            if not there.is_file():
                dead.append(f"{path.relative_to(HTML)}: {target}: no such file")
            elif fragment and there in parsed and fragment not in parsed[there].ids:
                dead.append(f"{path.relative_to(HTML)}: {target}: no such part")
    print(f"{len(parsed)} pages, {count} links, {len(dead)} dead")
    return dead


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--look", action="store_true", help="open every page in Chromium")
    parser.add_argument("--links", action="store_true", help="do not build")
    parser.add_argument("--shots", type=Path, help="with --look: write pictures of some pages to this folder")
    asked = parser.parse_args()
    start = time.perf_counter()
    code = 0
    if not asked.links:
        assemble()
        code = build()
        print(f"built in {time.perf_counter() - start:.0f} s: {HTML / 'index.html'}")
    dead = dead_links()
    print("\n".join(dead[:50]))
    if asked.look:
        import website_look

        code |= website_look.look(HTML, asked.shots)
    return int(bool(code or dead))


if __name__ == "__main__":
    sys.exit(main())

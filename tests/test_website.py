"""What the website is made from, without building it: links, titles of programs, the search for dead links, the picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1] / "tools"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(TOOLS)
    import features
    import website


def test_links_lead_to_the_places_on_the_site(monkeypatch, tmp_path):
    monkeypatch.setattr(website, "SOURCE", tmp_path)
    pages = website.places()

    def link(target, origin="docs/compile.md"):
        return website.relinked(f"[x]({target})", origin, pages[origin], pages)[4:-1]

    assert link("export.md#fewer-ops-no-writes") == "export.md#fewer-ops-no-writes"
    assert link("../bench/RESULTS.md") == "../measurements/speed.md"
    assert link("reference.md") == "../reference/ops.md"
    assert link("../compile.md", "docs/first/gpu.md") == "../guides/compile.md"
    assert link("https://x.org/a.md") == "https://x.org/a.md" and link("#part") == "#part"
    assert link("../examples/ddp.sbatch") == "../files/examples/ddp.sbatch"
    assert (tmp_path / "files/examples/ddp.sbatch").exists()
    fenced = "```\n[x](no.md)\n```"
    assert website.relinked(fenced, "docs/compile.md", "guides/compile.md", pages) == fenced
    with pytest.raises(SystemExit, match=r"no\.md"):
        link("no.md")


def test_links_in_all_pages_lead_to_files(monkeypatch, tmp_path):
    monkeypatch.setattr(website, "SOURCE", tmp_path)
    pages = website.places()
    for origin, page in pages.items():
        if origin.endswith(".md"):
            text = website.relinked((website.ROOT / origin).read_text(), origin, page, pages)
            for match in website.LINK.finditer(text):
                target = match[2].partition("#")[0]
                if target.endswith(".md") and "://" not in target:
                    there = os.path.normpath(os.path.join(os.path.dirname(page), target))
                    assert there in pages.values() or there.endswith("index.md"), (origin, match[2])


def test_programs_of_the_gallery_get_a_title():
    """And keep their docstring, and the place of their code."""
    for text in ('"""A VAE: digits."""\nx = __doc__\n', '"""A VAE\n=====\n\nText.\n"""\nx = __doc__\n'):
        made = website.gallery_program(text)
        assert made.startswith('"""A VAE\n=====\n\n')
        before, after = {}, {}
        exec(text, before)
        exec(made, after)
        assert after["x"] == before["x"].strip()


def test_dead_links_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr(website, "HTML", tmp_path)
    (tmp_path / "a.html").write_text(
        '<p id="p"><a href="b.html#q">1</a><a href="b.html#r">2</a><a href="c.html">3</a></p>'
    )
    (tmp_path / "b.html").write_text(
        '<h1 id="q"><a href="a.html">4</a><img src="no.png"><a href="https://x.org">5</a></h1>'
    )
    assert website.dead_links() == [
        "a.html: b.html#r: no such part", "a.html: c.html: no such file", "b.html: no.png: no such file"
    ]  # fmt: skip


def test_the_picture_of_speed_is_that_of_the_results():
    done = subprocess.run([sys.executable, TOOLS / "speed_picture.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_programs_do_what_the_page_of_features_says():
    import importlib.util

    packages = ("taeda", "torch") if importlib.util.find_spec("torch") else ("taeda",)
    assert features.wrong(packages) == []

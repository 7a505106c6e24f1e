"""The programs of the gallery run in their short setting, learn what they say, and save a picture."""

import re
import runpy
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).resolve().parents[1] / "examples" / "gallery"

#: For each program what its last line, ``result: name value ...``, must hold. The bars are far from both what an
#: untrained model gives and what was measured.
HOLDS = {
    "adversarial": lambda clean, attacked, hardened: (
        clean > 0.9 and attacked < clean - 0.2 and hardened > attacked + 0.1
    ),
    "attention_maps": lambda one, two: two > 0.5 and two > 1.3 * one,
    "automaton": lambda once, later: once > 0.99 and later > 0.9,
    "contrastive": lambda pixels, features, loss: features > 0.6 and loss < 4,
    "diffusion": lambda before, after: after < 0.7 * before,
    "distance_field": lambda right, error: right > 0.97 and error < 0.05,
    "flow": lambda flow, gauss, inverse: flow > gauss + 0.4 and inverse < 1e-3,
    "forecasting": lambda error, simple, inside: error < 0.95 * simple and 0.5 < inside < 0.97,
    "gan": lambda clusters, inside: clusters >= 6 and inside > 0.4,
    "graph_network": lambda graph, alone: graph > 0.9 and graph > alone + 0.1,
    "hmc": lambda accepted, near, far, fit: 0.4 < accepted < 1 and far > 3 * near and fit < 0.2,
    "keywords": lambda quiet, loud: quiet > 0.8 and loud > 0.4,
    "maml": lambda before, after, untrained: after < 0.9 * before and after < 0.8 * untrained,
    "mixture": lambda mixture, single, busiest: mixture < 0.8 * single and busiest < 0.6,
    "neural_ode": lambda apart, standing: apart < 0.5 * standing,
    "pinn": lambda error: error < 0.2,
    "recommender": lambda error, simple: error < 0.5 * simple,
    "texture": lambda ratio: ratio < 0.02,
    "translate": lambda right, characters: characters > 0.6,
    "unet": lambda disc, square: disc > 0.5 and square > 0.5,
}
#: Quick ones that between them use backward, func and sparse tensors. All others are long together.
USUAL = ("graph_network", "hmc", "recommender")


def test_every_program_is_checked_and_listed():
    programs = sorted(path.stem for path in GALLERY.glob("*.py"))
    assert programs == sorted(HOLDS)
    assert re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\)", (GALLERY / "README.md").read_text(), re.M) == programs
    assert all("\nTime: " in (GALLERY / f"{name}.py").read_text() for name in programs)


@pytest.mark.parametrize(
    "name", [name if name in USUAL else pytest.param(name, marks=pytest.mark.sweep) for name in HOLDS]
)
def test_program(name, monkeypatch, capsys, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    if name in ("adversarial", "contrastive"):
        pytest.importorskip("sklearn")
    matplotlib.use("Agg")
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [name, "--short", "--picture", str(picture)])
    runpy.run_path(str(GALLERY / f"{name}.py"), run_name="__main__")
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"result:( [a-z]+ -?[\d.]+)+", last), last
    words = last.split()[1:]
    result = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    assert HOLDS[name](**result), last
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5000

"""Sobol' sequences are PyTorch's, digit by digit."""

import pytest

import taeda

torch = pytest.importorskip("torch")

from . import peer  # noqa: E402


@pytest.mark.parametrize("dimension", [1, 2, 7, 60, 1024])
@pytest.mark.parametrize("scramble", [False, True])
def test_points(dimension, scramble):
    found = []
    for f in (torch, taeda):
        engine = f.quasirandom.SobolEngine(dimension, scramble=scramble, seed=5)
        drawn = [engine.draw(1), engine.draw(3), engine.draw_base2(2), engine.fast_forward(9).draw(4, dtype=f.float64)]
        drawn.append(engine.reset().draw_base2(3))
        f.manual_seed(3)
        drawn.append(f.quasirandom.SobolEngine(dimension, scramble=scramble).draw(5))
        found.append((drawn, repr(engine)))
    peer.close(found[1][0], found[0][0], rtol=0, atol=0)
    assert found[1][1] == found[0][1]


def test_errors():
    for f in (torch, taeda):
        with pytest.raises(ValueError):
            f.quasirandom.SobolEngine(0)
        engine = f.quasirandom.SobolEngine(2)
        engine.draw(3)
        with pytest.raises(ValueError):
            engine.draw_base2(3)
    with pytest.raises(ValueError):
        taeda.quasirandom.SobolEngine(taeda.quasirandom.SobolEngine.MAXDIM + 1)

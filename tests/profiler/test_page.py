"""``profile.export_html``: the data of the page is what was recorded."""

import json
import re

import pytest

import taeda
from taeda import nn
from taeda.profiler import profile, record_function


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    taeda.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)), taeda.randn(64, 16)
    options = {"profile_memory": True, "record_shapes": True, "with_modules": True, "with_flops": True}
    with profile(**options) as prof, record_function("a <step> of </script>"):
        model(x).sum().backward()
    path = tmp_path_factory.mktemp("page") / "profile.html"
    prof.export_html(path, "six & <seven>")
    return prof, path.read_text()


def data(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def test_every_event_is_there(recorded):
    prof, page = recorded
    found = data(page)
    lane = found["lanes"][0]
    assert lane["name"] == "thread 1" and [lane["name"] for lane in found["lanes"]][1] == "kernels"
    assert [found["names"][box[0]] for box in lane["boxes"]] == [event.name for event in prof.events()]
    assert sum(len(lane["boxes"]) for lane in found["lanes"]) == len(prof.events()) + len(prof.kernels())
    kinds = {found["names"][box[0]]: box[4] for box in lane["boxes"]}
    assert kinds["aten::addmm"] == 0 and kinds["a <step> of </script>"] == 2 and kinds["nn.Module: Sequential_0"] == 3
    assert 1 in kinds.values()
    assert any("sizes: [[64, 16]" in line for about in found["about"] for line in about)


def test_boxes_lie_inside_those_above(recorded):
    lane = data(recorded[1])["lanes"][0]["boxes"]
    above = []
    for _, start, length, depth, _, _ in lane:
        del above[depth:]
        assert len(above) == depth
        if above:
            assert above[-1][0] - 0.002 <= start and start + length <= above[-1][1] + 0.002
        above.append((start, start + length))


def test_memory_and_text(recorded):
    prof, page = recorded
    found = data(page)
    assert max(n for _, n in found["memory"]) == max(e.allocated for e in prof.events() if e.self_cpu_memory_usage)
    assert "<title>six &amp; &lt;seven&gt;</title>" in page and page.count("</script>") == 2
    assert "http" not in page  # nothing is loaded


def test_without_memory_and_without_a_profile(tmp_path):
    with profile() as prof:
        taeda.ones(3).exp()
    prof.export_html(tmp_path / "p.html")
    assert data((tmp_path / "p.html").read_text())["memory"] == []
    with pytest.raises(AssertionError, match="stopped"):
        profile().export_html(tmp_path / "q.html")

"""``taeda.utils.draw``: boxes, wires and folding of models and graphs, and pictures in which nothing overlaps."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

import taeda
from taeda import nn
from taeda.utils import draw
from taeda.utils._draw import _cut, _walk
from taeda.utils._layout import Box, _place


class Attention(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (p.view(n, t, self.heads, -1).transpose(1, 2) for p in self.qkv(x).split(c, 2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln, self.attention, self.mlp = nn.LayerNorm(width), Attention(width), nn.Linear(width, width)

    def forward(self, x):
        x = x + self.attention(self.ln(x))
        return x + self.mlp(x)


class Gpt(nn.Module):
    def __init__(self, layers=12, width=8):
        super().__init__()
        self.tokens, self.places = nn.Embedding(10, width), nn.Embedding(6, width)
        self.h = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, 10, bias=False)

    def forward(self, index):
        x = self.tokens(index) + self.places(taeda.arange(index.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(x)


class Bottleneck(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, 4, 1), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, outputs, 3, padding=1), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        same = inputs == outputs
        self.downsample = None if same else nn.Sequential(nn.Conv2d(inputs, outputs, 1), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


def resnet():
    layers = [nn.Sequential(Bottleneck(4 * k, 8 * k), *(Bottleneck(8 * k, 8 * k) for _ in range(3))) for k in (1, 2)]
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3)
    )


def tokens():
    return taeda.zeros(2, 6, dtype=taeda.int64)


def box(drawing, start):
    found = [b for b in _walk(drawing.root) if b.title.startswith(start)]
    assert len(found) == 1, (start, [b.title for b in _walk(drawing.root)])
    return found[0]


def wires(drawing, depth=None):
    _, found = _cut(drawing.root, drawing.wires, drawing.deepest if depth is None else depth)
    return {(w.source.title, w.target.title, w.label.replace("\N{MULTIPLICATION SIGN}", "x")) for w in found}


def spots(drawing, depth):
    """All boxes of a picture: (box, left, top, right, bottom)."""
    root, found = _cut(drawing.root, drawing.wires, depth)
    homes = {b: set(b.leaves()) for b in _walk(root)}
    made = []

    def visit(spot, x, y):
        made.append((spot.box, x - spot.width / 2, y, x + spot.width / 2, y + spot.height))
        for inner in spot.spots:
            visit(inner, x + inner.x, y + inner.y)

    visit(_place(root, found, homes), 0.0, 0.0)
    return made


def check_no_overlaps(drawing, depth):
    made = spots(drawing, depth)
    places = {b: place for b, *place in made}
    for outer, left, top, right, bottom in made:
        for inner in outer.inside:
            a, b, c, d = places[inner]
            assert left <= a and top <= b and c <= right and d <= bottom, (outer.title, inner.title)
        for one, other in itertools.combinations(outer.inside, 2):
            a, b, c, d = places[one]
            e, f, g, h = places[other]
            assert c <= e + 1 or g <= a + 1 or d <= f or h <= b, (one.title, other.title)


def test_chain_of_layers():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2))
    drawing = draw(model, taeda.randn(4, 3, 8, 8))
    assert wires(drawing) == {
        ("input", "0: Conv2d", "4x3x8x8 f32"), ("0: Conv2d", "1: ReLU", "4x8x6x6 f32"),
        ("1: ReLU", "2: Flatten", "4x8x6x6 f32"), ("2: Flatten", "3: Linear", "4x288 f32"),
        ("3: Linear", "output", "4x2 f32"),
    }  # fmt: skip
    conv = box(drawing, "0: Conv2d")
    assert conv.lines[0] == "3, 8, kernel_size=(3, 3)"
    assert re.fullmatch(r"224 parameters · 62\.2 kflop · [\d.]+ [mu]s · [\d.]+ KB", conv.lines[1])
    check_no_overlaps(drawing, 1)


def test_repeated_layers_are_one_box():
    drawing = draw(Gpt(), tokens())
    block = box(drawing, "h.0 ... 11: Block")
    assert block.times == 12
    assert "each" in block.lines[0]
    assert sum(b.times == 12 for b in _walk(drawing.root)) == 1
    links = wires(drawing)
    assert ("ln: LayerNorm", "qkv: Linear", "2x6x8 f32") in links
    assert ("add", "head: Linear", "2x6x8 f32") in links  # out of the last
    assert ("arange", "places: Embedding", "6 i64") in links
    assert ("h.0 ... 11: Block", "head: Linear", "2x6x8 f32") in wires(drawing, 1)
    for depth in range(1, drawing.deepest + 1):
        check_no_overlaps(drawing, depth)
    svg = drawing.svg()  # titles lie on the lines that cross them
    assert svg.rindex("<path") < svg.index(">h: ModuleList<" if ">h: ModuleList<" in svg else ">h.0 ... 11: Block<")


def test_branches():
    drawing = draw(resnet(), taeda.randn(2, 3, 8, 8))
    repeated = [b for b in _walk(drawing.root) if b.times == 3]
    assert [b.title for b in repeated] == ["1 ... 3: Bottleneck"] * 2
    links = wires(drawing)
    assert {("bn2: BatchNorm2d", "add", "2x8x8x8 f32"), ("1: BatchNorm2d", "add", "2x8x8x8 f32")} <= links
    for depth in range(1, drawing.deepest + 1):
        check_no_overlaps(drawing, depth)


def test_layers_that_differ_are_not_folded():
    drawing = draw(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 5), nn.Linear(5, 5)), taeda.randn(2, 4))
    assert [b.times for b in _walk(drawing.root)] == [1] * 6
    drawing = draw(nn.Sequential(*[nn.Linear(4, 4) for _ in range(3)]), taeda.randn(2, 4))
    assert box(drawing, "0 ... 2: Linear").times == 3


def test_boxes_wired_otherwise_are_not_folded():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.ModuleList(nn.Linear(2, 2) for _ in range(6))

        def forward(self, x):
            a = self.a
            y = a[1](a[0](x).relu()).relu()
            z = a[3](a[2](y).relu()).relu()
            return a[5](a[4](z).relu()).relu() + y

    drawing = draw(Net(), taeda.ones(1, 2))

    def total(b, times):
        return (times * b.times if b.title.endswith("Linear") else 0) + sum(total(c, times * b.times) for c in b.inside)

    assert total(drawing.root, 1) == 6


class Heads(nn.Module):
    """Two layers on one body whose results do not take the same way."""

    def __init__(self):
        super().__init__()
        self.mean, self.scale = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x, lengths):
        assert max(lengths.tolist()) < 9  # numbers of Python's: no box has this input
        return self.mean(x) + self.scale(x).exp()


def test_heads_that_are_used_otherwise_and_inputs_that_no_op_takes_are_boxes():
    picture = draw(Heads(), taeda.ones(3, 4), taeda.tensor([1, 2]), timed=False)
    assert [b.title for b in picture.root.inside] == [
        "input 0",
        "input 1",
        "mean: Linear",
        "scale: Linear",
        "exp",
        "add",
        "output",
    ]


def test_svg_is_whole_and_escaped():
    class Odd(nn.Module):
        def forward(self, x):
            return x * 2

        def extra_repr(self):
            return "<script>'&\""

    Odd.__name__ = "A<b>&'\""
    drawing = draw(nn.Sequential(Odd(), nn.ReLU()), taeda.ones(2))
    tree = ElementTree.fromstring(drawing.svg())
    texts = ["".join(t.itertext()) for t in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "0: A<b>&'\"" in texts
    assert "<script>" not in drawing.svg() + drawing.html()
    assert drawing._repr_svg_() == drawing.svg()


def test_page_that_folds():
    page = draw(Gpt(3), tokens()).html()

    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.ids, self.links, self.folds = [], set(), set(), 0

        def handle_starttag(self, tag, attrs):
            attrs = dict(attrs)
            self.folds += tag == "details"
            self.ids |= {attrs["id"]} if "id" in attrs else set()
            self.links |= {attrs["href"]} if "href" in attrs else set()
            if tag not in ("meta",):
                self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

        def handle_startendtag(self, tag, attrs):
            pass

    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.folds >= 4  # the model, its block, attention, all of it
    assert reader.links and {link[1:] for link in reader.links} <= reader.ids
    assert "<script" not in page


def test_graph_of_a_loss():
    x, w = taeda.randn(3, 4), taeda.randn(2, 4, requires_grad=True)
    loss = nn.functional.linear(x, w).exp().sum()
    drawing = draw(loss, params={"w": w})
    assert wires(drawing) == {("Linear", "Exp", "3x2 f32"), ("Exp", "Sum", "3x2 f32"), ("Sum", "loss", "scalar f32")}
    exp = box(drawing, "Exp")
    assert re.fullmatch(r"[\d.]+ [mu]s · 24 B kept", exp.lines[-1])
    assert any("w 2\N{MULTIPLICATION SIGN}4 f32" in line for b in _walk(drawing.root) for line in b.lines)
    assert w.grad is None
    loss.backward()  # the graph is still there


def test_graph_with_modules():
    model = Gpt()
    drawing = draw(model, tokens(), graph=True)
    block = box(drawing, "h.0 ... 11: Block")
    assert block.times == 12
    assert {"ln: LayerNorm", "attention: Attention", "mlp: Linear"} <= {b.title for b in block.inside}
    loss = nn.functional.cross_entropy(model(tokens()).flatten(0, 1), taeda.zeros(12, dtype=taeda.int64))
    guessed = draw(loss, params=model)
    assert any(b.title.endswith("attention: Attention") for b in _walk(guessed.root))
    assert any(b.times >= 11 for b in _walk(draw(loss).root))
    for d in (drawing, guessed, draw(loss)):
        check_no_overlaps(d, d.deepest)
    assert all(p.grad is None for p in model.parameters())


def test_leaves_that_are_no_parameters_are_boxes():
    x = taeda.randn(3, requires_grad=True)
    assert ("leaf", "Sin", "3 f32") in wires(draw(x.sin()))


def test_a_graph_that_was_freed_has_no_sizes():
    x = taeda.randn(3, requires_grad=True)
    loss = (x.exp() * x).sum()
    loss.backward()
    assert {(a, b) for a, b, _ in wires(draw(loss))} >= {("Exp", "Mul"), ("Mul", "Sum"), ("leaf", "Mul")}


def test_functions_and_other_outputs():
    def f(a, b):
        return {"sum": a + b, "twice": [a * 2]}

    links = wires(draw(f, taeda.ones(2), taeda.ones(2)))
    assert ("input 0", "add", "2 f32") in links and ("input 1", "add", "2 f32") in links
    assert ("mul", "output", "2 f32") in links
    assert draw(f, taeda.ones(2), taeda.ones(2), timed=False).root.lines == []


def test_dot_text():
    text = draw(Gpt(4), tokens()).dot()
    assert text.startswith("digraph")
    assert text.count("{") == text.count("}")
    assert "h.0 ... 3: Block x 4" in text
    names = set(re.findall(r"^\s*(n\d+) \[", text, re.M))
    used = {n for pair in re.findall(r"(n\d+) -> (n\d+)", text) for n in pair}
    assert used and used <= names


def test_files_and_errors(tmp_path):
    drawing = draw(nn.Linear(2, 2), taeda.ones(1, 2))
    for ending, start in ((".svg", "<svg"), (".html", "<!DOCTYPE"), (".dot", "digraph")):
        drawing.save(tmp_path / f"a{ending}")
        assert (tmp_path / f"a{ending}").read_text().startswith(start)
    with pytest.raises(ValueError, match=r"ends in \.svg, \.html or \.dot, got 'a\.png'"):
        drawing.save("a.png")
    with pytest.raises(ValueError, match="has no graph"):
        draw(taeda.ones(2))
    with pytest.raises(TypeError, match="expected a Module, a function or a tensor, got int"):
        draw(3)


def test_the_model_is_as_before():
    model = resnet()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    taeda.manual_seed(1)
    draw(model, taeda.randn(2, 3, 8, 8, generator=taeda.Generator()), graph=True)
    after = taeda.rand(2)
    taeda.manual_seed(1)
    assert taeda.equal(after, taeda.rand(2))
    assert all(taeda.equal(t, before[name]) for name, t in model.state_dict().items())


def test_layout_of_boxes_made_by_hand():
    """Wires into nested boxes and round them."""
    leaves = [Box(f"b{i}") for i in range(12)]
    root = Box(
        "r", inside=[leaves[0], Box("c", inside=[leaves[1], Box("d", inside=leaves[2:6]), leaves[6]]), *leaves[7:]]
    )
    from taeda.utils._layout import Wire, draw_svg

    links = [
        Wire(leaves[i], leaves[j], "x") for i, j in itertools.combinations(range(12), 2) if (i * 7 + j * 5) % 4 == 0
    ]
    ElementTree.fromstring(draw_svg(root, links))

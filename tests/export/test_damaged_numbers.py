"""Files of exported programs with other numbers in them take no memory and no time that the file does not account for."""

import pytest

PROGRAM = """
import io, random, re, resource, signal, sys, zipfile
import taeda
from taeda import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.LSTM(4, 3, batch_first=True)
        self.register_buffer("e", taeda.ones(1).expand(5))
        self.register_buffer("p", taeda.arange(6))

    def forward(self, x):
        y, _ = self.l(x)
        z = taeda.zeros(2, 3) + taeda.full((3,), 2.0) + taeda.eye(3)[:2]
        return y[:, 0] + z + self.e[:3] + self.p[:3].expand(2, 3)

form, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
written = io.BytesIO()
taeda.export.save(taeda.export.export(Model(), (taeda.ones(2, 5, 4),)), written, format=form)
archive = zipfile.ZipFile(written)
files = {name: archive.read(name) for name in archive.namelist()}
names = [name for name in files if name.endswith("json") and len(files[name]) > 100]

def load(name, text):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as out:
        for k, v in files.items():
            out.writestr(k, text if k == name else v)
    made.seek(0)
    taeda.export.load(made).module()

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
for seed in range(first, last):
    rng = random.Random(seed)
    name = rng.choice(names)
    text = files[name].decode()
    for _ in range(rng.choice((1, 2, 3))):
        a, b = rng.choice([m.span() for m in re.finditer(r"(?<=[\\[ ,:])\\d+(?=[\\],}])", text)])
        text = text[:a] + rng.choice(("3000000000", "100000000", "0", "1", "4294967296")) + text[b:]
    signal.alarm(60)
    try:
        load(name, text)
    except (MemoryError, taeda.OutOfMemoryError) as error:
        print(seed, repr(error))
    except (ValueError, RuntimeError, IndexError, KeyError, TypeError, NotImplementedError):
        pass
    signal.alarm(0)
if form == "pt2" and not first:  # a key with an entry for each dimension before the one that is cut
    text = files["model/models/model.json"].decode()
    at = text.index("aten.slice.Tensor")
    dim = re.compile(r'("name": "dim", "arg": {"as_int": )\\d+').search(text, at)
    try:
        load("model/models/model.json", text[:dim.start()] + dim[1] + "3000000000" + text[dim.end():])
    except ValueError as error:
        assert "dimension 3000000000" in str(error), error
    else:
        print("loaded")
"""


@pytest.mark.parametrize("form", ["pt2", "taeda"])
def test_sample(run_python, form):
    assert run_python(PROGRAM, form, "0", "25") == ""


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["pt2", "taeda"])
def test_sweep(run_python, form):
    assert run_python(PROGRAM, form, "0", "4000", timeout=3600) == ""

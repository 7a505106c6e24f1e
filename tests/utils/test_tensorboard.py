"""``SummaryWriter`` against PyTorch's: what TensorBoard reads back from the files of both."""

import numpy as np
import pytest

import taeda

pytest.importorskip("tensorboard")

from taeda.utils.tensorboard import SummaryWriter

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils.tensorboard")
loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")


PLAIN = np.random.default_rng(0).normal(size=200).astype("float32")
PIXELS = np.random.default_rng(1).random((5, 3, 4, 6)).astype("float32")

CALLS = {
    "scalar": lambda w, t: w.add_scalar("loss", t(PLAIN[:1]), 3, walltime=5.0),
    "scalar_new_style": lambda w, t: w.add_scalar("loss", 0.25, 3, new_style=True),
    "scalar_double": lambda w, t: w.add_scalar("loss", 0.1, 3, new_style=True, double_precision=True),
    "scalars": lambda w, t: w.add_scalars("all/of", {"a": 1, "b": t(PLAIN[3:4])}, 7),
    "tensor": lambda w, t: w.add_tensor("values", t(PLAIN[:6].reshape(2, 3)), 1),
    "histogram": lambda w, t: w.add_histogram("h", t(PLAIN), 2),
    "histogram_bins": lambda w, t: w.add_histogram("h", t(PLAIN), 2, bins="auto", max_bins=4),
    "histogram_raw": lambda w, t: w.add_histogram_raw("h", 0, 3, 4, 6.0, 14.0, [1, 2, 3], [1, 2, 1], 2),
    "image": lambda w, t: w.add_image("i", t(PIXELS[0]), 1),
    "image_hwc": lambda w, t: w.add_image("i", (PIXELS[0] * 255).astype("uint8").transpose(1, 2, 0), dataformats="HWC"),
    "image_hw": lambda w, t: w.add_image("i", t(PIXELS[0, 0]), dataformats="HW"),
    "images": lambda w, t: w.add_images("i", t(PIXELS), 1),
    "text": lambda w, t: w.add_text("t", "some *text*", 4),
    "pr_curve": lambda w, t: w.add_pr_curve("p", (PLAIN > 0).astype(int), np.abs(PLAIN) / 4, 1),
    "custom_scalars": lambda w, t: w.add_custom_scalars(
        {"c": {"one": ["Multiline", ["a", "b"]], "two": ["Margin", ["v", "lo", "hi"]]}}
    ),
    "mesh": lambda w, t: w.add_mesh("m", t(PLAIN[:24].reshape(1, 8, 3)), config_dict={"a": 1}, global_step=1),
}


def read(folder):
    """What the files of a folder say, without the times at which they were written."""
    found = []
    for path in sorted(folder.rglob("*tfevents*")):
        for event in loader.LegacyEventFileLoader(str(path)).Load():
            if event.HasField("summary"):
                found.append((path.parent.relative_to(folder), event.step, event.summary))
    return found


@pytest.mark.parametrize("name", CALLS)
def test_what_is_written(tmp_path, name):
    results = []
    for kind, tensor in ((SummaryWriter, taeda.tensor), (theirs.SummaryWriter, torch.tensor)):
        folder = tmp_path / kind.__module__
        with kind(str(folder)) as writer:
            CALLS[name](writer, tensor)
        results.append(read(folder))
    ours, expected = results
    assert ours and [entry[:2] for entry in ours] == [entry[:2] for entry in expected]
    for (_, _, mine), (_, _, want) in zip(ours, expected, strict=True):
        for a, b in zip(mine.value, want.value, strict=True):
            if name.startswith("image"):  # the same pixels; the compression may differ
                assert pixels(a.image) == pixels(b.image)
                a.image.encoded_image_string = b.image.encoded_image_string
            assert a == b


def pixels(image):
    import io

    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(image.encoded_image_string))).tolist()


def test_settings_of_a_run(tmp_path):
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    results = []
    for kind in (SummaryWriter, theirs.SummaryWriter):
        with kind(str(tmp_path / kind.__module__)) as writer:
            writer.add_hparams({"lr": 0.1, "deep": True, "name": "x"}, {"loss": 0.5}, run_name="run")
        found = {}
        for _, _, summary in read(tmp_path / kind.__module__):
            for value in summary.value:
                data = HParamsPluginData.FromString(value.metadata.plugin_data.content)
                data.session_start_info.start_time_secs = data.session_end_info.end_time_secs = 0
                found[value.tag] = data
        results.append(found)
    assert results[0] == results[1]


def test_purging_and_the_rest(tmp_path):
    with SummaryWriter(tmp_path / "a", purge_step=3) as writer:
        writer.add_video("v", taeda.rand(1, 3, 3, 4, 6), 1)
        writer.add_audio("s", taeda.rand(100), 1)
        writer.add_embedding(taeda.rand(3, 2), metadata=["a", "b", "c"])
        writer.add_graph(taeda.nn.Sequential(taeda.nn.Linear(2, 3), taeda.nn.ReLU()), taeda.rand(1, 2))
        writer.add_image_with_boxes("b", taeda.rand(3, 8, 8), taeda.tensor([[1, 1, 4, 4]]))
    tags = [value.tag for _, _, summary in read(tmp_path / "a") for value in summary.value]
    assert tags == ["v", "s", "b"]
    assert (tmp_path / "a" / "00000" / "default" / "metadata.tsv").read_text() == "a\nb\nc\n"

"""``SummaryWriter``: scalars, histograms, images, text and more as TensorBoard's event files.

The files are written by the package ``tensorboard``; here numbers become its messages.
"""

from __future__ import annotations

import io
import json
import os
import socket
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

__all__ = ["FileWriter", "SummaryWriter"]

Summary = summary_pb2.Summary


def _array(x: Any) -> Any:
    """Anything with numbers as a NumPy array."""
    import numpy as np

    from ..._core import Tensor

    if isinstance(x, Tensor):
        x = x.detach()
        return (x.float() if x.dtype.name in ("bfloat16", "float16") else x).numpy()
    return np.asarray(x)


def _number(x: Any) -> float:
    values = _array(x)
    if values.size != 1:
        raise ValueError(f"SummaryWriter: expected a scalar, got an array of shape {values.shape}")
    return float(values.reshape(()))


def _floats(values: Any) -> Any:
    """An array as one of protobuf's tensors."""
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in values.shape])
    return TensorProto(dtype="DT_FLOAT", tensor_shape=shape, float_val=values.astype("float32").ravel().tolist())


def _text(text: bytes, *sizes: int) -> Any:
    """Text as one of protobuf's tensors."""
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in sizes])
    return TensorProto(dtype="DT_STRING", string_val=[text], tensor_shape=shape)


def _value(tag: str, tensor: Any, plugin: str, content: bytes = b"") -> Any:
    """A value that one of TensorBoard's plugins shows."""
    data = summary_pb2.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return Summary.Value(tag=tag, tensor=tensor, metadata=summary_pb2.SummaryMetadata(plugin_data=data))


class FileWriter:
    """Event files in ``log_dir``; ``max_queue`` events are kept back at most, ``flush_secs`` seconds at most."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Write an event."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write a summary as an event."""
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write the events that are kept back."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write the events that are kept back and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Accepted: a new file is begun by a new writer."""


def hparams(
    hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list] | None = None
) -> tuple[Any, Any, Any]:
    """A file's entries for a run's settings: the experiment's, the beginning's and the end's."""
    from tensorboard.plugins.hparams import metadata
    from tensorboard.plugins.hparams.api_pb2 import Experiment, Status
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

    domains = hparam_domain_discrete or {}
    experiment = Experiment(
        hparam_infos=[_hparam_info(name, value, domains.get(name)) for name, value in hparam_dict.items()],
        metric_infos=[_metric_info(name) for name in metric_dict],
    )
    start = SessionStartInfo(start_time_secs=time.time())
    for name, value in hparam_dict.items():
        _set_value(start.hparams[name], value)
    end = SessionEndInfo(status=Status.Value("STATUS_SUCCESS"), end_time_secs=time.time())

    def summary(tag: str, **data: Any) -> Any:
        plugin = metadata.create_summary_metadata(HParamsPluginData(**data))
        return Summary(value=[Summary.Value(tag=tag, metadata=plugin)])

    return (
        summary(metadata.EXPERIMENT_TAG, experiment=experiment),
        summary(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        summary(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )


class SummaryWriter:
    """Writes what TensorBoard shows.

    Args:
        log_dir: the folder; by default ``runs/<date and time>_<host><comment>``.
        comment: end of the default folder's name.
        purge_step: after a restart, hide what was written from this step on.
        max_queue: how many events are kept back at most.
        flush_secs: for how many seconds they are kept back at most.
        filename_suffix: end of the files' names.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            stamp = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{stamp}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                step, self.purge_step = self.purge_step, None
                self.file_writer.add_event(event_pb2.Event(step=step, file_version="brain.Event:2"))
                log = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
                self.file_writer.add_event(event_pb2.Event(step=step, session_log=log))
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def _write(self, values: list, step: int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(Summary(value=values), step, walltime)

    # ---- numbers
    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """A number at a step."""
        number = _number(scalar_value)
        if new_style:
            tensor = TensorProto(dtype="DT_DOUBLE" if double_precision else "DT_FLOAT")
            (tensor.double_val if double_precision else tensor.float_val).append(number)
            value = _value(tag, tensor, "scalars")
        else:
            value = Summary.Value(tag=tag, simple_value=number)
        self._write([value], global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Several numbers in one chart: each goes to a folder of its own."""
        self._get_file_writer()
        assert self.all_writers is not None
        for tag, number in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            value = Summary.Value(tag=main_tag, simple_value=_number(number))
            self.all_writers[folder].add_summary(Summary(value=[value]), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """The numbers of a tensor."""
        self._write([_value(tag, _floats(_array(tensor)), "tensor")], global_step, walltime)

    # ---- distributions
    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """The distribution of numbers; ``bins``: "tensorflow" (by powers of 1.1), or what ``numpy.histogram`` takes."""
        import numpy as np

        data = _array(values).astype(np.float64).ravel()
        if data.size == 0:
            raise ValueError("The input has no element.")
        counts, limits = np.histogram(data, bins=_power_bins() if bins == "tensorflow" else bins)
        n = len(counts)
        if max_bins is not None and n > max_bins:
            step = n // max_bins  # as PyTorch has it: there may be a few more
            padded = np.concatenate([counts, np.zeros(-n % step, dtype=counts.dtype)])
            counts = padded.reshape(-1, step).sum(1)
            limits = np.concatenate([limits[:-1:step], limits[-1:]])
        # empty buckets at both ends are left out; a lower limit with a count of 0 stays, for the first bucket
        filled = counts.nonzero()[0]
        first, last = (int(filled[0]), int(filled[-1]) + 1) if len(filled) else (0, 0)
        kept = list(counts[first - 1 : last]) if first else [0, *counts[:last]]
        ends = list(limits[first : last + 1])
        low, high, total, squares = data.min(), data.max(), data.sum(), data.dot(data)
        self.add_histogram_raw(tag, low, high, data.size, total, squares, ends, kept, global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Sequence[Any],
        bucket_counts: Sequence[Any], global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A distribution that was counted already: the upper limit of each bucket, and how many are in it."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        proto = summary_pb2.HistogramProto(
            min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits,
            bucket=bucket_counts,
        )  # fmt: skip
        self._write([Summary.Value(tag=tag, histo=proto)], global_step, walltime)

    # ---- pictures
    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """A picture: uint8, or floating point in [0, 1]; ``dataformats`` names its dimensions."""
        self._write([Summary.Value(tag=tag, image=_image(img_tensor, dataformats))], global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Several pictures side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        rescale: float = 1, dataformats: str = "CHW", labels: Any = None,
    ) -> None:  # fmt: skip
        """A picture with boxes ``(n, 4)``: left, top, right, bottom."""
        from PIL import Image, ImageDraw

        picture = Image.fromarray(_pixels(img_tensor, dataformats))
        draw = ImageDraw.Draw(picture)
        for i, box in enumerate(_array(box_tensor).reshape(-1, 4)):
            draw.rectangle([float(v) for v in box], outline="red")
            if labels is not None:
                draw.text((float(box[0]), float(box[1])), str(labels[i]), fill="red")
        if rescale != 1:
            picture = picture.resize((int(picture.width * rescale), int(picture.height * rescale)))
        self._write([Summary.Value(tag=tag, image=_encoded(picture))], global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of Matplotlib, or a list of them."""
        import matplotlib.pyplot as plt
        import numpy as np
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        pictures = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[..., :3].copy())
            if close:
                plt.close(one)
        if isinstance(figure, list):
            self.add_images(tag, np.stack(pictures), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, pictures[0], global_step, walltime, "HWC")

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """A film ``(n, frames, channels, height, width)``, as an animated GIF."""
        from PIL import Image

        frames = _array(vid_tensor)
        if frames.dtype.kind == "f":
            frames = (frames * 255).clip(0, 255)
        frames = (
            frames.astype("uint8")
            .transpose(1, 3, 0, 4, 2)
            .reshape(frames.shape[1], frames.shape[3], -1, frames.shape[2])
        )
        pictures = [Image.fromarray(f[..., 0] if f.shape[-1] == 1 else f) for f in frames]
        buffer = io.BytesIO()
        pictures[0].save(buffer, "GIF", save_all=True, append_images=pictures[1:], duration=int(1000 / fps), loop=0)
        image = Summary.Image(
            height=frames.shape[1], width=frames.shape[2], colorspace=3, encoded_image_string=buffer.getvalue()
        )
        self._write([Summary.Value(tag=tag, image=image)], global_step, walltime)

    # ---- sound and text
    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Sound in [-1, 1], as a WAV file of 16 bits."""
        import wave

        sound = _array(snd_tensor).squeeze()
        if sound.ndim > 1:
            raise ValueError(f"add_audio: expected sound of one dimension, got shape {sound.shape}")
        buffer = io.BytesIO()
        with wave.open(buffer, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(sample_rate)
            file.writeframes((sound.clip(-1, 1) * 32767).astype("<i2").tobytes())
        audio = Summary.Audio(
            sample_rate=sample_rate, num_channels=1, length_frames=len(sound), encoded_audio_string=buffer.getvalue(),
            content_type="audio/wav",
        )  # fmt: skip
        self._write([Summary.Value(tag=tag, audio=audio)], global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Text, shown as Markdown."""
        value = _value(f"{tag}/text_summary", _text(text_string.encode(), 1), "text")
        self._write([value], global_step, walltime)

    # ---- the rest
    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision and recall of a two-class prediction over ``num_thresholds`` thresholds."""
        import numpy as np

        num_thresholds = min(num_thresholds, 127)
        truth, scores = _array(labels).astype(float).ravel(), _array(predictions).astype(float).ravel()
        weight = 1.0 if weights is None else _array(weights).astype(float).ravel()
        bucket = np.floor(scores * (num_thresholds - 1)).astype(int)
        span = (0, num_thresholds - 1)
        tp, _ = np.histogram(bucket, bins=num_thresholds, range=span, weights=truth * weight)
        fp, _ = np.histogram(bucket, bins=num_thresholds, range=span, weights=(1 - truth) * weight)
        tp, fp = tp[::-1].cumsum()[::-1], fp[::-1].cumsum()[::-1]
        tn, fn = fp[0] - fp, tp[0] - tp
        precision = tp / np.maximum(1e-7, tp + fp)
        recall = tp / np.maximum(1e-7, tp + fn)
        self.add_pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, global_step, num_thresholds, weights, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: int | None = None,
        num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """:meth:`add_pr_curve` from counts."""
        import numpy as np
        from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

        rows = (
            true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall,
        )  # fmt: skip
        content = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
        value = _value(tag, _floats(np.stack([_array(row) for row in rows])), "pr_curves", content)
        self._write([value], global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, dict[str, list]]) -> None:
        """Custom charts: ``{category: {chart: ["Multiline" or "Margin", [tag, ...]]}}``."""
        categories = []
        for category, charts in layout.items():
            made = []
            for title, (kind, tags) in charts.items():
                if kind == "Margin":
                    value, lower, upper = tags[:3]
                    series = layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
                    made.append(layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series])))
                else:
                    made.append(layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags)))
            categories.append(layout_pb2.Category(title=category, chart=made))
        content = layout_pb2.Layout(category=categories).SerializeToString()
        self._write([_value("custom_scalars__config__", _text(content), "custom_scalars")], None, None)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list] | None = None, run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Settings of a run and their results."""
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for summary in hparams(hparam_dict, metric_dict, hparam_domain_discrete):
                writer._write(list(summary.value), global_step, None)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: int | None = None,
        tag: str = "default", metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Vectors ``(n, d)`` for the projector, with a label for each."""
        from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

        values = _array(mat)
        folder = os.path.join(self.log_dir, f"{0 if global_step is None else global_step:05d}", tag)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "tensors.tsv"), "w") as file:
            file.writelines("\t".join(map(str, row)) + "\n" for row in values)
        local = os.path.relpath(folder, self.log_dir)
        info = EmbeddingInfo(
            tensor_name=f"{tag}:{0 if global_step is None else global_step:05d}",
            tensor_path=os.path.join(local, "tensors.tsv"),
        )
        if metadata is not None:
            if len(metadata) != len(values):
                raise ValueError("#labels should equal with #data points")
            with open(os.path.join(folder, "metadata.tsv"), "w") as file:
                if metadata_header:
                    file.write("\t".join(metadata_header) + "\n")
                file.writelines(("\t".join(map(str, m)) if metadata_header else str(m)) + "\n" for m in metadata)
            info.metadata_path = os.path.join(local, "metadata.tsv")
        config = self.__dict__.setdefault("_projector_config", ProjectorConfig())
        config.embeddings.append(info)
        from google.protobuf import text_format

        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "w") as file:
            file.write(text_format.MessageToString(config))

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """The modules of ``model`` as a graph: each module is a node under its parent."""
        from tensorboard.compat.proto.attr_value_pb2 import AttrValue
        from tensorboard.compat.proto.graph_pb2 import GraphDef
        from tensorboard.compat.proto.node_def_pb2 import NodeDef
        from tensorboard.compat.proto.versions_pb2 import VersionDef

        root = type(model).__name__
        nodes: list[Any] = []
        previous: list[Any] = []
        for name, module in model.named_modules():
            if any(True for _ in module.children()):
                continue
            text = AttrValue(s=json.dumps(module.extra_repr()).encode())
            label = "/".join([root, *name.split(".")]) if name else root
            nodes.append(NodeDef(name=label, op=type(module).__name__, input=previous, attr={"settings": text}))
            previous = [label]
        graph = GraphDef(node=nodes, versions=VersionDef(producer=22))
        self._get_file_writer().add_event(event_pb2.Event(graph_def=graph.SerializeToString()))

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None,
        global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Points ``(n, vertices, 3)``, with colours and faces."""
        from tensorboard.plugins.mesh import metadata as mesh
        from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

        config = json.dumps(config_dict or {}, sort_keys=True)
        given = [(vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR)]
        present = [(_array(x), kind) for x, kind in given if x is not None]
        components = mesh.get_components_bitmask([kind for _, kind in present])
        values = []
        for data, kind in present:
            info = mesh.create_summary_metadata(tag, "", kind, components, data.shape, "", json_config=config)
            values.append(Summary.Value(tag=mesh.get_instance_name(tag, kind), tensor=_floats(data), metadata=info))
        self._write(values, global_step, walltime)

    def flush(self) -> None:
        """Write the events that are kept back."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write the events that are kept back and close the files."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def _power_bins() -> list[float]:
    """Limits that grow by a tenth, on both sides of zero, as TensorFlow's histograms have them."""
    positive, v = [], 1e-12
    while v < 1e20:
        positive.append(v)
        v *= 1.1
    return [-x for x in reversed(positive)] + [0.0] + positive


def _pixels(image: Any, formats: str) -> Any:
    """Height x width x 3 bytes of an image, or of several in a grid."""
    import numpy as np

    data, formats = _array(image), formats.upper()
    if len(formats) != data.ndim:
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {data.shape}, input_format: {formats}"
        )
    if data.dtype.kind == "f":
        data = (data * 255).clip(0, 255)
    data = data.astype(np.uint8)
    if "N" in formats:
        data = data.transpose([formats.index(c) for c in "NCHW"])
        columns = min(len(data), 8)
        rows = -(-len(data) // columns)
        blank = np.zeros((rows * columns - len(data), *data.shape[1:]), np.uint8)
        _, c, h, w = (data := np.concatenate([data, blank])).shape
        data = data.reshape(rows, columns, c, h, w).transpose(0, 3, 1, 4, 2).reshape(rows * h, columns * w, c)
    elif formats == "HW":
        data = data[..., None]
    else:
        data = data.transpose([formats.index(c) for c in "HWC"])
    return np.repeat(data, 3, 2) if data.shape[2] == 1 else np.ascontiguousarray(data)


def _image(image: Any, formats: str) -> Any:
    from PIL import Image

    return _encoded(Image.fromarray(_pixels(image, formats)))


def _encoded(picture: Any) -> Any:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    channels = len(picture.getbands())
    return Summary.Image(
        height=picture.height, width=picture.width, colorspace=channels, encoded_image_string=buffer.getvalue()
    )


def _set_value(target: Any, x: Any) -> None:
    """Put a setting into one of protobuf's values."""
    if isinstance(x, bool):
        target.bool_value = x
    elif isinstance(x, str):
        target.string_value = x
    else:
        target.number_value = _number(x)


def _hparam_info(name: str, value: Any, domain: list | None) -> Any:
    from tensorboard.plugins.hparams.api_pb2 import DataType, HParamInfo

    kind = "BOOL" if isinstance(value, bool) else "STRING" if isinstance(value, str) else "FLOAT64"
    info = HParamInfo(name=name, type=DataType.Value(f"DATA_TYPE_{kind}"))
    for item in domain or ():
        _set_value(info.domain_discrete.values.add(), item)
    return info


def _metric_info(name: str) -> Any:
    from tensorboard.plugins.hparams.api_pb2 import MetricInfo, MetricName

    return MetricInfo(name=MetricName(tag=name))

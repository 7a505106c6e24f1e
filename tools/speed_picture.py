"""Draws the picture of speed, ``docs/speed.svg`` and ``docs/speed-dark.svg``, from the tables of ``bench/RESULTS.md``.

python tools/speed_picture.py            # write them
python tools/speed_picture.py --check    # for CI: exit code 1 where they are out of date
"""

from __future__ import annotations

import argparse
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "RESULTS.md"
#: The rows that are drawn: small and large steps, and those where the least is gained. Beginning of the row, text.
ROWS = {
    "geometric mean over 40 small ops": "40 small ops (8x8), geometric mean",
    "MLP 4-64-64-2, batch 32, Adam: training step": "MLP 4-64-64-2, training step",
    "PPO: two MLPs of 64, 64 states, 1 thread": "PPO: two MLPs of 64, step",
    "tanh RNN by hand": "RNN, 50 steps by hand, training step",
    "LSTM language model 2x200, 35x20, 1 thread": "LSTM language model, training step",
    "char-GPT 4 layers, 128 wide, context 64, batch 12, AdamW, 1 thread": "char-GPT, 4 layers, training step",
    "BERT 6 layers, 256 wide, 8 x 128 tokens with padding, AdamW, 1 thread": "BERT, 6 layers, training step",
    "matmul 1024, 1 thread": "matmul 1024",
    "MNIST CNN, batch 64, Adadelta, 1 thread": "MNIST CNN, training step",
    "ResNet-18 (CIFAR stem), batch 16, SGD with momentum, 1 thread": "ResNet-18, training step",
    "MobileNetV2 shape, 32x32, batch 16, SGD with momentum, 1 thread": "MobileNetV2, training step",
    "the same ResNet-18 under autocast to bfloat16, 1 thread": "ResNet-18 in bfloat16, training step",
    "int8 product 1024 to int32, 1 thread": "int8 product 1024",
}
WIDTH, LEFT, RIGHT, TOP, STEP = 760, 262, 650, 62, 25
#: Text, faint text, lines, bars where taeda is quicker and where it is not.
COLOURS = {"": ("#1f2328", "#59636e", "#d1d9e0", "#1a7fa8", "#c2570c"),
           "-dark": ("#f0f6fc", "#9198a1", "#3d444d", "#4fb3dd", "#f0883e")}  # fmt: skip


def measured() -> tuple[str, list[tuple[str, str, str, float]]]:
    """When and where it was measured; each row's text, the two times and the ratio."""
    page = RESULTS.read_text()
    found = re.search(r"^Measured (\S+) on (.+?)\. .*$", page, re.M)
    if found is None:
        raise SystemExit(f"{RESULTS}: no line that begins with 'Measured'")
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:2] == "| "]
    rows = []
    for start, text in ROWS.items():
        row = next((r for r in table if r[0].startswith(start)), None)
        if row is None:
            raise SystemExit(f"{RESULTS}: no row begins with {start!r}")
        rows.append((text, row[1], row[2], float(row[3])))
    return f"{found[1]}, {found[2]}", rows


def picture(dark: str) -> str:
    """The SVG, for a light page or a dark one."""
    ink, faint, line, quick, slow = COLOURS[dark]
    where, rows = measured()
    height = TOP + STEP * len(rows) + 46
    scale = (RIGHT - LEFT) / 1.1

    def text(x: float, y: float, words: str, colour: str, size: int = 13, anchor: str = "start") -> str:
        style = f'fill="{colour}" font-size="{size}" text-anchor="{anchor}"'
        return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" role="img">',
        "<title>Times of taeda as shares of PyTorch's</title>",
        text(0, 18, "Time in taeda, as a share of PyTorch's (shorter is quicker)", ink, 15),
        text(LEFT, TOP - 12, "0", faint, 12, "middle"),
        text(LEFT + scale / 2, TOP - 12, "0.5", faint, 12, "middle"),
        text(LEFT + scale, TOP - 12, "1: PyTorch's time", faint, 12, "middle"),
    ]
    bottom = TOP + STEP * len(rows)
    for share in (0, 0.5, 1):
        x = LEFT + scale * share
        parts.append(
            f'<line x1="{x:g}" x2="{x:g}" y1="{TOP - 6}" y2="{bottom}" stroke="{faint if share == 1 else line}"/>'
        )
    for i, (words, ours, theirs, ratio) in enumerate(rows):
        y = TOP + STEP * i
        parts.append(text(LEFT - 10, y + 16, words, ink, 13, "end"))
        colour = quick if ratio < 1 else slow
        parts.append(f'<rect x="{LEFT}" y="{y + 4}" width="{scale * ratio:.1f}" height="16" rx="2" fill="{colour}"/>')
        end = LEFT + scale * ratio
        if ratio > 0.35:
            parts.append(text(end - 7, y + 16, f"{ratio:.2f}", "#0d1117" if dark else "#ffffff", 12, "end"))
        else:
            parts.append(text(end + 7, y + 16, f"{ratio:.2f}", ink, 12))
        if ours and theirs:
            parts.append(text(WIDTH, y + 16, f"{ours} : {theirs}", faint, 12, "end"))
    parts.append(text(0, bottom + 24, f"One thread. {where}.", faint, 12))
    parts.append(text(0, bottom + 40, "All rows, and what they mean: bench/RESULTS.md", faint, 12))
    parts.append("</svg>\n")
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    code = 0
    for dark in COLOURS:
        path = ROOT / "docs" / f"speed{dark}.svg"
        if not check:
            path.write_text(picture(dark))
        elif not path.exists() or path.read_text() != picture(dark):
            print(f"{path.relative_to(ROOT)} is out of date: run python tools/speed_picture.py")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())

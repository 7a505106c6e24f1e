"""The reports of ``run.py --ops`` and ``run.py --workloads``, each a section of RESULTS.md that it alone replaces."""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
from pathlib import Path

from cases import CASES
from ops import FAMILIES, SIZES, SLOW, op_cases
from timing import run_cases, table

#: Highest geometric mean over everything, and highest ratio of a single op that needs no reason.
MEAN_BAR, OP_BAR = 0.8, 2.0
HEADINGS = (
    "## Workloads",
    "## Memory and start",
    "## Every op",
    "## Compiled steps",
    "## Collectives",
    "## AVX2",
    "## AVX2, beside a neighbour",
    "## AVX2, on Intel",
)
HERE = Path(__file__).resolve().parent


def geometric_mean(ratios: list[float]) -> float:
    """Of the ratios that are numbers; nan where there is none."""
    good = [r for r in ratios if not math.isnan(r)]
    return math.exp(sum(map(math.log, good)) / len(good)) if good else math.nan


def section(heading: str) -> str:
    """What RESULTS.md has under ``heading``, which may be nothing."""
    _, found, rest = (HERE / "RESULTS.md").read_text().partition(f"\n{heading}\n")
    return rest.split("\n## ")[0].strip() if found else ""


def put(heading: str, text: str) -> None:
    """Replace that, or add it at the end."""
    path = HERE / "RESULTS.md"
    before, _, rest = path.read_text().partition(f"\n{heading}\n")
    _, more, after = rest.partition("\n## ")
    if text:
        path.write_text(f"{before.rstrip()}\n\n{heading}\n\n{text.strip()}\n" + (f"\n## {after}" if more else ""))


def run_workloads(args: argparse.Namespace) -> None:
    """Time the workloads, print the table, and with ``--write`` put it into RESULTS.md."""
    cases = [c for c in CASES if c.group == "workloads" and c.threads in args.threads]
    cases = [c for c in cases if not args.only or any(text in c.name for text in args.only)]
    rows, _ = run_cases(cases, args.rounds)
    lines = [
        f"Measured {datetime.date.today().isoformat()} with `{args.command}`: medians of {args.rounds} rounds, the "
        "processes in turn. Forward, backward and update unless the name says otherwise.",
        table([row.cells() for row in rows]),
        *[f"- {row.name}: {row.error}" for row in rows if row.error],
    ]
    print("\n" + "\n\n".join(lines))
    if args.write:
        put(HEADINGS[0], "\n\n".join(lines))


def _parts(name: str) -> tuple[str, str, str]:
    family, op, size = re.fullmatch(r"(.*?): (.*) \[(\w+)\]", name).groups()  # type: ignore[union-attr]
    return family, op, size


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["-" * len(h) for h in head], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _means(ratios: dict[tuple[int, str, str, str], float], threads: list[int]) -> str:
    """The table of geometric means: a row per family, a column per thread count and size."""
    columns = [(t, size) for t in threads for size in SIZES]
    rows = []
    for family in [*FAMILIES, "all"]:
        cells = []
        for t, size in [*columns, (0, "")]:
            chosen = [
                r
                for (n, f, _, s), r in ratios.items()
                if (not t or (n, s) == (t, size)) and (family == "all" or f == family)
            ]
            cells.append(f"{geometric_mean(chosen):.2f}")
        rows.append([family, *cells])
    head = ["family", *(f"{size}, {t} thread{'s' if t > 1 else ''}" for t, size in columns), "together"]
    return markdown(head, rows)


def _slow(ratios: dict[tuple[int, str, str, str], float]) -> str:
    """Every op above the bar, slowest first, with its reason where there is one."""
    above = sorted(((r, key) for key, r in ratios.items() if r > OP_BAR), reverse=True)
    if not above:
        return f"No op is above {OP_BAR}."
    rows = [[f"{f}: {op}", size, str(t), f"{r:.2f}", SLOW.get((op, size), "")] for r, (t, f, op, size) in above]
    return markdown(["op", "size", "threads", "ratio", "why"], rows)


def _each(ratios: dict[tuple[int, str, str, str], float], threads: list[int]) -> str:
    rows = []
    columns = [(t, size) for t in threads for size in SIZES]
    for family, ops in FAMILIES.items():
        for op in ops:
            cells = [ratios.get((t, family, op, size), math.nan) for t, size in columns]
            if not all(map(math.isnan, cells)):
                rows.append([family, op, *("" if math.isnan(c) else f"{c:.2f}" for c in cells)])
    return markdown(["family", "op", *(f"{size}, {t}" for t, size in columns)], rows)


def run(args: argparse.Namespace) -> None:
    """Time the ops, print the page, and with ``--write`` put it at the end of RESULTS.md."""
    ratios: dict[tuple[int, str, str, str], float] = {}
    failures: list[str] = []
    for threads in args.threads:
        cases = [c for c in op_cases(threads) if not args.only or any(t in c.name for t in args.only)]
        rows, _ = run_cases(cases, args.rounds, 0.005)
        for row in rows:
            if row.error:
                failures.append(f"- {row.name}, {threads}: {row.error}")
            else:
                ratios[(threads, *_parts(row.name))] = row.ratio
    (HERE / ".sweep.json").write_text(json.dumps([[*key, r] for key, r in ratios.items()]))
    mean = geometric_mean(list(ratios.values()))
    parts = [
        f"Measured {datetime.date.today().isoformat()} with `{args.command}`: medians of the ratios taeda / torch of "
        f"{args.rounds} rounds, float32 unless the op says otherwise, sizes 8 (2x4), 4K (64x64) and 1M (1024x1024).",
        f"Geometric mean over {len(ratios)} ratios: {mean:.2f} (at most {MEAN_BAR}).",
        _means(ratios, args.threads),
        f"Above {OP_BAR}:",
        _slow(ratios),
    ]
    if failures:
        parts += ["Failed:", "\n".join(failures)]
    page = "\n\n".join(parts)
    print("\n" + page)
    if args.write:
        each = _each(ratios, args.threads)
        put(HEADINGS[2], f"{page}\n\n<details><summary>Op by op</summary>\n\n{each}\n\n</details>")

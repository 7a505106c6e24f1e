"""Times taeda against PyTorch: the same programs, in separate processes that take turns, and the medians of the ratios.

    python bench/run.py                          # all cases, workloads and costs; writes bench/RESULTS.md
    python bench/run.py --only small_ops rows    # groups or parts of names of cases; prints, writes nothing
    python bench/run.py --before ../older        # against the taeda of another checkout in place of PyTorch; --only
    python bench/run.py --ops                    # every op at three sizes; --only, --threads, --write
    python bench/run.py --large                  # pointwise ops on tensors that no cache holds; --only, --threads
    python bench/run.py --workloads              # training and inference of whole models; --only, --threads, --write
    python bench/run.py --convolutions           # layers of well-known networks; --only, --threads
    python bench/run.py --costs                  # peak memory and losses of the workloads, start, size; --only, --write
    python bench/run.py --compile                # compiled steps beside PyTorch's and JAX's; --only, --threads, --write
    python bench/run.py --target avx2            # both held to AVX2; --only, --threads, --write
    python bench/run.py --neighbour              # beside a busy process: streams, multiplies; --only, --write
    python bench/run.py --profile char-GPT       # a case by op and kernel, against its floor; --threads
    python bench/run.py --list

Each case is timed in turn by a process with taeda and one with torch, ``--rounds`` times; a round's time is the fastest
of five batches. Ratios below 1 mean that taeda is faster. "of floor" is how many per cent of taeda's time the machine
needs at least (``docs/profiling.md``). Quiet the machine first.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import limits
from cases import CASES
from timing import FRAMEWORKS, HERE, IMPORT_BAR, SMALL_BAR, Row, cpu, environment, run_cases, table, verdict


def import_row(rounds: int) -> Row:
    """Seconds that ``import`` takes in a new interpreter, files warm in the system's cache."""
    row = Row("import", "import", IMPORT_BAR)
    for i in range(rounds + 1):
        for framework in FRAMEWORKS:
            code = f"import time; t = time.perf_counter(); import {framework}; print(time.perf_counter() - t)"
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, env=environment(1), cwd=HERE
            )
            if done.returncode:
                row.add(framework, {"error": done.stderr.strip().splitlines()[-1]})
            elif i:  # the first round only warms the files
                row.add(framework, {"seconds": float(done.stdout)})
    return row


def _remark() -> str:
    """What a reader must know of PyTorch on this processor."""
    if "AMD" not in cpu():
        return ""
    return (
        " PyTorch's products and functions of MKL keep to AVX2 on AMD processors, at about half of their speed on "
        "Intel's: ratios there are higher."
    )


def _flags() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    return ", AVX-512" if " avx512f" in text else ", AVX2" if " avx2" in text else ""


def small_ops_mean(rows: list[Row]) -> list[str]:
    """The line of the geometric mean over the small ops; failed ones are counted and said, never left out silently."""
    ratios = [row.ratio for row in rows]
    good = [r for r in ratios if not math.isnan(r)]
    mean = math.exp(sum(map(math.log, good)) / len(good)) if good else math.nan
    failed = f", {len(ratios) - len(good)} FAILED" if len(good) < len(ratios) else ""
    bar = verdict(math.nan if failed else mean, SMALL_BAR)
    return [f"geometric mean over {len(ratios)} small ops (8x8){failed}", "", "", f"{mean:.2f}", *bar, ""]


def by_ratio(row: Row) -> float:
    """What sorts rows, slowest and failed ones first."""
    return -math.inf if math.isnan(row.ratio) else -row.ratio


def report(rows: list[Row], versions: dict[str, str], args: argparse.Namespace) -> str:
    """The page: where and how it was measured, the table with bars, the small ops one by one."""
    small = [row for row in rows if row.group == "small_ops"]
    calls = [row for row in rows if row.group == "everyday"]
    others = [row for row in rows if row.group not in ("small_ops", "everyday")]
    main = [row.cells() for row in others if row.group == "import"]
    if small:
        main.append(small_ops_mean(small))
    main += [row.cells() for row in others if row.group != "import"]
    barred = main + [row.cells() for row in calls]
    met = sum(line[5] == "yes" for line in barred)
    parts = [
        "# taeda against PyTorch",
        f"Measured {datetime.date.today().isoformat()} on {cpu()}{_flags()}, {len(os.sched_getaffinity(0))} CPUs, "
        f"Python {platform.python_version()}, taeda {versions.get('taeda', '?')}, torch {versions.get('torch', '?')}. "
        "One thread unless said otherwise. The processes take turns; times are medians and ratios (taeda / torch: "
        f"below 1, taeda is faster) are medians of the ratios of {args.rounds} rounds. Of floor: the time that the "
        "machine needs at least (bytes at the rate of a copy of that size, or of reading where that is all, products "
        f"at the rate of the inner tile, all measured in the same run), in per cent of taeda's best.{_remark()} The "
        "command of this page:",
        f"    {args.command}",
        f"{met} of {len(barred)} bars met.",
        table(main),
    ]
    if small:
        parts += ["## The small ops, one by one", table([row.cells() for row in small])]
    if calls:
        parts += ["## Everyday calls, slowest first", table([row.cells() for row in sorted(calls, key=by_ratio)])]
    errors = [f"- {row.name}: {row.error}" for row in rows if row.error]
    if errors:
        parts += ["## Failures", "\n".join(errors)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="groups, or parts of the names of cases")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="compare with the taeda of this checkout")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="write RESULTS.md even with --only")
    parser.add_argument("--list", action="store_true", help="list groups and cases")
    parser.add_argument("--ops", action="store_true", help="the sweep over single ops")
    parser.add_argument("--workloads", action="store_true", help="whole models")
    parser.add_argument("--convolutions", action="store_true", help="layers of well-known networks")
    parser.add_argument("--large", action="store_true", help="pointwise ops on tensors that no cache holds")
    parser.add_argument("--costs", action="store_true", help="peak memory, start, size")
    parser.add_argument("--compile", action="store_true", help="compiled steps")
    parser.add_argument("--profile", metavar="TEXT", help="profile the case with this in its name")
    parser.add_argument(
        "--target", choices=limits.TARGETS, help="hold both frameworks to these instructions, in any report"
    )
    parser.add_argument(
        "--neighbour", nargs="*", choices=limits.NEIGHBOURS, help="what a busy process beside them does"
    )
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="thread counts of these")
    args = parser.parse_args()
    args.command = " ".join(["python bench/run.py", *sys.argv[1:]])
    os.environ.update(limits.TARGETS.get(args.target, {}))
    if args.ops or args.workloads:
        import sweep

        (sweep.run if args.ops else sweep.run_workloads)(args)
        return
    if args.convolutions or args.large:
        script = "convolutions.py" if args.convolutions else "large.py"
        for threads in args.threads:
            command = [sys.executable, str(HERE / script), *(args.only or []), "--threads", str(threads)]
            subprocess.run(command, env=environment(threads), check=True)
        return
    if args.compile:
        import compiled

        compiled.run(args)
        return
    if args.costs or args.profile:
        import bykernel
        import costs

        (costs if args.costs else bykernel).run(args)
        return
    if args.target or args.neighbour is not None:
        limits.run(args)
        return
    if args.list:
        print("import")
        for case in CASES:
            print(f"{case.group}: {case.name}")
        return
    texts = args.only
    chosen = [
        c
        for c in CASES
        if (any(text == c.group or text in c.name for text in texts) if texts else c.group != "workloads")
    ]
    if args.before:
        rows, _ = run_cases(chosen, args.rounds, before=args.before.resolve())
        good = [row.ratio for row in rows if not math.isnan(row.ratio)]
        print("\nOf the time before:\n")
        print("\n".join(f"{row.ratio:.3f}  {row.name}  {row.error}" for row in sorted(rows, key=by_ratio)))
        print(f"\ngeometric mean of {len(good)}: {math.exp(sum(map(math.log, good)) / len(good)):.3f}")
        return
    rows = [] if args.only and "import" not in args.only else [import_row(args.rounds)]
    timed, versions = run_cases(chosen, args.rounds) if chosen else ([], {})
    page = report(rows + timed, versions, args)
    print("\n" + page)
    if not args.only or args.write:
        import sweep

        kept = [sweep.section(heading) for heading in sweep.HEADINGS]
        (HERE / "RESULTS.md").write_text(page)
        for heading, text in zip(sweep.HEADINGS, kept, strict=True):
            sweep.put(heading, text)
    if not args.only:
        import costs
        import sweep

        args.write = True
        sweep.run_workloads(args)
        costs.run(args)


if __name__ == "__main__":
    main()

"""Command line: compare entries with PyTorch and print, or write, a table per family."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from .checks import entries
from .exceptions import MEANT, RARE
from .runner import sweep
from .table import page, table, unexpected


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.opdb", description=__doc__)
    parser.add_argument("--match", default="", help="regular expression on the entry's name")
    parser.add_argument("--samples", type=int, default=8, help="samples per entry and dtype; 0 means all")
    parser.add_argument("--table", type=Path, help="write the first part of this page of the docs")
    parser.add_argument("-v", action="store_true", help="print every failure kept, not the first of each kind")
    options = parser.parse_args()
    names = [name for name in entries() if re.search(options.match, name)]
    bad = []
    meant = MEANT if options.samples else MEANT | RARE

    def report(result, seconds):
        found = unexpected(result, meant)
        if not found:
            return
        bad.append(result["op"])
        print(f"{result['op']}  ({seconds:.1f} s)")
        for kind, lines in found.items():
            print(f"    {kind} x{result['failed'][kind]}: {lines[0]}")
            for line in lines[1:] if options.v else ():
                print(f"        {line}")

    results = sweep(names, options.samples or None, report)
    text = table(results, MEANT)
    print(text)
    print(f"{len(names) - len(bad)} of {len(names)} entries agree")
    if options.table:
        _, heading, rest = options.table.read_text().partition("## TorchScript")
        options.table.write_text(page(results, MEANT, options.samples) + heading + rest)


main()

"""Plans: the launches of an entry's call, repeated on other memory, give the call's results, bit for bit, or there is
no plan.

python -m tests.conformance.opdb.plans [REGEX [SAMPLES]]     (0: all samples)
"""

from __future__ import annotations

import sys
from collections import Counter

import taeda
from taeda._core import NoPlan, make_plan

from ..trees import rebuilt
from .checks import tensors
from .samples import calls, chosen


def layout(t) -> list:
    """The strides that matter: not those of dimensions of size 1, or of a tensor without elements."""
    return [(n, stride) for n, stride in zip(t.shape, t.stride(), strict=True) if n > 1 and t.numel()]


def same(a, b) -> bool:
    """Whether two tensors have one form and the same bits, NaNs apart."""
    if (a.shape, a.dtype, layout(a)) != (b.shape, b.dtype, layout(b)):
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())


def copies(found):
    """Copies of tensors in their strides."""
    return [taeda.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t) for t in found]


def attempt(function, args, kwargs) -> str:
    """The difference; ``""`` if there is none, ``"-"`` and the reason if there is no plan."""
    found = [t.detach() for t in tensors([list(args), kwargs])]

    def call(*given):
        at = iter(given)
        return function(*rebuilt(list(args), at), **rebuilt(kwargs, at))

    try:
        plan = make_plan(call, *copies(found))
    except NoPlan as error:
        return f"- {error}"
    mine, others = copies(found), copies(found)
    taeda.manual_seed(1)
    want = tensors(call(*mine))
    taeda.manual_seed(1)
    got = tensors(plan.run(others))
    if len(want) != len(got) or not all(same(a, b) for a, b in zip(want, got, strict=True)):
        return "results"
    if not all(same(a, b) for a, b in zip(mine, others, strict=True)):
        return "arguments written to"
    return ""


def check(op, limit=1, attempt=attempt) -> list[str]:
    """For each sample what ``attempt`` says."""
    return [attempt(*call) for call in calls(op, limit)]


def main(attempt=attempt) -> None:
    why, good, total = Counter(), 0, 0
    for name, op, limit in chosen():
        found = check(op, limit, attempt)
        total += len(found)
        good += found.count("")
        for reason in found:
            if reason.startswith("- "):
                why[reason] += 1
                if "-v" in sys.argv:
                    print(name, reason)
            elif reason:
                print(name, "DIFFERS:", reason)
    print(f"{good} of {total} calls repeated")
    for reason, n in why.most_common(40):
        print(n, reason)


if __name__ == "__main__":
    main()

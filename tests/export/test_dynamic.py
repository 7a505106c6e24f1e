"""Programs of ``dynamic.py``: values at other sizes than the example's, decomposed and from a file, and PyTorch's signature."""

import copy
import io
import warnings

import pytest

import taeda
import taeda.export

torch = pytest.importorskip("torch")
from .dynamic import PROGRAMS  # noqa: E402
from .test_like_pytorch import as_taeda, compare  # noqa: E402


def split(given):
    """Positional arguments, and those by name."""
    return given if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict) else (given, {})


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, strict):
    make, examples = PROGRAMS[name]
    theirs, their_inputs, their_sizes = make(torch)
    ours, inputs, sizes = make(taeda)
    ours.load_state_dict({k: as_taeda(v) for k, v in theirs.state_dict().items()})
    args, kwargs = split(inputs(*examples[0]))
    program = taeda.export.export(ours, args, kwargs, dynamic_shapes=sizes, strict=strict)
    saved = io.BytesIO()
    in_full = name in ("numbers_of_sizes", "layers")  # a square root of a size, a recurrent layer of dynamic length
    taeda.export.save(program, saved, format="taeda" if in_full else "pt2")
    saved.seek(0)
    forms = [program, program.run_decompositions(), taeda.export.load(saved)]
    for example in examples:
        for form in forms:
            args, kwargs = split(inputs(*example))
            their_args, their_kwargs = split(their_inputs(*example))
            module = form.module()
            state = {k: v.clone() for k, v in module.state_dict().items()}
            compare(module(*args, **kwargs), copy.deepcopy(theirs)(*their_args, **their_kwargs))
            compare(args, their_args)
            module.load_state_dict(state)
    if strict or name == "numbers_of_sizes":  # PyTorch fixes the size there
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        their_args, their_kwargs = split(their_inputs(*examples[0]))
        wanted = torch.export.export(theirs, their_args, their_kwargs, dynamic_shapes=their_sizes, strict=False)
    got, signature = program.graph_signature, wanted.graph_signature
    assert got.user_inputs == signature.user_inputs and got.buffers == signature.buffers
    assert [s.kind.name for s in got.output_specs] == [s.kind.name for s in signature.output_specs]
    assert list(got.parameters) == list(signature.parameters)
    if name != "layers":  # the length is fixed there
        symbols = [s for s in wanted.range_constraints if s.is_Symbol]  # and what follows from them, as 2*s
        assert len(program.range_constraints) == len(symbols)


@pytest.mark.parametrize(
    "text", [["pow", ["pow", ["n"], 8], 8], ["pow", ["n"], 1000], ["pow", ["n"], ["n"]], ["pow", ["n"]]]
)
def test_powers_of_a_file_stay_small(text):
    from taeda.export._encoding import decode_expr

    assert decode_expr(["pow", ["add", ["n"], 1], 0.5]).value({"n": 3}) == 2
    with pytest.raises(ValueError, match="pow of"):
        decode_expr(text)

"""Scripts of classes that are defined within functions."""

from typing import Dict, List, Optional  # noqa: UP035 (the language of scripts)

import taeda


def test_classes_know_themselves_and_each_other():
    @taeda.jit.script
    class Leaf:
        def __init__(self, a: int):
            self.a = a

        def copies(self, others: List["Leaf"]) -> "Leaf":  # noqa: UP006
            return Leaf(self.a + len(others))

    @taeda.jit.script
    class Tree:
        def __init__(self):
            self.child = taeda.jit.annotate(Optional[Leaf], None)  # noqa: UP045

        def add(self, child: Leaf) -> None:
            self.child = child

    def function(x: int):
        tree, leaf = Tree(), Leaf(x)
        tree.add(leaf.copies([leaf, leaf]))
        child = tree.child
        assert child is not None
        return child.a

    assert taeda.jit.script(function)(3) == 5


def test_an_item_of_an_object_is_deleted():
    @taeda.jit.script
    class Table:
        def __init__(self):
            self.data: Dict[str, int] = {"a": 1, "b": 2}  # noqa: UP006

        def __delitem__(self, key: str):
            del self.data[key]

    def function():
        table = Table()
        del table["a"]
        return table.data

    assert taeda.jit.script(function)() == {"b": 2}

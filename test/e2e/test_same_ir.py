"""A model is the same model whichever file it comes from: the llm IR of its folder and of its ONNX exports after fusion.

Compared are operations, their attributes and types, from the logits back to the tokens, after renaming. A weight is
compared by shape (its values are compared through the logits, in test_golden.py)."""
import re

import pytest

from conftest import llmc
from test_golden import MODELS

# What one source says and another has folded into a weight: Gemma's 1 + w.
FOLDED = {"plus_one", "norm_plus_one"}
COMMUTATIVE = {"llm.add", "llm.mul"}


class Module:
    """The operations of @step by the names of their results."""

    def __init__(self, text):
        self.defs = {}
        self.returned = None
        for line in text.splitlines():
            line = line.strip()
            if line.startswith("return ") or line.startswith("func.return "):
                self.returned = re.search(r"%[\w#]+", line).group()
            found = re.match(r"((?:%[\w]+(?::\d+)?(?:, )?)+) = ([\w.]+) ?(.*)$", line)
            if found:
                names, op, rest = found.groups()
                for i, name in enumerate(names.split(", ")):
                    base, _, count = name.partition(":")
                    for r in [f"{base}#{k}" for k in range(int(count))] if count else [base]:
                        self.defs[r] = (op, rest, i)

    def node(self, name):
        """Operation, what stands between its operands, attributes, operands, types; None for an argument of the step."""
        if name not in self.defs:
            return None
        op, rest, index = self.defs[name]
        head, _, types = rest.partition(" : ")
        attributes = {}
        if body := re.search(r"\{(.*)\}", rest):
            head = rest[:body.start()]
            types = rest[body.end():].removeprefix(" : ")
            for entry in body.group(1).split(", "):
                key, _, value = entry.partition(" = ")
                if key not in FOLDED:
                    attributes[key] = value.split(" : ")[0] or "true"
        operands = re.findall(r"%[\w#]+", head)
        return op, re.sub(r"%[\w#]+", "%", head).strip(), attributes, operands, types, index


def is_leaf(op):
    # Tables of cosines and the frequencies of which they are made are two spellings of one thing.
    return op.startswith("llm.weight") or op in ("llm.rope_angles", "llm.rope_gather")


def same_number(a, b):
    try:
        return abs(float(a) - float(b)) <= 1e-6 * max(abs(float(a)), abs(float(b)))
    except ValueError:
        return a == b


def difference(x, a, y, b, same):
    """Why value a of module x is not value b of y, or None; `same` holds the pairs that were found equal."""
    if (a, b) in same:
        return None
    why = compare(x, a, y, b, same)
    if why is None:
        same.add((a, b))
    return why


def compare(x, a, y, b, same):
    left, right = x.node(a), y.node(b)
    if left is None or right is None:
        return None if a == b else f"{a} is not {b}"
    if is_leaf(left[0]) and is_leaf(right[0]):
        types = [re.split(r" -> | : |, ", n[4])[-1].strip(" >)") for n in (left, right)]
        return None if types[0] == types[1] else f"{left[0]} of {types[0]}, {right[0]} of {types[1]}"
    for what, p, q in (("operation", left[0], right[0]), ("form", left[1], right[1]), ("types", left[4], right[4]),
                       ("result", left[5], right[5]), ("attributes", sorted(left[2]), sorted(right[2]))):
        if p != q:
            return f"{what} of {left[0]}: {p} and {q}"
    for key in left[2]:
        if not same_number(left[2][key], right[2][key]):
            return f"{left[0]}: {key} = {left[2][key]} and {right[2][key]}"
    orders = [right[3]]
    if left[0] in COMMUTATIVE:
        orders.append(right[3][::-1])
    for order in orders:
        reasons = (difference(x, p, y, q, same) for p, q in zip(left[3], order))
        why = next((reason for reason in reasons if reason), None)
        if why is None:
            return None
    return why


def fused(model, path, *flags):
    llmc("compile", model, "-q", "--emit", f"fuse={path}", *flags)
    return Module(path.read_text())


PAIRS = [(f, n) for f, names in MODELS.items() for n in names if n.endswith(".onnx")]


@pytest.mark.parametrize("family,name", PAIRS)
def test_onnx_and_folder_are_one_model(tiny, tmp_path, family, name):
    # Optimum's export of phi3 has the short factors only.
    limit = ("--max-model-len", 64) if (family, name) == ("phi3", "model.onnx") else ()
    folder = fused(tiny / family, tmp_path / "folder.mlir", *limit)
    graph = fused(tiny / family / name, tmp_path / "graph.mlir")
    assert len(folder.defs) > 20
    assert difference(folder, folder.returned, graph, graph.returned, set()) is None


def test_a_difference_is_found(tiny, tmp_path):
    one = fused(tiny / "llama", tmp_path / "one.mlir")
    head, step = (tmp_path / "one.mlir").read_text().split("func.func @step", 1)
    for old, new in (("heads = 4", "heads = 2"), ("eps = ", "eps = 1"), ("activation = #llm<activation_kind silu>", "activation = #llm<activation_kind gelu>")):
        other = Module(head + "func.func @step" + step.replace(old, new, 1))
        assert difference(one, one.returned, other, other.returned, set()) is not None, old
    assert "heads = 4" in step

"""Graphs that are no decoders: `llmc compile` makes a plan with the entry main, `llmc run --input` runs it."""

import json

import numpy as np
import onnx
import pytest
from conftest import compile_model, generate, llmc
from onnx import TensorProto, helper


def fails(*arguments):
    """The message of a command that fails."""
    result = llmc(*arguments, check=False)
    assert result.returncode == 1 and not result.stdout, result
    return result.stderr


def compile_graph(folder, nodes, inputs, outputs, initializers=(), name="g"):
    graph = helper.make_graph(list(nodes), name, list(inputs), list(outputs), list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, folder / f"{name}.onnx")
    plan = folder / f"{name}.plan"
    llmc("compile", folder / f"{name}.onnx", "-o", plan, "-O0")
    return plan


def give(folder, **arrays):
    """--input arguments for arrays, saved to the folder."""
    arguments = []
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    return arguments


def value(name, dims, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, dims)


@pytest.fixture(scope="module")
def gather(tmp_path_factory):
    """y = softmax(x[indices] @ w), w a constant."""
    folder = tmp_path_factory.mktemp("gather")
    w = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["x", "i"], ["rows"], name="pick"),
             helper.make_node("MatMul", ["rows", "w"], ["z"], name="times"),
             helper.make_node("Softmax", ["z"], ["y"], name="soft", axis=-1)]
    plan = compile_graph(folder, nodes, [value("x", ["n", 4]), value("i", ["k"], TensorProto.INT64)],
                         [value("y", ["k", 3])], [onnx.numpy_helper.from_array(w, "w")])
    return plan, w


def test_runs_any_shape(gather, tmp_path):
    plan, w = gather
    for n, k in ((5, 3), (1, 7), (2, 0)):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        i = (np.arange(k) % n).astype(np.int64)
        out = json.loads(llmc("run", plan, *give(tmp_path, x=x, i=i), "--output-dir", tmp_path / "out", "--json").stdout)
        assert out["outputs"]["y"] == {"type": "float32", "shape": [k, 3]}
        e = np.exp(x[i] @ w)
        np.testing.assert_allclose(np.load(tmp_path / "out/y.npy"), e / e.sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("change, words", [
    (dict(i=None), ["input 'i' is missing", "x float32[n, 4]", "i int64[k]"]),
    (dict(extra=np.zeros(2, np.float32)), ["no input 'extra'"]),
    (dict(x=np.zeros((2, 4), np.float64)), ["input 'x' is float64, must be float32"]),
    (dict(x=np.zeros((2, 4, 1), np.float32)), ["input 'x' has the shape [2, 4, 1], must be [n, 4]"]),
    (dict(x=np.zeros((2, 5), np.float32)), ["input 'x' has the shape [2, 5], must be [n, 4]"]),
    (dict(i=np.array([7])), ["node 'pick'", "index 7 is out of range for a dimension of 2"]),
    (dict(i=np.array([-3])), ["index -3 is out of range"]),
])
def test_wrong_input(gather, tmp_path, change, words):
    arrays = dict(x=np.zeros((2, 4), np.float32), i=np.array([0, 1]))
    arrays.update(change)
    message = fails("run", gather[0], *give(tmp_path, **{k: v for k, v in arrays.items() if v is not None}))
    for word in words:
        assert word in message


def test_one_size_a_symbol(tmp_path):
    plan = compile_graph(tmp_path, [helper.make_node("Add", ["a", "b"], ["y"])],
                         [value("a", ["n"]), value("b", ["n"])], [value("y", ["n"])])
    message = fails("run", plan, *give(tmp_path, a=np.zeros(2, np.float32), b=np.zeros(3, np.float32)))
    assert "where n is 3; input 'a' has it as 2" in message


def test_loop_and_branch(tmp_path):
    """The sum of 0, 1, ... below n, halved where it is above 10."""
    body = helper.make_graph(
        [helper.make_node("Add", ["sum", "i"], ["next"]), helper.make_node("Identity", ["going"], ["on"])], "body",
        [value("i", [], TensorProto.INT64), value("going", [], TensorProto.BOOL), value("sum", [], TensorProto.INT64)],
        [value("on", [], TensorProto.BOOL), value("next", [], TensorProto.INT64)])
    halve = helper.make_graph([helper.make_node("Div", ["sum", "two"], ["h"])], "halve", [],
                              [value("h", [], TensorProto.INT64)])
    keep = helper.make_graph([helper.make_node("Identity", ["sum"], ["k"])], "keep", [],
                             [value("k", [], TensorProto.INT64)])
    zero, two, ten = (onnx.numpy_helper.from_array(np.array(v), name) for v, name in ((0, "zero"), (2, "two"), (10, "ten")))
    nodes = [helper.make_node("Loop", ["n", "", "zero"], ["sum"], body=body),
             helper.make_node("Greater", ["sum", "ten"], ["large"]),
             helper.make_node("If", ["large"], ["y"], then_branch=halve, else_branch=keep)]
    plan = compile_graph(tmp_path, nodes, [value("n", [], TensorProto.INT64)],
                         [value("y", [], TensorProto.INT64)], [zero, two, ten])
    for n in (0, 4, 9):
        llmc("run", plan, *give(tmp_path, n=np.array(n)), "--output-dir", tmp_path / "out")
        total = n * (n - 1) // 2
        assert np.load(tmp_path / "out/y.npy") == (total // 2 if total > 10 else total)


def test_inspect(gather):
    seen = json.loads(llmc("inspect", gather[0], "--json").stdout)
    assert seen["entry"] == "main"
    assert seen["inputs"][0] == {"name": "x", "kind": "tensor", "type": "float32", "shape": ["n", 4]}
    assert "input   i  int64[k]" in llmc("inspect", gather[0]).stdout
    assert "ok" in llmc("verify", gather[0]).stdout


def test_text_is_refused(gather):
    assert "takes tensors" in fails("run", gather[0], "-p", "hello")


@pytest.mark.parametrize("type,dtype,tolerance", [(TensorProto.FLOAT16, np.float16, 2e-3), (TensorProto.FLOAT, np.float32, 1e-6)])
def test_small_floats_reduce_along_their_axes(tmp_path, type, dtype, tolerance):
    """Kernels compute f16 in f32: operands of other types (axes here) must come along."""
    nodes = [helper.make_node("ReduceMax", ["x", "axes"], ["top"], keepdims=1),
             helper.make_node("ReduceMean", ["x", "axes"], ["mean"], keepdims=0),
             helper.make_node("ReduceLogSumExp", ["x", "axes"], ["lse"], keepdims=0),
             helper.make_node("CumSum", ["x", "last"], ["sums"])]
    plan = compile_graph(tmp_path, nodes, [value("x", ["n", 4, 3], type)],
                         [value("top", ["n", 1, 3], type), value("mean", ["n", 3], type), value("lse", ["n", 3], type),
                          value("sums", ["n", 4, 3], type)],
                         [onnx.numpy_helper.from_array(np.array([1], np.int64), "axes"),
                          onnx.numpy_helper.from_array(np.array(2, np.int64), "last")])
    x = np.random.default_rng(3).standard_normal((2, 4, 3)).astype(dtype)
    llmc("run", plan, *give(tmp_path, x=x), "--output-dir", tmp_path / "out")
    wide = x.astype(np.float64)
    wanted = {"top": wide.max(1, keepdims=True), "mean": wide.mean(1), "lse": np.log(np.exp(wide).sum(1)),
              "sums": wide.cumsum(2)}
    for name, want in wanted.items():
        got = np.load(tmp_path / "out" / f"{name}.npy")
        assert got.dtype == dtype and got.shape == want.shape
        assert np.abs(got - want).max() <= tolerance * max(1, np.abs(want).max()), name


def run_plan(plan, folder, **arrays):
    """The outputs of a plan by name."""
    llmc("run", plan, *give(folder, **arrays), "--output-dir", folder / "out")
    return {file.stem: np.load(file) for file in (folder / "out").glob("*.npy")}


@pytest.mark.parametrize("type", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_two_masks_of_the_least_float(tmp_path, type):
    """Case O08: their sum, or the cast of one, is -inf. A row of nothing else is no NaN."""
    least = np.full((2, 3), np.finfo(np.float32).min, np.float32)
    least[0] = 0
    cast = lambda x, y: helper.make_node("Cast", [x], [y], to=type)
    nodes = [cast("scores", "s"), cast("mask", "m"), helper.make_node("Add", ["s", "m"], ["once"]),
             helper.make_node("Add", ["once", "m"], ["twice"]), helper.make_node("Softmax", ["twice"], ["p"], axis=-1),
             helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT)]
    for name, constants, arrays in (("dynamic", [], dict(mask=least)),
                                    ("constant", [onnx.numpy_helper.from_array(least, "mask")], {})):
        inputs = [value("scores", [1, 1, 2, 3])] + [value("mask", [2, 3])] * (not constants)
        plan = compile_graph(tmp_path, nodes, inputs, [value("y", [1, 1, 2, 3])], constants, name)
        scores = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
        y = run_plan(plan, tmp_path, scores=scores[None, None], **arrays)["y"][0, 0]
        np.testing.assert_allclose(y[0], np.exp(scores[0]) / np.exp(scores[0]).sum(), atol=4e-3)
        assert (y[1] == 0).all(), "as attention has it"


def counting_loop(folder, hasLimit):
    """v = v + [1, 1] while min(v) < L, every v kept."""
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "one"], ["next"]), helper.make_node("ReduceMin", ["next"], ["least"], keepdims=0),
         helper.make_node("Less", ["least", "L"], ["on"]), helper.make_node("Identity", ["next"], ["seen"])], "body",
        [value("i", [], TensorProto.INT64), value("going", [], TensorProto.BOOL), value("v", [2])],
        [value("on", [], TensorProto.BOOL), value("next", [2]), value("seen", [2])])
    nodes = [helper.make_node("Loop", ["M" if hasLimit else "", "going", "zeros"], ["last", "all"], body=body)]
    inputs = [value("M", [], TensorProto.INT64)] * hasLimit + [value("going", [], TensorProto.BOOL), value("L", [])]
    constants = [onnx.numpy_helper.from_array(np.full(2, x, np.float32), name) for x, name in ((1, "one"), (0, "zeros"))]
    return compile_graph(folder, nodes, inputs, [value("last", [2]), value("all", ["k", 2])], constants,
                         "limited" if hasLimit else "endless")


def test_loop_of_no_turn_and_of_fewer_than_its_limit(tmp_path):
    """Case O09."""
    plan = counting_loop(tmp_path, True)
    for limit, going, least, turns in ((0, True, 9, 0), (5, False, 9, 0), (5, True, 3, 3), (5, True, 99, 5), (-1, True, 3, 0)):
        out = run_plan(plan, tmp_path, M=np.array(limit), going=np.array(going), L=np.array(least, np.float32))
        assert (out["last"] == turns).all() and out["all"].shape == (turns, 2), (limit, going, least)
        assert (out["all"] == np.arange(1, turns + 1)[:, None]).all()
    out = run_plan(counting_loop(tmp_path, False), tmp_path, going=np.array(True), L=np.array(3, np.float32))
    np.testing.assert_array_equal(out["all"], [[1, 1], [2, 2], [3, 3]])


@pytest.mark.parametrize("attributes,last,all", [
    ({}, 7, [1, 3, 7]),
    (dict(scan_input_directions=[1]), 7, [4, 6, 7]),
    (dict(scan_output_directions=[1]), 7, [7, 3, 1]),
    (dict(scan_input_directions=[1], scan_output_directions=[1]), 7, [7, 6, 4]),
    (dict(scan_input_axes=[-1], scan_output_axes=[-1]), [6, 60], [[1, 3, 6], [10, 30, 60]]),
])
def test_scan_directions_and_axes(tmp_path, attributes, last, all):
    """Case O27: s = s + e over x, every s kept; and over an x of no elements."""
    isMatrix = np.ndim(last) == 1
    element, dims = [2] * isMatrix, [2] * isMatrix + ["k"]
    body = helper.make_graph([helper.make_node("Add", ["s", "e"], ["next"]), helper.make_node("Identity", ["next"], ["seen"])],
                             "body", [value("s", element), value("e", element)],
                             [value("next", element), value("seen", element)])
    plan = compile_graph(tmp_path, [helper.make_node("Scan", ["zero", "x"], ["last", "all"], body=body, num_scan_inputs=1,
                                                     **attributes)],
                         [value("x", dims)], [value("last", element), value("all", dims)],
                         [onnx.numpy_helper.from_array(np.zeros(element, np.float32), "zero")])
    x = np.array([[1, 2, 3], [10, 20, 30]] if isMatrix else [1, 2, 4], np.float32)
    out = run_plan(plan, tmp_path, x=x)
    np.testing.assert_array_equal(out["last"], last)
    np.testing.assert_array_equal(out["all"], all)
    none = run_plan(plan, tmp_path, x=x[..., :0])
    assert (none["last"] == 0).all() and none["all"].shape == x[..., :0].shape


def left_padded(plan, folder, prompts, steps):
    """Greedy ids and logits of each prompt, run as rows of one batch that are padded on the left, as the caller of an
    exported decoder does: positions count the mask's ones, every step sees the mask."""
    width = max(map(len, prompts))
    pads = np.array([width - len(p) for p in prompts])
    ids = np.array([[7] * (width - len(p)) + p for p in prompts])
    mask = (np.arange(width) >= pads[:, None]).astype(np.int64)
    cache = {f"past_key_values.{i}.{kind}": np.zeros((len(prompts), 2, 0, 16), np.float32)
             for i in range(2) for kind in ("key", "value")}
    seen = []
    for _ in range(steps):
        positions = np.maximum(mask.cumsum(1) - 1, 0)[:, -ids.shape[1]:]
        out = run_plan(plan, folder, input_ids=ids, attention_mask=mask, position_ids=positions, **cache)
        logits = out["scores"][:, -1]
        ids = logits.argmax(1)[:, None]
        mask = np.concatenate([mask, np.ones_like(ids)], 1)
        cache = {f"past_key_values.{name.removeprefix('present.')}": x for name, x in out.items() if name != "scores"}
        seen.append((ids[:, 0], logits))
    return [([int(i[row]) for i, _ in seen], np.stack([x[row] for _, x in seen])) for row in range(len(prompts))]


@pytest.mark.parametrize("form", ["model", "dynamo23"])
def test_rows_of_a_left_padded_batch(tiny, tmp_path, form):
    """Case O19: eight tokens after prompts of 3 and 7 in one batch, alone, and by the decoder, which knows no padding."""
    model = onnx.load(tiny / f"llama/{form}.onnx")
    model.graph.output[0].name = "scores"  # a graph of this output is no decoder: it runs as it is
    for node in model.graph.node:
        node.output[:] = ["scores" if name == "logits" else name for name in node.output]
    onnx.save(model, tmp_path / "graph.onnx")
    plan = compile_model(tmp_path / "graph.onnx", tmp_path / "graph.plan", "-O0")
    prompts = [[5, 9, 3], [11, 2, 8, 40, 7, 300, 6]]
    both = left_padded(plan, tmp_path, prompts, 8)
    decoder = compile_model(tiny / f"llama/{form}.onnx", tmp_path / "decoder.plan", "-O0", "--kv-cache-dtype", "f32")
    for row, prompt in enumerate(prompts):
        ids, logits = left_padded(plan, tmp_path, [prompt], 8)[0]
        assert both[row][0] == ids == generate(decoder, prompt, 8)
        np.testing.assert_allclose(both[row][1], logits, atol=1e-5)

"""Contrib operators in a graph of any kind: what ONNX Runtime 1.31.1 computes on a CPU, and NumPy for the two that it has
on GPUs only or refuses so small."""
import tarfile

import numpy as np
import onnx
import pytest

from conftest import STORED, llmc

NAMES = ["attention", "fused_matmul", "gqa_bias_smooth", "gqa_decode", "gqa_noncausal", "gqa_packed_sink", "gqa_prompt",
         "gqa_prompt_rotary_past", "gqa_window_softcap", "mha_bias_mask", "moe_gelu_0", "moe_gelu_1", "moe_relu_0",
         "moe_relu_1", "moe_silu_0", "moe_silu_1", "moe_swiglu", "qmoe4", "qmoe8",
         "attention_f16", "fastgelu_f16", "fused_matmul_f16", "gqa_f16", "gqa_f16_decode", "gqa_f16_int8", "gqa_int8_channel",
         "gqa_int8_decode", "gqa_int8_tensor", "gqa_qk_output1", "gqa_qk_output2", "matmul_nbits_f16", "mha_f16", "moe_f16",
         "quickgelu_f16", "rotary_f16", "skip_ln_f16", "skip_rms_f16"]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contrib")
    with tarfile.open(STORED / "contrib.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "contrib"


def valid_rows(present, inputs):
    """A cache [batch, heads, room, size] up to each sequence's length: what lies beyond is nobody's."""
    return [present[b, :, :length + 1] for b, length in enumerate(inputs["i5"])]


def test_every_case_is_listed(cases):
    assert sorted(NAMES) == sorted(path.stem for path in cases.glob("*.onnx"))


@pytest.mark.parametrize("name", NAMES)
def test_as_onnx_runtime(cases, tmp_path, name):
    llmc("compile", cases / f"{name}.onnx", "-O0", "-q", "-o", tmp_path / "g.plan")
    inputs = dict(np.load(cases / f"{name}.npz"))
    flags = []
    for key, value in inputs.items():
        np.save(tmp_path / f"{key}.npy", value)
        flags += ["--input", f"{key}={tmp_path / key}.npy"]
    llmc("run", tmp_path / "g.plan", *flags, "--output-dir", tmp_path / "out")
    for key, expected in np.load(cases / f"{name}.ort.npz").items():
        got = np.load(tmp_path / "out" / f"{key}.npy")
        assert got.shape == expected.shape and got.dtype == expected.dtype, key
        pairs = [(got, expected)]
        if name.startswith("gqa") and key in ("o1", "o2"):
            pairs = list(zip(valid_rows(got, inputs), valid_rows(expected, inputs)))
        # ONNX Runtime computes f16 nodes in f32; here every operation rounds. A quantized cache is equal.
        tolerance = {"f": 2e-5, "e": 4e-3, "b": 0}[expected.dtype.char]
        for a, b in pairs:
            a, b = a.astype(np.float64), b.astype(np.float64)
            assert np.abs(a - b).max() <= tolerance * max(1, np.abs(b).max()), key


def run_node(tmp_path, operator, inputs, outputs, **attributes):
    """Compiles and runs one node; inputs has an array or None for each."""
    helper = onnx.helper
    given = {f"i{k}": x for k, x in enumerate(inputs) if x is not None}
    node = helper.make_node(operator, [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)],
                            [f"o{k}" for k in range(outputs)], domain="com.microsoft", **attributes)
    infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for k, x in given.items()]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info(f"o{k}", 1, None) for k in range(outputs)])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "g.onnx")
    llmc("compile", tmp_path / "g.onnx", "-O0", "-q", "-o", tmp_path / "g.plan")
    flags = []
    for key, value in given.items():
        np.save(tmp_path / f"{key}.npy", value)
        flags += ["--input", f"{key}={tmp_path / key}.npy"]
    llmc("run", tmp_path / "g.plan", *flags, "--output-dir", tmp_path / "out")
    return [np.load(tmp_path / "out" / f"o{k}.npy") for k in range(outputs)]


def attend(q, keys, values, sees):
    """One head: softmax(q k^T / sqrt(size)) v over the keys that sees [queries, keys] allows."""
    scores = np.where(sees, q @ keys.T / np.sqrt(q.shape[1]), -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values


@pytest.mark.parametrize("window", [-1, 3])
def test_paged_attention(tmp_path, window):
    rng = np.random.default_rng(1)
    heads, kv_heads, size, block = 4, 2, 8, 4
    lengths, pasts = [3, 1], [2, 6]  # new tokens, tokens in the cache
    table = np.array([[5, 0], [2, 4]], np.int32)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    q, k, v = draw(4, heads * size), draw(4, kv_heads * size), draw(4, kv_heads * size)
    caches = [draw(6, block, kv_heads, size) for _ in range(2)]
    starts = np.array([0, 3, 4], np.int32)
    expected, filled = np.zeros_like(q), [c.copy() for c in caches]
    for b, (length, past) in enumerate(zip(lengths, pasts)):
        rows = range(starts[b], starts[b + 1])
        for t in rows:
            place = past + t - starts[b]
            for cache, new in zip(filled, (k, v)):
                cache[table[b, place // block], place % block] = new[t].reshape(kv_heads, size)
        all_keys, all_values = (c[table[b]].reshape(-1, kv_heads, size)[:past + length] for c in filled)
        place = past + np.arange(length)[:, None] - np.arange(past + length)[None]
        sees = (place >= 0) & ((place < window) if window > 0 else True)
        for h in range(heads):
            columns = slice(h * size, (h + 1) * size)
            expected[rows, columns] = attend(q[rows, columns], all_keys[:, h // 2], all_values[:, h // 2], sees)
    got = run_node(tmp_path, "PagedAttention", [q, k, v, *caches, starts, np.array(pasts, np.int32), table], 3,
                   num_heads=heads, kv_num_heads=kv_heads, local_window_size=window)
    for a, b in zip(got, [expected, *filled]):
        assert np.abs(a - b).max() < 1e-5


def test_sparse_attention(tmp_path):
    rng = np.random.default_rng(2)
    heads, kv_heads, size, block, tokens, room = 4, 2, 8, 4, 11, 16
    # Two layouts in turn over the heads; a row of blocks of the queries names its blocks of keys.
    layouts = [[[0], [1], [0, 2]], [[0], [0, 1], [1, 2]]]
    starts = np.array([[0, 1, 2, 4, 4], [0, 1, 3, 5, 5]], np.int32)
    columns = np.array([[0, 1, 0, 2, -1], [0, 0, 1, 1, 2]], np.int32)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    q, k, v = draw(1, tokens, heads * size), draw(1, tokens, kv_heads * size), draw(1, tokens, kv_heads * size)
    empty = np.zeros((1, kv_heads, room, size), np.float32)
    expected = np.zeros_like(q)
    place = np.arange(tokens)
    for h in range(heads):
        allowed = np.array([[j // block in layouts[h % 2][i // block] for j in place] for i in place])
        part = slice(h * size, (h + 1) * size)
        kv = slice(h // 2 * size, (h // 2 + 1) * size)
        expected[0, :, part] = attend(q[0, :, part], k[0, :, kv], v[0, :, kv], allowed & (place[:, None] >= place))
    lengths = np.array([tokens], np.int32)
    got = run_node(tmp_path, "SparseAttention", [q, k, v, empty, empty, starts, columns, lengths, lengths], 3,
                   num_heads=heads, kv_num_heads=kv_heads, sparse_block_size=block)
    assert np.abs(got[0] - expected).max() < 1e-5
    for cache, new in zip(got[1:], (k, v)):
        assert np.array_equal(cache[0, :, :tokens], new[0].reshape(tokens, kv_heads, size).transpose(1, 0, 2))


@pytest.mark.parametrize("packed", [False, True])
def test_normalized_queries_and_keys(tmp_path, packed):
    # GroupQueryAttention's q_norm_weight and k_norm_weight, which ONNX Runtime has on GPUs only.
    rng = np.random.default_rng(3)
    heads, kv_heads, size, tokens = 4, 2, 16, 5
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    q, k, v = draw(1, tokens, heads * size), draw(1, tokens, kv_heads * size), draw(1, tokens, kv_heads * size)
    weights = draw(size), draw(size)
    norm = lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w
    queries, keys = (norm(x[0].reshape(tokens, -1, size).astype(np.float64), w) for x, w in zip((q, k), weights))
    values = v[0].reshape(tokens, kv_heads, size)
    sees = np.tril(np.ones((tokens, tokens), bool))
    expected = np.stack([attend(queries[:, h], keys[:, h // 2], values[:, h // 2], sees) for h in range(heads)], 1)
    inputs = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
    lengths = [np.array([tokens - 1], np.int32), np.array([tokens], np.int32)]
    got = run_node(tmp_path, "GroupQueryAttention", inputs + [None, None] + lengths + [None] * 7 + list(weights), 3,
                   num_heads=heads, kv_num_heads=kv_heads, qk_norm_epsilon=1e-5)
    assert np.abs(got[0][0] - expected.reshape(tokens, -1)).max() < 1e-5
    assert np.abs(got[1][0].transpose(1, 0, 2) - keys).max() < 1e-5

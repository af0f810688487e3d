"""Families of which no exported model is stored: random folders against a plain NumPy forward pass of each family.

The reference follows the papers and the published configurations, one function a family, and shares nothing with the
compiler's description of decoders."""
import json
import math

import numpy as np
import pytest

from conftest import compile_model, generate

HIDDEN, HEADS, KV, SIZE, INNER, VOCAB, LAYERS = 32, 4, 2, 8, 48, 64, 5
PROMPT = [5, 61, 17, 2, 33, 33, 9, 40, 1, 22]


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


class Weights(dict):
    """Random tensors, made when they are first asked for: the reference's names are the file's."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def matrix(self, name, rows, columns):
        return self.setdefault(f"{name}.weight", self.random.normal(0, 0.2, (rows, columns)).astype(np.float32))

    def vector(self, name, size, centre=0.0):
        return self.setdefault(name, (centre + self.random.normal(0, 0.1, size)).astype(np.float32))

    def linear(self, x, name, rows, bias=False):
        y = x @ self.matrix(name, rows, x.shape[-1]).astype(np.float64).T
        return y + self.vector(f"{name}.bias", rows) if bias else y


def rms(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def layer_norm(w, x, name):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return scaled * w.vector(f"{name}.weight", x.shape[-1], 1.0) + w.vector(f"{name}.bias", x.shape[-1])


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def rotate(x, rotary, theta=10000.0):
    """x [T, heads, size]: pairs (i, i + rotary / 2) of the first `rotary` values."""
    half = rotary // 2
    angle = np.arange(len(x))[:, None] * theta ** (-2 * np.arange(half) / rotary)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b, rest = x[..., :half], x[..., half:rotary], x[..., rotary:]
    return np.concatenate([a * c - b * s, b * c + a * s, rest], -1)


def attend(q, k, v, scale):
    """Causal attention: q [T, heads, size], k and v [T, KV heads, size]."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = np.einsum("qhd,khd->hqk", q, k) * scale
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), v).reshape(len(q), -1)


def qkv(w, x, at, bias=False):
    return [w.linear(x, f"{at}.{n}_proj", count * SIZE, bias).reshape(len(x), count, SIZE)
            for n, count in (("q", HEADS), ("k", KV), ("v", KV))]


def gated(w, x, at, activation):
    return w.linear(activation(w.linear(x, f"{at}.gate_proj", INNER)) * w.linear(x, f"{at}.up_proj", INNER),
                    f"{at}.down_proj", HIDDEN)


def gemma(w, ids):
    def norm(x, name):
        return rms(x, 1 + w.vector(f"{name}.weight", HIDDEN), 1e-6)

    x = w.matrix("model.embed_tokens", VOCAB, HIDDEN)[ids] * np.sqrt(HIDDEN)
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        q, k, v = qkv(w, norm(x, f"{at}.input_layernorm"), f"{at}.self_attn")
        mixed = attend(rotate(q, SIZE), rotate(k, SIZE), v, SIZE**-0.5)
        x = x + w.linear(mixed, f"{at}.self_attn.o_proj", HIDDEN)
        x = x + gated(w, norm(x, f"{at}.post_attention_layernorm"), f"{at}.mlp", gelu_tanh)
    return norm(x, "model.norm") @ w.matrix("model.embed_tokens", VOCAB, HIDDEN).T


def llama_like(w, ids, embedding=1.0, residual=1.0, scale=SIZE**-0.5, logits=1.0, rope=lambda i: True, tied=False):
    def norm(x, name):
        return rms(x, w.vector(f"{name}.weight", HIDDEN, 1.0), 1e-5)

    x = w.matrix("model.embed_tokens", VOCAB, HIDDEN)[ids] * embedding
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        q, k, v = qkv(w, norm(x, f"{at}.input_layernorm"), f"{at}.self_attn")
        if rope(i):
            q, k = rotate(q, SIZE), rotate(k, SIZE)
        x = x + residual * w.linear(attend(q, k, v, scale), f"{at}.self_attn.o_proj", HIDDEN)
        x = x + residual * gated(w, norm(x, f"{at}.post_attention_layernorm"), f"{at}.mlp", silu)
    head = w.matrix("model.embed_tokens" if tied else "lm_head", VOCAB, HIDDEN)
    return norm(x, "model.norm") @ head.T * logits


def granite(w, ids):
    return llama_like(w, ids, embedding=12.0, residual=0.22, scale=0.2, logits=1 / 8)


def smollm3(w, ids):
    return llama_like(w, ids, rope=lambda i: i % 4 != 3, tied=True)


def olmo2(w, ids):
    def norm(x, name):
        return rms(x, w.vector(f"{name}.weight", x.shape[-1], 1.0), 1e-5)

    x = w.matrix("model.embed_tokens", VOCAB, HIDDEN)[ids].astype(np.float64)
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        q, k, v = qkv(w, x, f"{at}.self_attn")
        q = norm(q.reshape(len(x), -1), f"{at}.self_attn.q_norm").reshape(q.shape)  # of all heads together
        k = norm(k.reshape(len(x), -1), f"{at}.self_attn.k_norm").reshape(k.shape)
        mixed = attend(rotate(q, SIZE), rotate(k, SIZE), v, SIZE**-0.5)
        x = x + norm(w.linear(mixed, f"{at}.self_attn.o_proj", HIDDEN), f"{at}.post_attention_layernorm")
        x = x + norm(gated(w, x, f"{at}.mlp", silu), f"{at}.post_feedforward_layernorm")
    return norm(x, "model.norm") @ w.matrix("lm_head", VOCAB, HIDDEN).T


def phi(w, ids):
    x = w.matrix("model.embed_tokens", VOCAB, HIDDEN)[ids].astype(np.float64)
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        normed = layer_norm(w, x, f"{at}.input_layernorm")
        q, k, v = qkv(w, normed, f"{at}.self_attn", bias=True)
        mixed = attend(rotate(q, SIZE // 2), rotate(k, SIZE // 2), v, SIZE**-0.5)
        attended = w.linear(mixed, f"{at}.self_attn.dense", HIDDEN, bias=True)
        inner = gelu_tanh(w.linear(normed, f"{at}.mlp.fc1", INNER, bias=True))
        x = x + attended + w.linear(inner, f"{at}.mlp.fc2", HIDDEN, bias=True)
    return w.linear(layer_norm(w, x, "model.final_layernorm"), "lm_head", VOCAB, bias=True)


def falcon(w, ids):
    """Falcon-RW: ALiBi, which is added to the scores before they are scaled; blocks one after the other."""
    x = w.matrix("transformer.word_embeddings", VOCAB, HIDDEN)[ids].astype(np.float64)
    distance = np.arange(len(ids))[None, :] - np.arange(len(ids))[:, None]
    slopes = 2.0 ** (-8 / HEADS * np.arange(1, HEADS + 1))
    for i in range(LAYERS):
        at = f"transformer.h.{i}"
        fused = w.linear(layer_norm(w, x, f"{at}.input_layernorm"), f"{at}.self_attention.query_key_value", 3 * HIDDEN, True)
        q, k, v = fused.reshape(len(x), HEADS, 3, SIZE).transpose(2, 0, 1, 3)
        scores = (np.einsum("qhd,khd->hqk", q, k) + slopes[:, None, None] * distance) * SIZE**-0.5
        scores[:, distance > 0] = -np.inf
        p = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), v).reshape(len(x), -1)
        x = x + w.linear(mixed, f"{at}.self_attention.dense", HIDDEN, True)
        inner = w.linear(layer_norm(w, x, f"{at}.post_attention_layernorm"), f"{at}.mlp.dense_h_to_4h", 4 * HIDDEN, True)
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / np.sqrt(2)))
        x = x + w.linear(inner, f"{at}.mlp.dense_4h_to_h", HIDDEN, True)
    return layer_norm(w, x, "transformer.ln_f") @ w.matrix("transformer.word_embeddings", VOCAB, HIDDEN).T


FAMILIES = {
    gemma: {"rms_norm_eps": 1e-6, "hidden_act": "gelu", "head_dim": SIZE},
    granite: {"rms_norm_eps": 1e-5, "embedding_multiplier": 12.0, "residual_multiplier": 0.22,
              "attention_multiplier": 0.2, "logits_scaling": 8.0},
    smollm3: {"rms_norm_eps": 1e-5},
    olmo2: {"rms_norm_eps": 1e-5},
    falcon: {"alibi": True, "bias": True, "multi_query": False, "new_decoder_architecture": False, "parallel_attn": False,
             "num_key_value_heads": None, "rope_theta": None},
    phi: {"layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "hidden_act": "gelu_new"},
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_logits(tmp_path, family):
    weights = Weights(seed=3)
    expected = family(weights, PROMPT)
    (tmp_path / "config.json").write_text(json.dumps({
        "model_type": family.__name__, "hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": KV,
        "intermediate_size": INNER, "num_hidden_layers": LAYERS, "vocab_size": VOCAB, "max_position_embeddings": 64,
        "rope_theta": 10000.0, **FAMILIES[family]}))  # None: not a key of that family
    write_safetensors(tmp_path / "model.safetensors", weights)
    plan = compile_model(tmp_path, tmp_path / "m.plan", "-O2", "--cpu-level", "x86-64-v3", "--kv-cache-dtype", "f32",
                         "--activations", "f32")
    generate(plan, PROMPT, 1, "--logits-out", tmp_path / "logits.npy")
    assert np.abs(np.load(tmp_path / "logits.npy") - expected).max() < 1e-4 * np.abs(expected).max()

#!/usr/bin/env python3
"""Measures speculation with a draft model whose guesses are right as often as asked for.

    draft_pair.py --llmc build/bin/llmc --tokenizer HF_FOLDER --directory OUT [--acceptance 0.8] [--threads 1,2]

Makes two Llama-shaped Hugging Face folders with HF_FOLDER's tokenizer, compiles both with --int4 (the large one with
what --quantization says) and lets `llmc bench --prompts` answer ten prompts with and without the small one. In both
models o_proj and down_proj are zero, so that the next token follows from the present one: a row of the embedding is the code (random signs) of the token that follows,
and the head has every token's code. The large model follows one cycle through the vocabulary; the small one goes
elsewhere after a share of the tokens. All other weights are random, and cost what they cost in any model of that shape.

By default the large one is a Llama of 1.1 billion parameters, and OUT takes 4 GB. Needs numpy. The same arguments give
the same bytes.
"""
import argparse
import json
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy as np

LARGE = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
             num_key_value_heads=8, head_dim=64)
SMALL = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, head_dim=64)
TINY = dict(LARGE, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2)
#: Ids below are bytes and special tokens of usual tokenizers; no answer has them.
FIRST_ID = 300


def vocabulary_of(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    ids = list(tokenizer["model"]["vocab"].values()) + [t["id"] for t in tokenizer.get("added_tokens", [])]
    return max(ids) + 1


def successors(vocabulary, acceptance, rng):
    """What follows each token in the large model, and in the small one."""
    order = rng.permutation(np.arange(FIRST_ID, vocabulary))
    large = np.full(vocabulary, order[0])
    large[order] = np.roll(order, -1)
    elsewhere = np.where(large == order[0], order[1], order[0])
    return large, np.where(rng.random(vocabulary) < acceptance, large, elsewhere)


def write_safetensors(path, tensors):
    """`tensors`: name -> shape and a function that gives the array, so that one at a time is in memory."""
    header, offset = {}, 0
    for name, (shape, _) in tensors.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for shape, make in tensors.values():
            f.write(np.ascontiguousarray(make(), dtype=np.float16).reshape(shape).tobytes())


def write_model(folder, shape, follows, tokenizer, seed):
    folder.mkdir(parents=True, exist_ok=True)
    hidden, inner = shape["hidden_size"], shape["intermediate_size"]
    q = shape["num_attention_heads"] * shape["head_dim"]
    kv = shape["num_key_value_heads"] * shape["head_dim"]
    rng = np.random.default_rng(seed)
    codes = rng.choice(np.array([-1, 1], dtype=np.float16), size=(len(follows), hidden))
    noise = (0.02 * rng.standard_normal(1 << 20)).astype(np.float16)

    def random(*size):
        return size, lambda: np.resize(noise, size)

    def constant(value, *size):
        return size, lambda: np.full(size, value)

    tensors = {"model.embed_tokens.weight": (codes.shape, lambda: codes[follows])}
    for i in range(shape["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        tensors |= {
            layer + "input_layernorm.weight": constant(1, hidden),
            layer + "self_attn.q_proj.weight": random(q, hidden),
            layer + "self_attn.k_proj.weight": random(kv, hidden),
            layer + "self_attn.v_proj.weight": random(kv, hidden),
            layer + "self_attn.o_proj.weight": constant(0, hidden, q),
            layer + "post_attention_layernorm.weight": constant(1, hidden),
            layer + "mlp.gate_proj.weight": random(inner, hidden),
            layer + "mlp.up_proj.weight": random(inner, hidden),
            layer + "mlp.down_proj.weight": constant(0, hidden, inner),
        }
    tensors["model.norm.weight"] = constant(1, hidden)
    tensors["lm_head.weight"] = codes.shape, lambda: codes
    write_safetensors(folder / "model.safetensors", tensors)
    config = dict(shape, architectures=["LlamaForCausalLM"], model_type="llama", hidden_act="silu",
                  max_position_embeddings=4096, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False,
                  vocab_size=len(follows), bos_token_id=1, eos_token_id=2)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        if (tokenizer / name).exists():
            shutil.copy(tokenizer / name, folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmc", required=True, type=pathlib.Path)
    parser.add_argument("--tokenizer", required=True, type=pathlib.Path, help="a folder with tokenizer.json")
    parser.add_argument("--directory", required=True, type=pathlib.Path, help="for models, plans and prompts")
    parser.add_argument("--acceptance", type=float, default=0.8, help="share of the small model's guesses that are right")
    parser.add_argument("--quantization", choices=["int4", "int8", "none"], default="int4", help="of the large model's weights")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--tokens", type=int, default=160, help="of each answer")
    parser.add_argument("--guesses", type=int, default=8, help="num_speculative_tokens")
    parser.add_argument("--not-adaptive", action="store_true", help="always as many guesses as there may be")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="a large model of two small layers: to try the script")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not 0 <= arguments.acceptance <= 1:
        sys.exit("--acceptance must be from 0 to 1")
    out = arguments.directory
    vocabulary = vocabulary_of(arguments.tokenizer)
    if vocabulary < FIRST_ID + 2:
        sys.exit(f"{arguments.tokenizer}: {vocabulary} tokens; it takes {FIRST_ID + 2} or more")
    large, small = successors(vocabulary, arguments.acceptance, np.random.default_rng(1))
    for name, shape, follows in (("large", TINY if arguments.tiny else LARGE, large), ("small", SMALL, small)):
        write_model(out / name, shape, follows, arguments.tokenizer, 2)
        quantization = "int4" if name == "small" else arguments.quantization
        flags = [] if quantization == "none" else [f"--{quantization}"]
        subprocess.run([arguments.llmc, "compile", "-q", out / name, *flags, "-o", out / f"{name}.plan"], check=True)
    words = "Once upon a time there was a light on the hill beside the harbour of a small town".split()
    prompts = [{"name": f"prompt {i}", "prompt": " ".join(words[i:] + words[:i])} for i in range(10)]
    (out / "prompts.jsonl").write_text("".join(json.dumps(p) + "\n" for p in prompts))
    config = json.dumps({"model": str(out / "small.plan"), "num_speculative_tokens": arguments.guesses,
                         "adaptive": not arguments.not_adaptive})
    for threads in arguments.threads.split(","):
        subprocess.run([arguments.llmc, "bench", out / "large.plan", "--prompts", out / "prompts.jsonl",
                        "--speculative-config", config, "-n", str(arguments.tokens), "-t", threads,
                        "-r", str(arguments.repetitions)] + (["--json"] if arguments.json else []), check=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes a Llama of 6 GB (random bf16 weights, shards of 2 GB) and compiles it within 1 GiB of private memory plus its
largest tensor. Prints the speed at which the source was read, and fails below --min-speed MB/s (0: only the memory counts).

    LLMC_BIN=build/bin test/e2e/large_model.py --dir /some/disk [--gigabytes 6] [--flags "--int4"] [--min-speed 200]
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

import numpy as np

HIDDEN, INNER, VOCABULARY, HEADS = 4096, 11008, 32000, 32
SHARD = 2 << 30


def tensors(layers):
    """Names and shapes, in the order in which they are stored."""
    yield "model.embed_tokens.weight", [VOCABULARY, HIDDEN]
    for i in range(layers):
        own = f"model.layers.{i}."
        for name in ("q", "k", "v", "o"):
            yield f"{own}self_attn.{name}_proj.weight", [HIDDEN, HIDDEN]
        yield own + "mlp.gate_proj.weight", [INNER, HIDDEN]
        yield own + "mlp.up_proj.weight", [INNER, HIDDEN]
        yield own + "mlp.down_proj.weight", [HIDDEN, INNER]
        yield own + "input_layernorm.weight", [HIDDEN]
        yield own + "post_attention_layernorm.weight", [HIDDEN]
    yield "model.norm.weight", [HIDDEN]


def bytes_of(shape):
    return 2 * int(np.prod(shape))


def write_model(folder, gigabytes):
    """The folder's bytes and those of its largest tensor."""
    per_layer = sum(bytes_of(s) for n, s in tensors(1) if n.startswith("model.layers."))
    layers = -(-int(gigabytes * 1e9) // per_layer)
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": HIDDEN,
              "intermediate_size": INNER, "num_hidden_layers": layers, "num_attention_heads": HEADS,
              "num_key_value_heads": HEADS, "vocab_size": VOCABULARY, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "bfloat16",
              "bos_token_id": 1, "eos_token_id": 2}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    shards, room = [[]], SHARD
    for name, shape in tensors(layers):
        if bytes_of(shape) > room and shards[-1]:
            shards.append([])
            room = SHARD
        shards[-1].append((name, shape))
        room -= bytes_of(shape)
    # Values that differ from tensor to tensor: one block of random numbers, from another place each time.
    noise = np.random.default_rng(1).normal(0, 0.02, 40_000_003).astype(np.float32)
    noise = ((noise.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
    ones = np.full(HIDDEN, 0x3F80, np.uint16)
    total = largest = start = 0
    index = {}
    for number, shard in enumerate(shards):
        name = f"model-{number + 1:05}-of-{len(shards):05}.safetensors"
        head, offset = {}, 0
        for tensor, shape in shard:
            head[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + bytes_of(shape)]}
            index[tensor] = name
            offset += bytes_of(shape)
            largest = max(largest, bytes_of(shape))
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / name, "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            for tensor, shape in shard:
                left = int(np.prod(shape))
                if len(shape) == 1:
                    out.write(ones.tobytes())
                    left = 0
                while left:
                    count = min(left, len(noise) - start)
                    out.write(noise[start:start + count].data)
                    left -= count
                    start = (start + count) % len(noise)
        total += offset
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": index}))
    return total, largest


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--dir", type=pathlib.Path, required=True, help="a folder for the model; emptied at the end")
    arguments.add_argument("--gigabytes", type=float, default=6)
    arguments.add_argument("--flags", default="--int4", help="of llmc compile")
    arguments.add_argument("--min-speed", type=float, default=200, help="MB/s")
    options = arguments.parse_args()
    need = options.gigabytes * 2.2e9
    options.dir.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(options.dir).free < need:
        sys.exit(f"{options.dir} has less than {need / 1e9:.0f} GB free")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and the files go
    folder, plan = options.dir / "large-model", options.dir / "large.plan"
    llmc = pathlib.Path(os.environ.get("LLMC_BIN", "build/bin")) / "llmc"
    try:
        total, largest = write_model(folder, options.gigabytes)
        limit = (1 << 30) + largest
        print(f"{total / 1e9:.2f} GB, largest tensor {largest / 1e6:.0f} MB, private memory limited to {limit / 1e9:.2f} GB")
        begin = time.time()
        subprocess.run(["prlimit", f"--data={limit}", llmc, "compile", folder, "-q", *options.flags.split(), "-o", plan],
                       check=True)
        seconds = time.time() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        speed = total / 1e6 / seconds
        print(f"compiled in {seconds:.1f} s ({used.ru_utime + used.ru_stime:.1f} s of processor time): {speed:.0f} MB/s; "
              f"plan {plan.stat().st_size / 1e9:.2f} GB")
        subprocess.run([llmc, "verify", plan], check=True)
        if speed < options.min_speed:
            sys.exit(f"slower than {options.min_speed:.0f} MB/s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        plan.unlink(missing_ok=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes NAME.bin (two rows of 512 random values in a GGUF block encoding) and NAME.f32 (what the `gguf` package says
they are) for every block encoding. Needs numpy and gguf 0.17.1."""
import pathlib

import gguf
import numpy as np

here = pathlib.Path(__file__).parent
half = np.float16
# encoding, bytes a block, values a block, offsets of the f16 fields
FORMS = [("Q4_0", 18, 32, [0]), ("Q4_1", 20, 32, [0, 2]), ("Q5_0", 22, 32, [0]), ("Q5_1", 24, 32, [0, 2]),
         ("Q8_0", 34, 32, [0]), ("Q4_K", 144, 256, [0, 2]), ("Q5_K", 176, 256, [0, 2]), ("Q6_K", 210, 256, [208])]
for seed, (name, size, values, halves) in enumerate(FORMS):
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (1024 // values, size), dtype=np.uint8)
    for offset in halves:
        field = random.normal(0, 0.02, len(blocks)).astype(half)
        field[0] = half(3e-7)  # subnormal
        blocks[:, offset:offset + 2] = field.view(np.uint8).reshape(-1, 2)
    rows = blocks.reshape(2, -1)
    wanted = gguf.dequantize(rows, getattr(gguf.GGMLQuantizationType, name))
    assert wanted.shape == (2, 512) and wanted.dtype == np.float32
    (here / f"{name.lower()}.bin").write_bytes(rows.tobytes())
    (here / f"{name.lower()}.f32").write_bytes(wanted.tobytes())

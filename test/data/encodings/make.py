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
         ("Q8_0", 34, 32, [0]), ("Q4_K", 144, 256, [0, 2]), ("Q5_K", 176, 256, [0, 2]), ("Q6_K", 210, 256, [208]),
         ("Q2_K", 84, 256, [80, 82]), ("Q3_K", 110, 256, [108]), ("IQ4_NL", 18, 32, [0]), ("IQ4_XS", 136, 256, [0]),
         ("TQ1_0", 54, 256, [52]), ("TQ2_0", 66, 256, [64]), ("MXFP4", 17, 32, []),
         ("IQ1_S", 50, 256, [0]), ("IQ1_M", 56, 256, []), ("IQ2_XXS", 66, 256, [0]), ("IQ2_XS", 74, 256, [0]),
         ("IQ2_S", 82, 256, [0]), ("IQ3_XXS", 98, 256, [0]), ("IQ3_S", 110, 256, [0])]
for seed, (name, size, values, halves) in enumerate(FORMS):
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (1024 // values, size), dtype=np.uint8)
    for offset in halves:
        field = random.normal(0, 0.02, len(blocks)).astype(half)
        field[0] = half(3e-7)  # subnormal
        blocks[:, offset:offset + 2] = field.view(np.uint8).reshape(-1, 2)
    if name == "MXFP4":
        blocks[:, 0] = random.integers(100, 140, len(blocks))
    if name == "IQ1_M":  # its f16 lies in the upper 4 bits of four words
        field = random.normal(0, 0.02, len(blocks)).astype(half).view(np.uint16)
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (field >> 4 * i & 15).astype(np.uint8) << 4
    rows = blocks.reshape(2, -1)
    if name == "MXFP4":  # which the package doesn't know: OCP e2m1 times a power of two
        levels = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6], np.float32)
        codes = np.concatenate([blocks[:, 1:] & 15, blocks[:, 1:] >> 4], axis=1)
        wanted = (levels[codes] * np.exp2(blocks[:, :1].astype(np.float32) - 127)).reshape(2, 512).astype(np.float32)
    else:
        wanted = gguf.dequantize(rows, getattr(gguf.GGMLQuantizationType, name))
    assert wanted.shape == (2, 512) and wanted.dtype == np.float32
    (here / f"{name.lower()}.bin").write_bytes(rows.tobytes())
    (here / f"{name.lower()}.f32").write_bytes(wanted.tobytes())

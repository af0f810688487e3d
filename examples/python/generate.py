#!/usr/bin/env python3
"""Writes text with a compiled model, in Python.  Usage: generate.py PLAN "Once upon a time" [TOKENS]"""
import sys

import llmrt

if len(sys.argv) < 3:
    sys.exit(__doc__)
try:
    with llmrt.Plan(sys.argv[1]) as plan, llmrt.Engine(plan) as engine:
        for piece in engine.generate(sys.argv[2], max_new_tokens=int(sys.argv[3]) if len(sys.argv) > 3 else 64):
            print(piece, end="", flush=True)
        print()
        print(f"{engine.metrics['generation_tokens']} tokens", file=sys.stderr)
except llmrt.Error as error:
    sys.exit(f"{error.status}: {error}")

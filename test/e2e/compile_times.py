#!/usr/bin/env python3
"""Seconds to compile models with -O3 --int4, the best of three: compile_times.py [--limit S] MODEL...

Without a model: every tiny one of the test data, each within two seconds. The machine should do nothing else."""
import argparse
import sys
import tempfile
import time

from conftest import DATA, llmc


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--limit", type=float, default=2, help="seconds that a model may take")
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("models", nargs="*")
    options = arguments.parse_args()
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models or sorted((DATA / "tiny").iterdir()):
            best = float("inf")
            for _ in range(options.runs):
                begin = time.monotonic()
                llmc("compile", model, "-q", "-O3", "--int4", "-o", f"{folder}/m.plan")
                best = min(best, time.monotonic() - begin)
            print(f"{getattr(model, 'name', model):24} {best:.2f}", flush=True)
            if best > options.limit:
                slow.append(str(model))
    if slow:
        sys.exit(f"longer than {options.limit:g} s: {', '.join(slow)}")


if __name__ == "__main__":
    main()

"""Runs the node tests of the onnx package and compares with what is expected of each.

  run_node_tests.py --driver build/bin/llmc_node_driver [--modes static,dynamic,constant] [-k TEXT] [--check]

A test is run in up to three modes: `static` as the package has it, `dynamic` with every dimension of
every input symbolic, `constant` with the inputs as constants of the model. expected.txt names the tests
that are not expected to pass, with the reason; a test that is not there and fails, or is there and passes,
is an error: both ways the list is kept true. Prints the table of operators that the importer's README shows,
and with --check compares it with that.
"""

import argparse
import collections
import os
import pathlib
import queue
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parent.parent / "compiler/import/onnx/README.md"
MODES = ("static", "dynamic", "constant")
TENSOR, SEQUENCE, NONE = 0, 1, 2
TYPES = {  # ONNX number: the type that holds an element, a byte at least
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 16: ml_dtypes.bfloat16,
    17: ml_dtypes.float8_e4m3fn, 18: ml_dtypes.float8_e4m3fnuz, 19: ml_dtypes.float8_e5m2,
    20: ml_dtypes.float8_e5m2fnuz, 21: ml_dtypes.uint4, 22: ml_dtypes.int4, 23: ml_dtypes.float4_e2m1fn,
    24: ml_dtypes.float8_e8m0fnu, 25: ml_dtypes.uint2, 26: ml_dtypes.int2,
}


def pack_value(value):
    """A value as NodeDriver reads it; None for one of a type that the runtime does not have."""
    if value is None:
        return struct.pack("<ii", NONE, 1)
    if isinstance(value, (list, tuple)):
        parts = [pack_value(item) for item in value]
        if any(part is None for part in parts):
            return None
        kind = parts[0][4:8] if parts else struct.pack("<i", 1)
        return struct.pack("<i", SEQUENCE) + kind + struct.pack("<I", len(parts)) + b"".join(parts)
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if isinstance(value, onnx.SparseTensorProto):
        return None
    value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
    number = next((n for n, t in TYPES.items() if np.dtype(t) == value.dtype), None)
    if number is None:
        return None
    if number in (22, 26):  # the runtime holds these sign-extended, ml_dtypes with zeros above
        value = value.astype(np.int8)
    data = value.tobytes()
    dims = struct.pack(f"<{value.ndim}q", *value.shape)
    return struct.pack("<iiI", TENSOR, number, value.ndim) + dims + struct.pack("<Q", len(data)) + data


def unpack_value(data, at):
    kind, number = struct.unpack_from("<ii", data, at)
    at += 8
    if kind == NONE:
        return None, at
    (count,) = struct.unpack_from("<I", data, at)
    at += 4
    if kind == SEQUENCE:
        items = []
        for _ in range(count):
            item, at = unpack_value(data, at)
            items.append(item)
        return items, at
    dims = struct.unpack_from(f"<{count}q", data, at)
    at += 8 * count
    (size,) = struct.unpack_from("<Q", data, at)
    at += 8
    array = np.frombuffer(data, TYPES[number], offset=at, count=size // np.dtype(TYPES[number]).itemsize)
    return array.reshape(dims), at + size


def unpack_values(data):
    (count,) = struct.unpack_from("<I", data, 0)
    at, values = 4, []
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, at)
        at += 4 + length
        value, at = unpack_value(data, at)
        values.append(value)
    return values


def difference(got, want, rtol, atol):
    """What is wrong with a result; None if nothing is."""
    if want is None or got is None:
        return None if want is None and got is None else "one is empty"
    if isinstance(want, (list, tuple)):
        if not isinstance(got, list) or len(got) != len(want):
            return "a sequence of another length"
        return next((d for g, w in zip(got, want) if (d := difference(g, w, rtol, atol))), None)
    if isinstance(want, onnx.TensorProto):
        want = numpy_helper.to_array(want)
    want = np.asarray(want)
    if isinstance(got, list):
        return "a sequence"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.dtype.kind in "biu" and want.dtype.itemsize > 0 and want.dtype.name in np.sctypeDict:
        return None if np.array_equal(got, want) else "other values"
    if want.dtype == ml_dtypes.bfloat16:
        rtol = max(rtol, 2**-6)  # as the package's own runner: two units in the last place
    a, b = got.astype(np.float64), want.astype(np.float64)
    if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        return None
    with np.errstate(all="ignore"):
        return f"off by {np.nanmax(np.abs(a - b)):.3g}"


def variant(model, mode, inputs):
    """The model in a mode; None where the mode means nothing."""
    if mode == "static":
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    if mode == "dynamic":
        changed = False
        for i, value in enumerate(copy.graph.input):
            for d, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"d{i}_{d}"
                changed = True
        return copy if changed else None
    names = [value.name for value in copy.graph.input]
    if not names or any(not isinstance(value, np.ndarray) and not np.isscalar(value) for value in inputs):
        return None
    for name, value, array in zip(names, list(copy.graph.input), inputs):
        copy.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        copy.graph.input.remove(value)
    return copy


class Driver:
    """One process of NodeDriver, started again when a test ends it."""

    def __init__(self, path):
        self.path = path
        self.process = None

    def ask(self, request, seconds=120):
        if self.process is None:
            self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write("\t".join(request) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if answer:
            return answer.strip()
        self.process.kill()
        code = self.process.wait()
        self.process = None
        return f"0 crash the driver ended with {code}"

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


class Case:
    def __init__(self, case, mode):
        self.case, self.mode = case, mode
        self.reason, self.milliseconds = None, 0.0


def run_case(item, driver, folder):
    case = item.case
    for number, (inputs, outputs) in enumerate(case.data_sets):
        model = variant(case.model, item.mode, inputs)
        if model is None:
            return False
        names = [value.name for value in model.graph.input]
        values = [pack_value(value) for value in inputs] if names else []
        # Optional inputs at the end that a test leaves out have no value.
        if any(value is None for value in values):
            item.reason = "compile: an input has elements of a type that the runtime does not have"
            # The compiler has the better words for it.
        if len(values) != len(names):
            item.reason = f"run: {len(values)} values for {len(names)} inputs"
            return True
        paths = [os.path.join(folder, name) for name in ("m.onnx", "m.plan", "in", "out")]
        with open(paths[0], "wb") as file:
            file.write(model.SerializeToString())
        with open(paths[2], "wb") as file:
            file.write(struct.pack("<I", len(names)))
            for name, value in zip(names, values):
                encoded = name.encode()
                file.write(struct.pack("<I", len(encoded)) + encoded + (value or pack_value(None)))
        milliseconds, _, answer = driver.ask(paths).partition(" ")
        item.milliseconds = max(item.milliseconds, float(milliseconds))
        if answer != "ok":
            item.reason = answer.replace(" ", ": ", 1)
            return True
        with open(paths[3], "rb") as file:
            results = unpack_values(file.read())
        os.remove(paths[3])
        for output, got, want in zip(case.model.graph.output, results, outputs):
            if wrong := difference(got, want, case.rtol, case.atol):
                item.reason = f"result: {output.name}: {wrong}"
                return True
        if len(results) != len(outputs):
            item.reason = f"result: {len(results)} outputs, expected {len(outputs)}"
            return True
    item.reason = None
    return True


def run_all(items, driver_path, jobs, verbose=False):
    """Runs every item; gives those that the mode means something for."""
    work = queue.SimpleQueue()
    for item in items:
        work.put(item)
    done = []

    def worker():
        driver = Driver(driver_path)
        # Plans are made to last: in memory, nothing waits for a disk.
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            while True:
                try:
                    item = work.get_nowait()
                except queue.Empty:
                    break
                try:
                    meant = run_case(item, driver, folder)
                except Exception as error:  # a test case that Python itself can't prepare
                    item.reason, meant = f"prepare: {type(error).__name__}: {error}", True
                if meant:
                    done.append(item)
                    if verbose and item.reason is not None:
                        print(f"{item.case.name} {item.mode} {item.milliseconds:.0f} {item.reason}", flush=True)
        driver.close()

    threads = [threading.Thread(target=worker) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def read_expected():
    """{(test, mode): reason}"""
    expected = {}
    for line in (HERE / "expected.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, modes, reason = line.split(maxsplit=2)
        for mode in MODES if modes == "all" else modes.split(","):
            expected[name, mode] = reason
    return expected


def operators(case):
    return {(node.domain + "." if node.domain else "") + node.op_type for node in case.model.graph.node}


def support_table(items):
    """Markdown: how many of the tests of each operator pass. A test counts for the operator it is named for:
    the one that its model consists of; models of several are counted together."""
    counts = collections.defaultdict(lambda: [0, 0])
    for item in items:
        names = operators(item.case)
        key = next(iter(names)) if len(names) == 1 and "_expanded" not in item.case.name else "expanded"
        counts[key][0] += item.reason is None
        counts[key][1] += 1
    full = sorted(key for key, (good, all_) in counts.items() if good == all_ and key != "expanded")
    partial = sorted(key for key, (good, all_) in counts.items() if 0 < good < all_ and key != "expanded")
    none = sorted(key for key, (good, _) in counts.items() if good == 0 and key != "expanded")
    good, all_ = (sum(c[i] for c in counts.values()) for i in (0, 1))
    lines = [f"{good} of {all_} node tests of onnx {onnx.__version__} pass; of those that consist of one operator:", "",
             "| | operators |", "|---|---|",
             f"| all pass | {', '.join(full)} |",
             f"| some pass | {', '.join(f'{k} ({counts[k][0]} of {counts[k][1]})' for k in partial)} |",
             f"| none pass | {', '.join(none)} |", ""]
    expanded = counts.get("expanded", [0, 0])
    lines.append(f"Models of several operators (functions written out, sequences): {expanded[0]} of {expanded[1]}.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True, help="the built NodeDriver")
    parser.add_argument("--modes", default="dynamic", help="of static, dynamic, constant; default: dynamic, where a test "
                        "has no input of its own to be dynamic: static")
    parser.add_argument("-k", default="", help="only tests whose name contains one of these, separated by commas")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true", help="compare the table with the README's, too")
    parser.add_argument("--update", action="store_true", help="write expected.txt's lines of unexpected failures to "
                        "standard output and the table into the README")
    parser.add_argument("-v", action="store_true", help="say of every failure what it was")
    args = parser.parse_args()
    np.seterr(all="ignore")
    np.random.seed(0)
    from onnx.backend.test.case.node import collect_testcases

    begin = time.time()
    cases = [case for case in collect_testcases(None) if case.model is not None]
    words = args.k.split(",")
    cases = [case for case in cases if any(word in case.name for word in words)]
    items = []
    for case in cases:
        for mode in args.modes.split(","):
            has_inputs = any(v.type.tensor_type.shape.dim for v in case.model.graph.input)
            items.append(Case(case, "static" if mode == "dynamic" and not has_inputs and args.modes == "dynamic" else mode))
    prepared = time.time()
    items = run_all(items, args.driver, args.j, args.v)
    items.sort(key=lambda item: (item.case.name, item.mode))
    expected = read_expected()
    wrong = 0
    for item in items:
        listed = expected.get((item.case.name, item.mode))
        if item.reason is not None and listed is None:
            wrong += 1
            if not args.v:
                print(f"FAIL {item.case.name} ({item.mode}): {item.reason}")
        if item.reason is None and listed is not None:
            wrong += 1
            print(f"PASS {item.case.name} ({item.mode}), which expected.txt lists ({listed}): take it out")
    for mode in MODES:
        of = [item for item in items if item.mode == mode]
        if of:
            times = sorted(item.milliseconds for item in of)
            print(f"{mode}: {sum(item.reason is None for item in of)} of {len(of)} pass; "
                  f"compiling takes {times[len(times) // 2]:.0f} ms (median), {times[-1]:.0f} ms at most")
    print(f"{prepared - begin:.0f} s to generate the tests, {time.time() - prepared:.0f} s to run them")
    if not args.k:
        table = support_table([item for item in items if item.mode != "constant"] if args.modes == "dynamic" else
                              [item for item in items if item.mode == "static"] or items)
        print(table)
        text = README.read_text() if README.exists() else ""
        start, end = "<!-- node tests -->\n", "\n<!-- end -->"
        if args.update and start in text:
            README.write_text(text[:text.index(start) + len(start)] + table + text[text.index(end):])
        elif args.check and table not in text:
            wrong += 1
            print(f"the table is not the one of {README.relative_to(HERE.parent.parent)}; run with --update")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env bash
# run.sh BUILD [FOLDER]: libllmrt and llmrt on AArch64, emulated by qemu-user, beside this machine's own.
#
# Builds them and their unit tests in FOLDER (default: build-aarch64) with clang for Debian 12's arm64 packages, and runs
# the tests. Then plans that BUILD's llmc compiles for both architectures run on both: a plan's self-test compares the
# bits of every logit with those of this machine, and texts must be equal. Exit status: 77 where qemu-aarch64 is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || { echo "usage: $0 BUILD [FOLDER]" >&2; exit 2; }
build=$(cd "$1" && pwd)
folder=${2:-build-aarch64}
command -v qemu-aarch64 >/dev/null || { echo "skipped: there is no qemu-aarch64 here (Debian: apt-get install qemu-user)"; exit 77; }
test/aarch64/sysroot.sh "$folder/sysroot"
folder=$(cd "$folder" && pwd)
[ -f "$folder/build.ninja" ] ||
  cmake -G Ninja -S . -B "$folder" --toolchain test/aarch64/toolchain.cmake -DLLMC_SYSROOT="$folder/sysroot" \
    -DLLMC_COMPILER=OFF -DCMAKE_BUILD_TYPE=Release >"$folder/configure.log" || { cat "$folder/configure.log" >&2; exit 1; }
ninja -C "$folder" --quiet
# Not those that build or install something with this machine's own tools.
ctest --test-dir "$folder" --output-on-failure -j "$(nproc)" --timeout 900 -L unit -E "package|includes|library|count_allocations"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arm() { qemu-aarch64 -cpu "$cpu" -L "$folder/sysroot" "$folder/bin/llmrt" "$@"; }
same() { cmp "$work/own" "$work/arm" || { echo "$1: not the same on $cpu" >&2; exit 1; }; }
text() { sed -E 's/"timings":.*//'; }
while read -r model flags; do
  # shellcheck disable=SC2086
  "$build/bin/llmc" compile "$build/test-data/tiny/$model" $flags --cpu-level x86-64,aarch64-dotprod,aarch64-i8mm -o "$work/plan" --quiet
  "$build/bin/llmrt" run "$work/plan" -p "a b c" -n 16 --seed 7 --temperature 0.8 --json | text > "$work/own"
  for cpu in max neoverse-n1; do # with SMMLA, and with SDOT only
    arm verify "$work/plan" --self-test | grep self-test
    arm run "$work/plan" -p "a b c" -n 16 --seed 7 --temperature 0.8 --json | text > "$work/arm"
    same "$model $flags"
    echo "$model $flags on $cpu: the same logits and the same text"
  done
done <<END
llama --int4
gemma3 --int8 --kv-cache-dtype int8
deepseek-v3 --int4
gpt2 --quantization none
END

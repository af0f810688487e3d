# Debian 12 packages that llmc is built and tested with; read by quickstart and run-tests.
build_packages=(
  clang-22 lld-22 liblld-22-dev llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  cmake ninja-build ccache pkg-config git xz-utils
  libflatbuffers-dev flatbuffers-compiler nlohmann-json3-dev libcli11-dev libpcre2-dev libutf8proc-dev libssl-dev
  libboost1.81-dev prometheus-cpp-dev libyaml-cpp-dev
  python3 python3-pip python3-venv
)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev libclang-rt-22-dev chromium-headless-shell openssl
  bochs bochs-term qemu-user)

say() { printf '\033[1m%s\033[0m\n' "$*" | if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then cat; else sed 's/\x1b\[[0-9;]*m//g'; fi; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

# install_packages NAME...: installs what is missing; nothing to do is quick.
install_packages() {
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || fail "These Debian packages are needed, and apt-get is not here: ${missing[*]}"
  local run=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "These packages are needed; install them as root: apt-get install ${missing[*]}"
    run=(sudo)
  fi
  say "Installing ${#missing[@]} packages: ${missing[*]}"
  local log
  log=$(mktemp)
  { "${run[@]}" apt-get update -q && "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 ||
    { tail -n 15 "$log" >&2; fail "The packages could not be installed (see above; all of it: $log). Is this Debian 12 with its security updates enabled?"; }
  rm -f "$log"
}

# build TARGET...: configures (once; again when the tests are asked for and not in it) and builds into build/.
build() {
  if [ ! -f build/build.ninja ] || { [ $# -eq 0 ] && [ ! -f build/test/CTestTestfile.cmake ]; }; then
    say "Configuring"
    cmake --preset default >build-configure.log 2>&1 || { tail -n 20 build-configure.log >&2; fail "The build could not be configured (see above)."; }
    rm -f build-configure.log
  fi
  say "Building ${*:-everything}"
  ninja -C build "$@" || fail "The build failed (see above)."
}

#!/usr/bin/env bash
# sysroot.sh FOLDER: Debian 12's arm64 packages that libllmrt, llmrt and their tests are built with, unpacked into FOLDER.
# Nothing is installed: the system's package database is not touched, and no root is needed.
set -euo pipefail
[ $# = 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
packages=(
  libc6 libc6-dev linux-libc-dev libgcc-s1 libgcc-12-dev libstdc++6 libstdc++-12-dev libcrypt1 libcrypt-dev
  libpcre2-8-0 libpcre2-dev libutf8proc2 libutf8proc-dev libssl3 libssl-dev zlib1g zlib1g-dev
  libyaml-cpp0.7 libyaml-cpp-dev libprometheus-cpp-core1.0 libprometheus-cpp-pull1.0 libprometheus-cpp-push1.0
  prometheus-cpp-dev civetweb libcivetweb1 libcivetweb-dev libcurl4 libcurl4-openssl-dev libboost1.81-dev libflatbuffers-dev nlohmann-json3-dev libcli11-dev libgtest-dev libgmock-dev
)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
state=$folder/.apt
mkdir -p "$state"/{lists/partial,archives/partial}
touch "$state/status"
cat > "$state/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state";
END
export APT_CONFIG=$state/apt.conf
if [ "$(cat "$state/unpacked" 2>/dev/null)" = "${packages[*]}" ]; then
  exit 0
fi
echo "Fetching Debian's arm64 packages into $folder"
apt-get update -q >"$state/log" 2>&1 || { cat "$state/log" >&2; exit 1; }
(cd "$state/archives" && apt-get download -q "${packages[@]}") >>"$state/log" 2>&1 || { tail -20 "$state/log" >&2; exit 1; }
for package in "$state"/archives/*.deb; do
  dpkg-deb -x "$package" "$folder"
done
rm -f "$state"/archives/*.deb
# Absolute links lead into the system at hand: they are made relative to the folder.
find "$folder" -lname '/*' | while read -r link; do
  ln -sfn --relative "$folder$(readlink "$link")" "$link"
done
printf '%s' "${packages[*]}" > "$state/unpacked"

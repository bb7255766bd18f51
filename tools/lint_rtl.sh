#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the RTL without running it: format, Verilator -Wall for every module and for the shell in several geometries, and elaboration for
# synthesis by yosys (read_slang). Module names as arguments restrict it to these. With --short only the geometries that nothing else of
# `make test` builds: the card's own is Verilated with the same warnings, the smallest is mapped by yosys.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

out=build/lint
mkdir -p "$out"
failed=0
fail() {
  echo "lint: $*" >&2
  failed=1
}

# Slots, channels, data width, streams.
geometries=("4 4 512 1" "1 1 64 1" "2 2 64 2" "2 1 128 1" "3 2 128 1" "16 4 256 2")
# The geometries that make synth maps, and one with two streams, go through the synthesis front end.
mapped=("4 4 512 1" "1 1 64 1" "2 1 128 1" "2 2 64 2")
if [ "${1:-}" = --short ]; then
  geometries=("2 2 64 2" "3 2 128 1") mapped=("2 2 64 2")
  shift
fi

mapfile -t files < <(ls rtl/*/*.sv)
dirs=()
for d in rtl/*/ build/regs/; do dirs+=("-y" "$d"); done
# Packages used by others come first.
packages=(rtl/common/via_pkg.sv rtl/virtio/via_virtio_pkg.sv)
for p in rtl/*/via_*_pkg.sv build/regs/via_*_regs_pkg.sv; do
  [[ " ${packages[*]} " == *" $p "* ]] || packages+=("$p")
done

# Verilator's -Wall; a warning is an error. $1 = module, $2 = name of the log, the rest = defines.
verilate() {
  local top=$1 log=$out/$2.log
  shift 2
  if ! verilator --lint-only -Wall --assert "$@" "${dirs[@]}" tools/lint.vlt build/regs/via_regs.vlt "${packages[@]}" \
    rtl/*/"$top".sv --top-module "$top" >"$log" 2>&1; then
    grep -v '^- ' "$log" >&2 || true
    fail "verilator: $top $*"
  fi
}

defines() { echo "-DVIA_NUM_SLOTS=$1 -DVIA_NUM_CHAN=$2 -DVIA_DATA_W=$3 -DVIA_NUM_STREAMS=$4"; }

only=("$@")
wanted() {
  [ ${#only[@]} -eq 0 ] && return 0
  local name
  for name in "${only[@]}"; do [ "$name" = "$1" ] && return 0; done
  return 1
}

for f in "${files[@]}"; do
  module=$(basename "$f" .sv)
  [[ "$module" == *_pkg ]] && continue
  wanted "$module" || continue
  verible-verilog-format --flagfile=tools/verible.flags --verify "$f" >"$out/$module.format" 2>&1 ||
    fail "format: $f (make fmt)"
  [ "$module" = via_shell ] || verilate "$module" "$module"
done

for f in apps/common/rtl/*.sv; do
  wanted "$(basename "$f" .sv)" || continue
  verible-verilog-format --flagfile=tools/verible.flags --verify "$f" >"$out/common.format" 2>&1 || fail "format: $f (make fmt)"
done

# Apps: format, and -Wall of the wrapper and everything below it (it is generated with the image).
for app in apps/*/app.toml; do
  dir=$(dirname "$app")
  name=$(basename "$dir")
  gen=build/apps/$name/gen
  wanted "$name" || continue
  [ -f "$gen/via_slot.sv" ] || { fail "apps/$name is not built: ./viaduct build $name"; continue; }
  for f in "$dir"/{rtl,tb}/*.sv; do
    [ -f "$f" ] || continue
    verible-verilog-format --flagfile=tools/verible.flags --verify "$f" >"$out/$name.format" 2>&1 || fail "format: $f (make fmt)"
  done
  mapfile -t first < <(.venv/bin/python -c 'if True:
    import sys, tomllib
    folder = sys.argv[1]
    with open(f"{folder}/app.toml", "rb") as file:
      print("\n".join(f"{folder}/{s}" for s in tomllib.load(file)["app"].get("sources", [])))' "$dir" | grep .)
  if ! verilator --lint-only -Wall --assert -y "$gen" -y "$dir/rtl" -y rtl/common tools/lint.vlt rtl/common/via_pkg.sv "${first[@]}" \
    "$gen/via_slot.sv" --top-module via_slot >"$out/app_$name.log" 2>&1; then
    grep -v '^- ' "$out/app_$name.log" >&2 || true
    fail "verilator: app $name"
  fi
done

if wanted via_shell; then
  for g in "${geometries[@]}"; do
    # shellcheck disable=SC2046,SC2086  # four numbers, four options
    verilate via_shell "via_shell_${g// /_}" $(defines $g)
  done
  for g in "${mapped[@]}"; do
    # shellcheck disable=SC2046,SC2086
    yosys -q -p "read_slang --top via_shell $(defines $g | sed 's/-D/-D /g') ${packages[*]} $(ls rtl/*/via_*.sv | grep -v '_pkg.sv$' | tr '\n' ' ') \
      $(ls build/regs/via_*_regs.sv | tr '\n' ' '); proc; check -assert" >"$out/yosys_${g// /_}.log" 2>&1 || {
      tail -n 20 "$out/yosys_${g// /_}.log" >&2
      fail "yosys: via_shell $g"
    }
  done
fi

[ "$failed" = 0 ] && echo "lint: RTL is clean"
exit "$failed"

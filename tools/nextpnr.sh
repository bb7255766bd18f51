#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs nextpnr for Artix-7. Debian has it in its unstable release only: the first call unpacks it with its libraries into a cache
# folder (25 MB fetched, 300 MB there); nothing is installed. The version moves with Debian: nextpnr prints it.
#
#   tools/nextpnr.sh --device xc7a200tsbg484-2 --json NETLIST …
set -euo pipefail
called_in=$PWD
cd "$(dirname "$0")/.."
what=nextpnr
suites=(sid)
dir=${XDG_CACHE_HOME:-${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}/.cache}/viaduct/nextpnr
. tools/apt_lib.sh

root=$dir/root
if [ ! -e "$root/packages" ]; then
  lock
  if [ ! -e "$root/packages" ]; then
    [ "$(free_in "$dir")" -ge 600 ] || die "less than 600 MB are free in $dir: make room, or set XDG_CACHE_HOME to another folder"
    say "fetching nextpnr for Artix-7 once (about 1 minute)"
    : >"$dir/log"
    fetch "$root" nextpnr-himbaechel-xilinx
    rm -rf "$apt_dir"
  fi
  exec 9>&-
fi
device=
for ((i = 1; i <= $#; i++)); do
  [ "${!i}" != --device ] || { next=$((i + 1)); device=${!next-}; }
done
chip=$root/usr/share/nextpnr/himbaechel/xilinx/chipdb-$(grep -oE '^xc7[a-z]+[0-9]+t?' <<<"$device" || true).bin
[ -e "$chip" ] || die "no data for device '$device'; there are $(cd "${chip%/*}" && echo chipdb-*)"
cd "$called_in"
exec "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu" "$root/usr/bin/nextpnr-himbaechel-xilinx" --chipdb "$chip" "$@"

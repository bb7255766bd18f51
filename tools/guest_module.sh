#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds kernel/xdma for a kernel of the guest, with the machine's own compiler and the kernel's packaged headers: only unpacked,
# never installed, no root needed.
#
#   tools/guest_module.sh [6.12|6.1|new]
#
# Prints the path of viaduct_xdma.ko. Headers and module are kept; the second call takes no time.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/guest_lib.sh

kernel=${1:-6.12}
suite_of "$kernel" >/dev/null
made=$(tools/guest.sh --kernel "$kernel")
release=$(sed -n 's/^release=//p' <<<"$made")
out=$PWD/build/guest/$release
key=$(cat kernel/xdma/{Makefile,viaduct_xdma.c} tools/guest_module.sh | sha256sum)
mkdir -p "$out"
exec 8>"$out/lock"
flock 8
if [ -e "$out/viaduct_xdma.ko" ] && [ "$(cat "$out/key" 2>/dev/null)" = "$key" ]; then
  echo "$out/viaduct_xdma.ko"
  exit
fi
for program in gcc make; do
  command -v $program >/dev/null || die "kernel/xdma is built by $program, and this machine has none: install the packages gcc and make"
done

# ---------------------------------------------------------------- headers
headers=$dir/headers-$release-$(sha256sum <tools/guest_module.sh | cut -c1-8)
if [ ! -e "$headers/complete" ]; then
  exec 9>"$dir/lock"
  flock 9
fi
if [ ! -e "$headers/complete" ]; then
  say "fetching the headers of kernel $release once (15 MB)"
  : >"$dir/log"
  apt_update
  # Named by the release of the kernel that is booted, not by what is newest now.
  version=${release%-amd64}
  rm -rf "$dir"/headers-"$release"-* "$dir/headers.deb"
  mkdir -p "$dir/headers.deb"
  (cd "$dir/headers.deb" && apt get download "linux-headers-$release" "linux-headers-$version-common" "linux-kbuild-${version/#6.1.0-*/6.1}" >>"$dir/log") ||
    die "the mirror has no headers of kernel $release (see $dir/log). If it has a newer kernel by now, remove $dir/kernel-$kernel: it will be fetched anew"
  unpack "$headers" "$dir"/headers.deb/*.deb
  rm -rf "$dir/headers.deb" "$apt_dir"

  # The packages expect to lie in /usr/src, and their programs to find the C library of their Debian.
  sed -i "s|/usr/src/|$headers/usr/src/|g" "$headers/usr/src/linux-headers-$release/Makefile"
  find "$headers"/usr/lib/linux-kbuild-* -type f -perm -u+x | while read -r program; do
    [ "$(head -c 4 "$program" | tail -c 3)" = ELF ] || continue
    mv "$program" "$program.elf"
    # shellcheck disable=SC2016 # for the script's own shell
    printf '#!/bin/sh\nr=%q\nexec "$r/usr/lib64/ld-linux-x86-64.so.2" --argv0 "$0" --library-path "$r/usr/lib/x86_64-linux-gnu" "$0.elf" "$@"\n' \
      "$dir/root" >"$program"
    chmod +x "$program"
  done
  # Type information would need the kernel image and pahole; the module is as good without.
  rm -f "$headers"/usr/src/linux-headers-*/vmlinux
  # Options of the compiler that the kernel was built with, in the words of older ones.
  cat >"$headers/cc" <<'CC'
#!/bin/bash
exec gcc "${@/#-fmin-function-alignment=/-falign-functions=}"
CC
  chmod +x "$headers/cc"
  touch "$headers/complete"
fi

# ---------------------------------------------------------------- module
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp kernel/xdma/{Makefile,viaduct_xdma.c} "$work/"
say "building kernel/xdma for kernel $release"
make -C "$work" KDIR="$headers/usr/src/linux-headers-$release" CC="$headers/cc" >"$out/log" 2>&1 ||
  { tail -5 "$out/log" >&2; die "kernel/xdma does not build for kernel $release; all messages are in $out/log"; }
mv "$work/viaduct_xdma.ko" "$out/"
echo "$key" >"$out/key"
echo "$out/viaduct_xdma.ko"

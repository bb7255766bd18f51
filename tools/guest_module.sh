#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a kernel module of this project for a kernel of the guest, with the machine's own compiler and the kernel's packaged headers: only unpacked,
# never installed, no root needed.
#
#   tools/guest_module.sh [6.12|6.1|new] [xdma|loopback] [--check]
#
# Prints the path of viaduct_xdma.ko or viaduct_loopback.ko. Headers and module are kept; the second call takes no time. With --check it prints the warnings of the
# compiler (W=1) and sparse instead, and fails if there are any.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/guest_lib.sh

kernel=6.12
module=xdma
check=
for word in "$@"; do
  case $word in
    --check) check=1 ;;
    xdma | loopback) module=$word ;;
    *) kernel=$word ;;
  esac
done
suite_of "$kernel" >/dev/null
# It ends with this script, which is its parent: because of `exec` it is a direct child.
made=$(exec setpriv --pdeathsig TERM timeout -k 10 7200 tools/guest.sh --kernel "$kernel")
release=$(sed -n 's/^release=//p' <<<"$made")
out=$PWD/build/guest/$release
[ $module = xdma ] || out=$out/$module
sources=(kernel/$module/Makefile)
for file in kernel/"$module"/*.[ch]; do
  [[ $file == */test_* || $file == *.mod.c ]] || sources+=("$file")
done
key=$(cat "${sources[@]}" tools/guest_module.sh | sha256sum)
# Checked once without the lock: the folder may not be writable.
is_made() { [ ! "$check" ] && [ -e "$out/viaduct_$module.ko" ] && [ "$(cat "$out/key" 2>/dev/null)" = "$key" ]; }
is_made || { mkdir -p "$out"; exec 8>"$out/lock"; flock 8; }
if is_made; then
  echo "$out/viaduct_$module.ko"
  exit
fi
rm -rf "$out"/work.* # files left by a killed run
for program in gcc make; do
  command -v $program >/dev/null || die "kernel/$module is built by $program, and this machine has none: install the packages gcc and make"
done

# ---------------------------------------------------------------- headers
# Named after the way they are built, below.
recipe=$(sed -n "/^# -* headers/,/^# -* module/p" tools/guest_module.sh | sha256sum | cut -c1-8)
headers=$dir/headers-$release-$recipe
[ -e "$headers/complete" ] || lock
if [ ! -e "$headers/complete" ]; then
  say "fetching the headers of kernel $release once (15 MB)"
  : >"$dir/log"
  apt_update
  # Named after the release of the booted kernel, not the newest one.
  version=${release%-amd64}
  rm -rf "$dir"/headers-"$release"-* "$dir/headers.deb"
  mkdir -p "$dir/headers.deb"
  apt_in=$dir/headers.deb apt 3600 get download "linux-headers-$release" "linux-headers-$version-common" "linux-kbuild-${version/#6.1.0-*/6.1}" sparse >>"$dir/log" ||
    die "the mirror has no headers of kernel $release$late (see $dir/log). If it has a newer kernel by now, remove $dir/kernel-$kernel: it will be fetched anew"
  unpack "$headers" "$dir"/headers.deb/*.deb
  rm -rf "$dir/headers.deb" "$apt_dir"

  # The packages expect to be in /usr/src, and their programs expect the C library of their Debian release.
  sed -i "s|/usr/src/|$headers/usr/src/|g" "$headers/usr/src/linux-headers-$release/Makefile"
  find "$headers"/usr/lib/linux-kbuild-* "$headers/usr/bin/sparse" -type f -perm -u+x | while read -r program; do
    [ "$(head -c 4 "$program" | tail -c 3)" = ELF ] || continue
    mv "$program" "$program.elf"
    # shellcheck disable=SC2016 # for the script's own shell
    printf '#!/bin/sh\nr=%q\nexec "$r/usr/lib64/ld-linux-x86-64.so.2" --argv0 "$0" --library-path "$r/usr/lib/x86_64-linux-gnu" "$0.elf" "$@"\n' \
      "$dir/root" >"$program"
    chmod +x "$program"
  done
  # Type information would need the kernel image and pahole; the module works without.
  rm -f "$headers"/usr/src/linux-headers-*/vmlinux
  # Newer kernels check the version of sparse by a script, which the package lacks.
  for scripts in "$headers"/usr/src/linux-headers-*-common/scripts; do
    [ -e "$scripts/checker-valid.sh" ] || { printf '#!/bin/sh\necho 1\n' >"$scripts/checker-valid.sh"; chmod +x "$scripts/checker-valid.sh"; }
  done
  # Options of the compiler that the kernel was built with, in the form of older ones.
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
cp "${sources[@]}" "$work/"
build=(make -C "$work" KDIR="$headers/usr/src/linux-headers-$release" CC="$headers/cc")
if [ "$check" ]; then
  say "checking kernel/$module with the headers of kernel $release"
  # The packaged sparse is older than a keyword of newer kernels, which is replaced by its predecessor.
  step 1800 "${build[@]}" KBUILD_ABS_SRCTREE=1 W=1 C=2 CF=-D__typeof_unqual__=__typeof__ CHECK="$headers/usr/bin/sparse" >"$out/check" 2>&1 || true
  # Warnings in the kernel's own headers are ignored. Newer kernels name the module's files without their folder,
  # and their MODULE_ macros use an assertion with a builtin function that sparse does not know.
  told=$(grep -E '(error|warning):' "$out/check" | grep -v ': error: bad constant expression$' | grep -E "^([^ ]*/work\.[^/]*/)?[a-z_]+\.[ch]:" | sed -E "s|^([^ ]*/work\.[^/]*/)?|kernel/$module/|" | sort -u) || true
  checked=$(grep -c '^ *CHECK ' "$out/check") || true
  [ "$checked" -ge "$(find "$work" -name '*.c' ! -name '*.mod.c' | wc -l)" ] ||
    die "sparse has not looked at every file with the headers of kernel $release; all messages are in $out/check"
  [ -z "$told" ] || printf '%s\n' "$told" >&2
  if [ "$told" ] || [ ! -e "$work/viaduct_$module.ko" ]; then
    die "the kernel sources are not clean; all messages are in $out/check"
  fi
  exit
fi
say "building kernel/$module for kernel $release"
step 1800 "${build[@]}" >"$out/log" 2>&1 ||
  { tail -5 "$out/log" >&2; die "kernel/$module does not build for kernel $release; all messages are in $out/log"; }
mv "$work/viaduct_$module.ko" "$out/"
echo "$key" >"$out/key"
echo "$out/viaduct_$module.ko"

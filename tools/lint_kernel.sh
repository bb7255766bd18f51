#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the modules of kernel/: compiler (W=1) and sparse against the packaged headers of every kernel that is tested, and the kernel's checkpatch in its strict form.
# checkpatch is only in a package of kernel sources (140 MB), which is fetched once; the script and its word lists are kept.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/guest_lib.sh

source_package=linux-source-6.12
failed=0
for kernel in 6.12 6.1 new; do
  for module in xdma loopback; do
    tools/guest_module.sh "$kernel" $module --check || failed=1
  done
done

command -v perl >/dev/null || die "checkpatch is written in perl, and this machine has none: install the package perl"
scripts=$dir/checkpatch-$source_package
[ -e "$scripts/checkpatch.pl" ] || lock
if [ ! -e "$scripts/checkpatch.pl" ]; then
  say "fetching $source_package once (140 MB), for checkpatch"
  : >"$dir/log"
  apt_update
  rm -rf "$scripts.part" "$dir/source.deb"
  mkdir -p "$scripts.part" "$dir/source.deb"
  (cd "$dir/source.deb" && apt 3600 get download "$source_package" >>"$dir/log") || die "the mirror has no package $source_package (see $dir/log)"
  # shellcheck disable=SC2016 # for the shell that it starts
  step 1800 bash -c 'set -euo pipefail
    dpkg-deb --fsys-tarfile "$1" | tar -xO --wildcards "*.tar.xz" |
      tar -xJ -C "$2" --strip-components=2 --wildcards "*/scripts/checkpatch.pl" "*/scripts/spelling.txt" "*/scripts/const_structs.checkpatch"' \
    unpack "$dir"/source.deb/*.deb "$scripts.part" || die "unpacking $source_package failed$late; is its disk full?"
  rm -rf "$dir/source.deb" "$apt_dir" "$scripts"
  mv "$scripts.part" "$scripts"
fi
say "checkpatch"
# Tests are programs: they use the types of their C library, have no BIT(), and read mapped registers without using the value.
# A compat.h is about versions of the kernel.
for file in kernel/*/*.[ch]; do
  ignore=()
  case $file in
    */test_*) ignore=(--ignore PREFER_KERNEL_TYPES,VOLATILE,BIT_MACRO) ;;
    */compat.h) ignore=(--ignore LINUX_VERSION_CODE,CONSTANT_COMPARISON) ;;
    *.mod.c) continue ;;
  esac
  perl "$scripts/checkpatch.pl" --no-tree --strict --terse --show-types --no-summary "${ignore[@]}" -f "$file" || failed=1
done
[ $failed -eq 0 ] && say "the kernel sources are clean"
exit $failed

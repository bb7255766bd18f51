#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vhost-user device processes for the guest, from Debian packages: qemu-storage-daemon, which serves disks, and passt, which serves
# network devices. Only unpacked, never installed, no root needed.
#
#   tools/guest_devices.sh
#
# Prints the path of a tar archive with the programs and the libraries that the guest lacks, to be unpacked at the guest's root
# (`viaduct vm --copy`). It is kept (12 MB to fetch, 6 MB); the second call takes no time.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/guest_lib.sh

# Those of the guest's own release, whose C library it has.
packages=(qemu-utils passt)
programs=(usr/bin/qemu-storage-daemon usr/bin/passt)

# It ends with this script, which is its parent: because of `exec` it is a direct child.
(exec setpriv --pdeathsig TERM timeout -k 10 7200 tools/guest.sh) >/dev/null
out=$dir/devices-$(sha256sum tools/guest_devices.sh | cut -c1-12).tar
[ -e "$out" ] || lock
if [ ! -e "$out" ]; then
  say "fetching device processes for the guest once (12 MB)"
  : >"$dir/log"
  rm -f "$dir"/devices-*.tar
  fetch "$dir/devices.part" "${packages[@]}"
  libraries=usr/lib/x86_64-linux-gnu
  for program in "${programs[@]}"; do
    echo "$program"
    # Only names; the loader is given by its path.
    step 600 "$dir/root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$dir/devices.part/$libraries" --list "$dir/devices.part/$program" |
      sed -n "s|.* => $dir/devices.part/\(.*\) (.*|\1|p" | while read -r file; do [ -e "$dir/root/$file" ] || echo "$file"; done
  done | sort -u >"$dir/devices.part/wanted"
  # As files: a library is found by a name that is a link.
  step 600 tar -C "$dir/devices.part" -c -h -f "$out.part" -T "$dir/devices.part/wanted"
  rm -rf "$dir/devices.part" "$apt_dir"
  mv "$out.part" "$out"
fi
echo "$out"

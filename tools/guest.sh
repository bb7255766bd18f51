#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Linux guest of `viaduct vm` in a cache folder: a QEMU with vfio-user, a stock Debian kernel, and a root disk with
# the tools of the guest tests. Packages come from the Debian mirror that this machine's apt uses and are only unpacked, never
# installed: no root needed. Existing files are kept; the second run takes no time.
#
#   tools/guest.sh [--kernel 6.12|6.1|new] [--check] [--root FILE]
#
# Prints on standard output, for `viaduct vm`, lines NAME=VALUE: dir, release, kernel, initrd, disk, and qemu
# (a program to run it with). --check only checks whether everything is there. --root also creates an image of 512 MB with the same files
# and a journal, for `viaduct vm --root`.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."

. tools/guest_lib.sh

kernel=6.12
check=
root_image=
while [ $# -gt 0 ]; do
  case $1 in
    --kernel) kernel=${2-}; shift 2 || die "--kernel wants a name: 6.12, 6.1 or new" ;;
    --check) check=1; shift ;;
    --root)
      case ${2-} in "") die "--root wants a file" ;; /*) root_image=$2 ;; *) root_image=$here/$2 ;; esac
      shift 2 ;;
    *) die "unknown option $1; there are --kernel 6.12|6.1|new, --check and --root FILE" ;;
  esac
done
suite=$(suite_of "$kernel")
boot_room=350 # MB to build initramfs and disk of a kernel
mapfile -t modules < <(sed 's/#.*//' guest/modules.txt | tr -s ' ' '\n' | grep .)

# A program of the unpacked tools, through their loader and libraries; it may depend on the name it is called by.
tool() { # PROGRAM ARGUMENT…
  local r=$dir/root program=$1; shift
  step 600 "$r/usr/lib64/ld-linux-x86-64.so.2" --argv0 "$program" --library-path "$r/usr/lib/x86_64-linux-gnu" "$r/usr/sbin/$program" "$@"
}

# ---------------------------------------------------------------- parts
# The missing parts, and the MB needed to build them: packages and their contents.
look() {
  need=() room=0
  [ -e "$dir/qemu/packages" ] || { need+=("QEMU (150 MB, 30 s)"); room=$((room + 250)); }
  [ -e "$dir/root/packages" ] || { need+=("guest tools (150 MB, 30 s)"); room=$((room + 200)); }
  [ -e "$dir/kernel-$kernel/packages" ] || { need+=("kernel $kernel (120 MB, 20 s)"); room=$((room + 230)); }
  [ $room = 0 ] || room=$((room + 150)) # package lists
}
enough_room() { # MB
  local free
  free=$(free_in "$dir")
  [ "$free" -ge "$1" ] || die "the guest needs $1 MB in $dir, and $free MB are free there. Make room, or name another cache folder with XDG_CACHE_HOME"
}
look
if [ ${#need[@]} -gt 0 ]; then
  text=$(printf ', %s' "${need[@]}")
  [ -z "$check" ] || die "not there yet: ${text:2}; tools/guest.sh --kernel $kernel fetches it"
  [ "$(uname -m)" = x86_64 ] || die "the guest's QEMU is unpacked for x86-64, and this machine is $(uname -m)"
  enough_room $((room + boot_room))
  lock
  look
fi
if [ ${#need[@]} -gt 0 ]; then
  text=$(printf ', %s' "${need[@]}")
  say "fetching once into $dir: ${text:2}"
  : >"$dir/log"
  # Those of earlier lists are removed when unused for days.
  step 600 find "${dir%/*}" -maxdepth 1 -name 'guest-*' -mtime +14 -exec rm -rf {} +
fi

if [ ! -e "$dir/qemu/packages" ]; then
  fetch "$dir/qemu" "${backports[@]/%//trixie-backports}"
  cat >"$dir/qemu/run" <<'RUN'
#!/bin/sh
# QEMU through its own loader and libraries.
r=$(dirname "$(readlink -f "$0")")
export QEMU_MODULE_DIR="$r/usr/lib/x86_64-linux-gnu/qemu"
exec "$r/usr/lib64/ld-linux-x86-64.so.2" --library-path "$r/usr/lib/x86_64-linux-gnu:$r/usr/lib/x86_64-linux-gnu/pulseaudio" \
  "$r/usr/bin/qemu-system-x86_64" -L "$r/usr/share/qemu" -L "$r/usr/share/seabios" "$@"
RUN
  chmod +x "$dir/qemu/run"
fi

[ -e "$dir/root/packages" ] || fetch "$dir/root" "${tools[@]}"

if [ ! -e "$dir/kernel-$kernel/packages" ]; then
  apt_update
  version=$(apt 300 cache madison linux-image-amd64 | awk -v s="$suite/main" '$6 == s { print $3; exit }')
  [ "$version" ] || die "no kernel in $suite at the mirror"
  image=$(apt 300 cache show "linux-image-amd64=$version" | sed -nE 's/^Depends:.*(linux-image-[^ ,]+).*/\1/p' | head -1)
  # Newer kernels are split into several packages: the image depends on the others, of the same release.
  release=${image#linux-image-}
  others=$(apt 300 cache show "$image" | sed -n 's/^Depends://p' | grep -oE "linux-(base|binary|modules)-${release//+/\\+}" | sort -u || true)
  step 600 rm -rf "$dir/kernel-$kernel" "$dir/kernel.part" "$dir/kernel.deb"
  mkdir -p "$dir/kernel.deb"
  # shellcheck disable=SC2086 # a list of words
  apt_in=$dir/kernel.deb apt 3600 get download "$image" $others >>"$dir/log" || die "fetching $image failed$late: see $dir/log. Check the network and run the same command again"
  unpack "$dir/kernel.part" "$dir"/kernel.deb/*.deb
  vmlinuz=$(find "$dir/kernel.part" -type f -name 'vmlinuz*' | head -1)
  [ "$vmlinuz" ] && [ -d "$dir/kernel.part/usr/lib/modules/$release" ] || die "$image $others: no kernel or modules found in them"
  ln -s "${vmlinuz#"$dir/kernel.part/"}" "$dir/kernel.part/vmlinuz"
  tool depmod -b "$dir/kernel.part" "$release" 2>>"$dir/log" || die "depmod failed: see $dir/log"
  (cd "$dir/kernel.deb" && ls) >"$dir/kernel.part/packages"
  echo "$release" >"$dir/kernel.part/release"
  rm -rf "$dir/kernel.deb"
  mv "$dir/kernel.part" "$dir/kernel-$kernel"
fi
[ ${#need[@]} -eq 0 ] || rm -rf "$apt_dir"
release=$(cat "$dir/kernel-$kernel/release")

# ---------------------------------------------------------------- initramfs and disk of this kernel
key=$(cat "$dir"/{qemu,root,kernel-"$kernel"}/packages tools/guest.sh tools/guest_lib.sh guest/{modules.txt,init,agent,lib.sh} guest/src/* | sha256sum | cut -c1-16)
out=$dir/boot-$kernel-$key
if [ ! -e "$out/complete" ]; then
  [ -z "$check" ] || die "not made yet: initramfs and disk of kernel $kernel; tools/guest.sh --kernel $kernel makes them (10 s)"
  enough_room $boot_room
  lock
fi
if [ ! -e "$out/complete" ]; then
  say "making initramfs and disk of kernel $release (10 s)"
  work=$(mktemp -d "$dir/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT

  # The listed modules and their dependencies, uncompressed; alias tables for them alone. Built-in ones are skipped.
  from=$dir/kernel-$kernel/usr/lib/modules/$release
  copy_modules() { # FOLDER NAME…
    local to=$1/usr/lib/modules/$release f; shift
    mkdir -p "$to"
    cp "$from"/modules.{order,builtin,builtin.modinfo} "$to/"
    printf '%s\n' "$@" >"$work/wanted"
    step 600 awk -v dep="$from/modules.dep" '
      { gsub("-", "_"); want[$0] = 1 }
      END { while ((getline line < dep) > 0) {
        n = split(line, f, /:? /); name = f[1]; sub(/:$/, "", name)
        base = name; sub(/.*\//, "", base); sub(/\.ko.*/, "", base); gsub("-", "_", base)
        if (base in want) { print name; for (i = 2; i <= n; i++) if (f[i] != "") print f[i] }
      } }' "$work/wanted" >"$work/found"
    while read -r f <&3; do
      mkdir -p "$to/$(dirname "$f")"
      case $f in
        *.xz) step 600 xz -dc "$from/$f" >"$to/${f%.xz}" ;;
        *.zst) step 600 zstd -qdc "$from/$f" >"$to/${f%.zst}" ;;
        *) step 600 cp "$from/$f" "$to/$f" ;;
      esac
    done 3< <(sort -u "$work/found")
    [ -e "${to%/usr/*}/lib" ] || ln -s usr/lib "${to%/usr/*}/lib"
    tool depmod -b "${to%/usr/*}" "$release"
  }

  # The initramfs only finds the disk; not compressed, because the guest's processor is slow and memory is fast.
  mkdir -p "$work"/init/{bin,dev,proc,sys,new}
  cp "$dir/root/usr/bin/busybox" "$work/init/bin/"
  install -m 755 guest/init "$work/init/init"
  copy_modules "$work/init" ahci sd_mod ext4 crc32c_generic overlay virtio_pci virtio_blk
  # shellcheck disable=SC2016 # for the shell that it starts
  step 600 bash -c 'set -euo pipefail; cd "$1"; find . | LC_ALL=C sort | "$2" cpio -o -H newc -R 0:0 2>/dev/null' \
    pack "$work/init" "$dir/root/usr/bin/busybox" >"$work/initrd" || die "packing the initramfs failed$late; is the disk of $dir full?"

  # The disk: the tools, the modules, the agent.
  step 600 cp -al "$dir/root" "$work/disk" || die "copying the guest's tools failed$late; is the disk of $dir full?"
  rm -rf "$work/disk/packages" "$work/disk/usr/lib/modules"
  copy_modules "$work/disk" "${modules[@]}"
  mkdir -p "$work/disk"/{dev,proc,sys,run,tmp,root,mnt,guest}
  install -m 755 guest/agent "$work/disk/guest/agent"
  install -m 644 guest/lib.sh "$work/disk/guest/lib.sh"
  for source in guest/src/*.c; do
    program=$work/disk/usr/bin/$(basename "$source" .c)
    step 600 gcc -O2 -static -o "$program" "$source" || die "gcc cannot build $source for the guest; see its message above. It needs gcc and the static C library (libc6-dev)"
  done
  # Files that Debian would create on installation.
  ln -sf dash "$work/disk/usr/bin/sh"
  mkdir -p "$work/disk/etc"
  echo 'root::0:0:root:/root:/bin/bash' >"$work/disk/etc/passwd"
  echo 'root:x:0:' >"$work/disk/etc/group"
  "$dir/root/usr/bin/busybox" --list | while read -r applet; do
    [ -e "$work/disk/usr/bin/$applet" ] || [ -e "$work/disk/usr/sbin/$applet" ] || ln -s busybox "$work/disk/usr/bin/$applet"
  done
  step 600 du -sm "$work/disk" >"$work/size"
  read -r size _ <"$work/size"
  MKE2FS_CONFIG="$dir/root/etc/mke2fs.conf" tool mke2fs -q -t ext4 -O ^has_journal -m 0 -E root_owner=0:0 \
    -d "$work/disk" "$work/disk.img" "$((size * 5 / 4 + 16))M"

  # Those of earlier versions are removed when unused for days.
  step 600 find "$dir" -maxdepth 2 -path "*/boot-*/complete" -mtime +3 -printf '%h\0' | step 600 xargs -0r rm -rf
  step 600 rm -rf "$out"
  mkdir "$out"
  mv "$work/initrd" "$work/disk.img" "$out/"
  touch "$out/complete"
fi
touch "$dir" "$out/complete" 2>/dev/null || true # marks it as used; it may belong to another user

if [ "$root_image" ]; then
  ! [ -e "$root_image" ] || die "$root_image exists; remove it, or name another file"
  part=$root_image.part
  step 600 cp --sparse=always "$out/disk.img" "$part" && truncate -s 512M "$part" || die "$part cannot be written; is there room for 512 MB?"
  tool resize2fs "$part" >"$part.log" 2>&1 && tool tune2fs -j "$part" >>"$part.log" 2>&1 || die "no image can be made: see $part.log"
  mv "$part" "$root_image"
  rm "$part.log"
fi

echo "dir=$dir"
echo "release=$release"
echo "kernel=$dir/kernel-$kernel/vmlinuz"
echo "initrd=$out/initrd"
echo "disk=$out/disk.img"
echo "qemu=$dir/qemu/run"

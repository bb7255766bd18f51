# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by tools/guest.sh and tools/guest_module.sh: the paths of the guest's files, and their contents. To be
# sourced in the repository's folder.

# The Debian release of a kernel.
suite_of() { # KERNEL
  case $1 in
    6.12) echo trixie ;;
    6.1) echo bookworm ;;
    new) echo trixie-backports ;;
    *) die "no kernel named $1; there are 6.12 (Debian 13), 6.1 (Debian 12) and new (the newest packaged)" ;;
  esac
}

# ---------------------------------------------------------------- what is wanted
backports=(seabios qemu-system-x86 qemu-system-common qemu-system-data)
# The real shells and coreutils in addition to busybox, which would run its own small versions instead.
tools=(dash bash coreutils busybox-static kmod ethtool iperf3 fio e2fsprogs rng-tools5 iputils-ping socat pciutils iproute2 util-linux)

list_hash=$(printf '%s\n' "${backports[@]}" "${tools[@]}" | sha256sum | cut -c1-12)
what=guest
suites=(trixie trixie-backports bookworm)
dir=${XDG_CACHE_HOME:-${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}/.cache}/viaduct/guest-$list_hash
. tools/apt_lib.sh

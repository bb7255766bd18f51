# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What tools/guest.sh and tools/guest_module.sh share: where the guest's files are, and what they are made of. To be
# sourced in the repository's folder.

# The Debian that a kernel is from.
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
# Beside busybox the real shells and coreutils: busybox would run its own small programs instead of the ones named here.
tools=(dash bash coreutils busybox-static kmod ethtool iperf3 fio e2fsprogs rng-tools5 iputils-ping socat pciutils iproute2 util-linux)

list_hash=$(printf '%s\n' "${backports[@]}" "${tools[@]}" | sha256sum | cut -c1-12)
what=guest
suites=(trixie trixie-backports bookworm)
dir=${XDG_CACHE_HOME:-${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}/.cache}/viaduct/guest-$list_hash
. tools/apt_lib.sh

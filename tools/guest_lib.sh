# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What tools/guest.sh and tools/guest_module.sh share: where the guest's files are, and an apt beside the machine's own. To be
# sourced in the repository's folder.

say() { printf 'guest: %s\n' "$*" >&2; }
die() { printf 'guest: error: %s\n' "$*" >&2; exit 1; }

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
dir=${XDG_CACHE_HOME:-$HOME/.cache}/viaduct/guest-$list_hash

# ---------------------------------------------------------------- fetching packages
mirror() {
  [ -z "${VIADUCT_GUEST_MIRROR-}" ] || { echo "$VIADUCT_GUEST_MIRROR"; return; }
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -v -e security -e '^cdrom' | head -1 || true
}

# An apt of its own beside the machine's: its lists, packages and an empty list of what is installed.
apt_dir=$dir/apt
apt() {
  local tool=$1; shift
  "apt-$tool" -q -o Dir="$apt_dir" -o Dir::State::status="$apt_dir/status" -o Dir::Etc::SourceList="$apt_dir/sources.list" \
    -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
    -o APT::Default-Release=trixie -o APT::Sandbox::User= -o APT::Install-Recommends=false -o Acquire::Languages=none \
    -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false -o Dpkg::Use-Pty=0 "$@" 2>>"$dir/log"
}

apt_ready=
apt_update() {
  [ -z "$apt_ready" ] || return 0
  local m keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    die "the guest is unpacked from Debian packages, and this machine has no apt-get and dpkg-deb. Use a Debian or Ubuntu machine or container"
  [ -e $keyring ] || die "$keyring is missing: install the package debian-archive-keyring, then run the same command again"
  m=$(mirror)
  [ "$m" ] || die "apt on this machine has no package mirror set. Set VIADUCT_GUEST_MIRROR to the address of a Debian mirror"
  mkdir -p "$apt_dir"/{etc/apt,var/lib/apt/lists/partial,var/cache/apt/archives/partial,state,cache/archives/partial}
  : >"$apt_dir/status"
  for s in trixie trixie-backports bookworm; do echo "deb [signed-by=$keyring] $m $s main"; done >"$apt_dir/sources.list"
  apt get update >>"$dir/log" ||
    die "no package lists for Debian trixie, trixie-backports and bookworm from the mirror of this machine's apt ($m); details in $dir/log. Check the network, or set VIADUCT_GUEST_MIRROR to the address of a Debian mirror"
  apt_ready=1
}

# Unpacks packages into a folder with the merged /usr of Debian, without documentation.
unpack() { # FOLDER PACKAGE.deb…
  local to=$1; shift
  mkdir -p "$to/usr"/{bin,sbin,lib,lib64}
  for l in bin sbin lib lib64; do [ -e "$to/$l" ] || ln -s "usr/$l" "$to/$l"; done
  for deb in "$@"; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$to" --keep-directory-symlink --no-same-owner --exclude='./usr/share/doc/*' \
      --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' --exclude='./usr/share/info/*' --exclude='./dev/*'
  done
}

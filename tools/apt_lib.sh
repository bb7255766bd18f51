# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Fetches Debian packages with a separate apt configuration, and unpacks them: nothing is installed. To be sourced in the repository's folder
# by a script that sets
#   what     the prefix of its messages
#   dir      folder for everything fetched
#   suites   Debian releases to search, the first one preferred

say() { printf '%s: %s\n' "$what" "$*" >&2; }
die() { printf '%s: error: %s\n' "$what" "$*" >&2; exit 1; }
set -E
trap '[ $BASH_SUBSHELL != 0 ] || die "$BASH_COMMAND: failed (${BASH_SOURCE[0]}, line $LINENO); its output is above"' ERR

# Runs a program with a time limit in seconds; it also ends when this script ends in any way. To be called from the script's own shell: in a
# subshell, it ends with that.
late=
step() { # SECONDS PROGRAM ARGUMENT…
  local limit=$1 status=0; shift
  setpriv --pdeathsig TERM timeout -k 10 "$limit" "$@" || status=$?
  [ $status != 124 ] || late=" (not done within $limit s)"
  return $status
}

# Free space of a folder that may not exist yet, in MB.
free_in() { # FOLDER
  local at=$1
  until [ -d "$at" ]; do at=$(dirname "$at"); done
  df --output=avail -m "$at" | tail -1 | tr -d ' '
}

# From here to the end of the script the folder is locked. The lock is that of an open file: it is released when its holder and all its
# children have ended.
lock() {
  command -v setpriv >/dev/null && command -v timeout >/dev/null || die "setpriv and timeout are missing: install the packages util-linux and coreutils"
  mkdir -p "$dir"
  exec 9>>"$dir/lock"
  flock -n 9 || {
    say "waiting for process $(cat "$dir/lock"), which works in $dir"
    flock -w 7200 9 || die "process $(cat "$dir/lock") has not done so within two hours: end it, and run the same command again"
  }
  echo $$ >"$dir/lock"
  # Files left by a killed run.
  step 600 rm -rf "$dir"/*.part "$dir"/*.deb "$dir"/work.* "$apt_dir"
}

# ---------------------------------------------------------------- fetching packages
mirror() {
  [ -z "${VIADUCT_GUEST_MIRROR-}" ] || { echo "$VIADUCT_GUEST_MIRROR"; return; }
  step 300 apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -v -e security -e '^cdrom' | head -1 || true
}

# An apt configuration separate from the machine's: its lists, packages and an empty list of installed packages.
apt_dir=$dir/apt
apt_in=. # its working folder
apt() { # SECONDS get|cache ARGUMENT…
  local limit=$1 tool=$2; shift 2
  # Its temporary files, which it leaves when it is killed, are removed with the folder.
  step "$limit" env -C "$apt_in" TMPDIR="$apt_dir/tmp" "apt-$tool" -q -o Acquire::http::Timeout=60 -o Acquire::https::Timeout=60 -o Acquire::Retries=2 -o Dir="$apt_dir" -o Dir::State::status="$apt_dir/status" -o Dir::Etc::SourceList="$apt_dir/sources.list" \
    -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
    -o APT::Default-Release="${suites[0]}" -o APT::Sandbox::User= -o APT::Install-Recommends=false -o Acquire::Languages=none \
    -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false -o Dpkg::Use-Pty=0 "$@" 2>>"$dir/log"
}

apt_ready=
apt_update() {
  [ -z "$apt_ready" ] || return 0
  local m keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    die "what is needed is unpacked from Debian packages, and this machine has no apt-get and dpkg-deb. Use a Debian or Ubuntu machine or container"
  [ -e $keyring ] || die "$keyring is missing: install the package debian-archive-keyring, then run the same command again"
  m=$(mirror)
  [ "$m" ] || die "apt on this machine has no package mirror set. Set VIADUCT_GUEST_MIRROR to the address of a Debian mirror"
  mkdir -p "$apt_dir"/{etc/apt,var/lib/apt/lists/partial,var/cache/apt/archives/partial,state,cache/archives/partial,tmp}
  : >"$apt_dir/status"
  for s in "${suites[@]}"; do echo "deb [signed-by=$keyring] $m $s main"; done >"$apt_dir/sources.list"
  apt 900 get update >>"$dir/log" ||
    die "no package lists for Debian ${suites[*]} from the mirror of this machine's apt ($m)$late; details in $dir/log. Check the network, or set VIADUCT_GUEST_MIRROR to the address of a Debian mirror"
  apt_ready=1
}

# Unpacks packages into a folder with Debian's merged /usr, without documentation.
unpack() { # FOLDER PACKAGE.deb…
  local to=$1; shift
  mkdir -p "$to/usr"/{bin,sbin,lib,lib64}
  for l in bin sbin lib lib64; do [ -e "$to/$l" ] || ln -s "usr/$l" "$to/$l"; done
  # shellcheck disable=SC2016 # for the shell that it starts
  step 1800 bash -c 'set -euo pipefail; to=$1; shift
    for deb in "$@"; do
      dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$to" --keep-directory-symlink --no-same-owner --exclude="./usr/share/doc/*" \
        --exclude="./usr/share/man/*" --exclude="./usr/share/locale/*" --exclude="./usr/share/info/*" --exclude="./dev/*"
    done' unpack "$to" "$@" || die "unpacking packages into $to failed$late; is its disk full?"
}

# Packages with all dependencies, into a folder.
fetch() { # FOLDER PACKAGE…
  local to=$1; shift
  apt_update
  step 600 rm -rf "$to" "$to.part" "$apt_dir"/var/cache/apt/archives/*.deb
  apt 3600 get install -y --download-only "$@" >>"$dir/log" || die "fetching $* failed$late: see $dir/log. Check the network and run the same command again"
  unpack "$to.part" "$apt_dir"/var/cache/apt/archives/*.deb
  (cd "$apt_dir/var/cache/apt/archives" && ls -- *.deb) >"$to.part/packages"
  rm -f "$apt_dir"/var/cache/apt/archives/*.deb
  mv "$to.part" "$to"
}

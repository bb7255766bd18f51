#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what `make build` has built below DESTDIR and PREFIX, or removes it again:
#
#     DESTDIR= PREFIX=/usr/local tools/install.sh install|uninstall
#
# DESTDIR is in front of every path that is written and in no file: packages are made with it. What is installed is listed in
# share/viaduct/installed-files, by which it is removed, and by which the programs know an installed tree from a checkout.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { printf 'install: error: %s\n' "$*" >&2; exit 1; }

prefix=${PREFIX:-/usr/local}
[[ $prefix = /* && $prefix != *$'\n'* ]] || die "PREFIX=$prefix: not an absolute path"
to=${DESTDIR:-}$prefix
list=$to/share/viaduct/installed-files

uninstall() {
  [ -f "$list" ] || die "nothing is installed in $to: there is no $list"
  (cd "$to" && xargs -r -d '\n' rm -f) < "$list"
  rm -f "$list"
  # What somebody else has put there stays. Other folders are not ours alone.
  find "${list%/*}" -depth -type d -empty -delete
}

# put MODE SOURCE TARGET: one file. Listed before it is there: an installation that is interrupted can be removed.
put() {
  echo "$3" >> "$list"
  install -D -m "$1" "$2" "$to/$3"
}

# program MODE SOURCE TARGET: as put, without what only debuggers read.
program() { put "$@"; strip --strip-debug "$to/$3"; }

link() {
  echo "$2" >> "$list"
  ln -sfn "$1" "$to/$2"
}

release=target/release
functions=build/card/libviaduct_card_functions
[ -x $release/viaduct ] && [ -x $release/viaductd ] && [ -f $release/libviaduct.so ] &&
  [ -f $release/libviaduct.a ] && [ -f build/apps/pass/pass.via ] &&
  [ -f build/card/libviaduct_card.so ] && [ -f $functions.so ] || built=no

install_all() {
  [ "${built:-yes}" = yes ] || die "not everything is built: run \`make build\` first"
  local version abi
  version=$(sed -nE '/^\[workspace\.package\]/,/^\[/s/^version = "(.*)"/\1/p' Cargo.toml)
  abi=$(sed -nE 's/^#define VIADUCT_ABI_VERSION ([0-9]+)u$/\1/p' host/viaduct-capi/include/viaduct.h)
  [ -n "$(type -P strip)" ] || die "strip is not installed: it is part of binutils"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  stage
  # An older one goes first, with the files that this one does not have.
  [ ! -f "$list" ] || uninstall
  mkdir -p "${list%/*}" || die "cannot write to $to: name another folder with PREFIX, or run this as root"
  : > "$list"
  chmod 644 "$list"

  program 755 $release/viaduct bin/viaduct
  program 755 $release/viaductd bin/viaductd
  program 755 $release/libviaduct.so "lib/libviaduct.so.$version"
  link "libviaduct.so.$version" "lib/libviaduct.so.$abi"
  link "libviaduct.so.$abi" lib/libviaduct.so
  program 644 $release/libviaduct.a lib/libviaduct.a
  put 644 host/viaduct-capi/include/viaduct.h include/viaduct.h
  put 644 host/viaduct-capi/include/viaduct_fpga.h include/viaduct_fpga.h
  sed "s|@PREFIX@|${prefix//[&|\\]/\\&}|; s|@VERSION@|$version|" host/viaduct-capi/viaduct.pc.in > "$scratch/viaduct.pc"
  put 644 "$scratch/viaduct.pc" lib/pkgconfig/viaduct.pc

  $release/viaduct man "$scratch/man"
  $release/viaductd --man > "$scratch/man/viaductd.1"
  put 644 LICENSE share/doc/viaduct/LICENSE
  local page name
  for page in "$scratch"/man/*.1; do put 644 "$page" "share/man/man1/${page##*/}"; done
  for name in viaduct viaductd; do
    completions() {
      if [ $name = viaduct ]; then $release/viaduct completions "$1"; else $release/viaductd --completions "$1"; fi > "$scratch/$name.$1"
    }
    completions bash; put 644 "$scratch/$name.bash" share/bash-completion/completions/$name
    completions zsh; put 644 "$scratch/$name.zsh" share/zsh/site-functions/_$name
    completions fish; put 644 "$scratch/$name.fish" share/fish/vendor_completions.d/$name.fish
  done

  sed 's|^|share/viaduct/|' "$scratch/tree" >> "$list"
  tar -c -C "$scratch/root" --no-recursion -T "$scratch/tree" | tar -x --no-same-owner -C "${list%/*}"
  if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" = 0 ]; then ldconfig; fi # the loader finds the library in /usr/local/lib
  echo "installed in $to; \`make uninstall\` with the same PREFIX and DESTDIR removes it"
}

# The sources, the card and the apps' images, with the stamps by which the programs see that they belong together. They must where they are
# installed, too: that is tried with a copy, before anything that is installed is touched.
stage() {
  mkdir "$scratch/root"
  {
    find rtl sim tools apps guest -name '.?*' -prune -o -name __pycache__ -prune -o -type f -print
    find build/regs -maxdepth 1 -type f
    find build/apps -name '*.verilated' -prune -o -type f -print
    find build/card -maxdepth 1 -name '*.so'
    find build/card build/apps -name stamp.json
  } | LC_ALL=C sort -u > "$scratch/tree"
  # With times and modes, but readable by everybody, and nobody's but the installer's.
  tar -c --no-recursion -T "$scratch/tree" --mode=u=rwX,go=rX --owner=0 --group=0 | tar -x --no-same-owner -C "$scratch/root"
  export VIADUCT_ROOT=$scratch/root
  : > "$VIADUCT_ROOT/${list##*/}"
  if ! { $release/viaduct build --all && echo | $release/viaduct run pass --in - --out -; } > "$scratch/out" 2>&1; then
    local why
    why=$(sed -nE 's/.*error: (building )?(.*)/\2/; s/ needs a checkout: .*//; $p' "$scratch/out")
    die "what is built cannot be used: $why: run \`make build\`, then the same command again"
  fi
}

umask 022
case ${1:-} in
  install) install_all ;;
  uninstall) uninstall ;;
  *) die "say install or uninstall" ;;
esac

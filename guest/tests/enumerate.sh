#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every function on the PCI bus: identity, BARs, capabilities, driver. Arguments: the types that must exist.
. /guest/lib.sh

bytes() { echo $(dd if="/sys/bus/pci/devices/$1/config" bs=1 skip="$2" count="$3" 2>/dev/null | od -An -tu1); }
word() { # ADDRESS OFFSET, 32 bits
  set -- $(bytes "$1" "$2" 4)
  echo $(($1 | $2 << 8 | $3 << 16 | $4 << 24))
}
# Offsets of the capabilities with this id.
capabilities() { # ADDRESS ID
  _at=$(bytes "$1" 52 1)
  _n=0
  while [ "$_at" -ge 64 ]; do
    set -- "$1" "$2" $(bytes "$1" "$_at" 2)
    [ "$3" -ne "$2" ] || echo "$_at"
    _at=$4
    _n=$((_n + 1))
    [ $_n -lt 48 ] || fail "$1: the list of capabilities has no end"
  done
}

for kind in "$@"; do
  pci=$(pci_of "$kind") || fail "no function $kind on the bus: $(lspci -n)"
  dev=/sys/bus/pci/devices/$pci
  lspci -s "$pci" -nn -k
  lspci -s "$pci" -vvv >/tmp/lspci.$kind || fail "$kind: lspci ends with $?"
  [ "$(wc -c <"$dev/config")" -eq 4096 ] || fail "$kind: no extended configuration space"
  [ -n "$(capabilities "$pci" 16)" ] || fail "$kind: no PCI Express capability"
  pcie=$(capabilities "$pci" 16)
  [ $(($(word "$pci" $((pcie + 4))) >> 28 & 1)) -eq 1 ] || fail "$kind: no function-level reset"
  msix=$(capabilities "$pci" 17)
  [ -n "$msix" ] || fail "$kind: no MSI-X"
  vectors=$((($(word "$pci" "$msix") >> 16 & 2047) + 1))
  table=$(word "$pci" $((msix + 4)))
  # Lines of `resource`: start end flags.
  bar_size() { awk -v n="$1" 'NR == n + 1 { print ($2 == $1) ? 0 : 1 }' "$dev/resource"; }
  [ "$(bar_size $((table & 7)))" = 1 ] || fail "$kind: the MSI-X table is in BAR $((table & 7)), which has no address"
  if [ "$kind" != mgmt ]; then
    types=
    for at in $(capabilities "$pci" 9); do
      set -- $(bytes "$pci" "$at" 5)
      type=$4 bar=$5
      types="$types $type"
      [ "$3" -ge 16 ] || fail "$kind: capability of type $type is only $3 bytes long"
      case $type in
        1 | 2 | 3 | 4)
          [ "$bar" -le 5 ] && [ "$(bar_size "$bar")" = 1 ] || fail "$kind: capability of type $type points to BAR $bar, which has no address"
          ;;
      esac
    done
    for type in 1 2 3 5; do
      case " $types " in *" $type "*) ;; *) fail "$kind: no virtio capability of type $type (there are$types)" ;; esac
    done
    wait_for 600 device_is_well "$kind" || fail "$kind: its driver does not work"
    echo "  $(virtio_of "$kind"): features $(cat "/sys/bus/virtio/devices/$(virtio_of "$kind")/features"), $vectors vectors, capabilities$types"
  fi
  pass "enumerate $kind"
done
no_complaints

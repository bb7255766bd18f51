#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Drivers: module unload and reload, unbind and rebind, function-level reset. Arguments: types of functions.
. /guest/lib.sh

works() { # KIND: an operation that needs the device
  case $1 in
    net) n=$(net_name) && ip link set "$n" up && wait_for 600 grep -q 1 "/sys/class/net/$n/carrier" ;;
    blk) b=$(blk_name) && wait_for 600 test -b "/dev/$b" && timeout 200 dd if="/dev/$b" of=/dev/null bs=4k count=16 iflag=direct 2>/dev/null ;;
    entropy) [ "$(timeout 200 head -c 64 /dev/hwrng | wc -c)" -eq 64 ] ;;
    console) wait_for 600 test -c /dev/hvc0 ;;
    input) ls "/sys/bus/virtio/devices/$(virtio_of input)/input" >/dev/null 2>&1 ;;
  esac
}
check() { wait_for 600 device_is_well "$1" && works "$1" || fail "$1 does not work $2"; }

for kind in "$@"; do
  pci=$(pci_of "$kind") || fail "no function $kind"
  dev=/sys/bus/pci/devices/$pci
  check "$kind" "at first"
  if module=$(module_of "$kind"); then
    for i in 1 2 3; do
      rmmod "$module" || fail "rmmod $module"
      modprobe "$module" || fail "modprobe $module"
      check "$kind" "after reload $i of its module"
    done
  fi
  for i in 1 2 3; do
    echo "$pci" >/sys/bus/pci/drivers/virtio-pci/unbind
    [ -z "$(virtio_of "$kind")" ] || fail "$kind: unbinding leaves the device"
    if [ $i = 2 ]; then
      grep -q flr "$dev/reset_method" || fail "$kind: no function-level reset: $(cat "$dev/reset_method")"
      echo flr >"$dev/reset_method"
      echo 1 >"$dev/reset" || fail "$kind: reset"
    fi
    echo "$pci" >/sys/bus/pci/drivers/virtio-pci/bind || fail "$kind: rebind"
    check "$kind" "after unbind and rebind $i"
  done
  # Removed and rescanned, with full enumeration.
  echo 1 >"$dev/remove"
  wait_for 600 test ! -e "$dev" || fail "$kind: is not removed"
  echo 1 >/sys/bus/pci/rescan
  check "$kind" "after remove and rescan"
  pass "reload, rebind, reset, rescan: $kind"
done
no_complaints

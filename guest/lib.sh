# SPDX-License-Identifier: Apache-2.0
# Helpers of the guest's scripts: `. /guest/lib.sh`.
set -u

# Ends the script with a reason.
fail() { echo "FAIL: $*" >&2; dmesg | tail -30 >&2; exit 1; }
pass() { echo "pass: $*"; }

# Waits until a command succeeds, for a limited number of seconds.
wait_for() { # SECONDS COMMAND…
  _end=$(($(date +%s) + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt $_end ] || return 1
    usleep 20000
  done
}

# The card's functions: PCI addresses of the devices behind the root ports.
functions() { ls /sys/bus/pci/devices | grep -v '^0000:00:'; }

# The virtio device of a type (net, blk, console, entropy, input), such as virtio0.
virtio_of() { # KIND
  case $1 in
    net) _id=0x0001 ;; blk) _id=0x0002 ;; console) _id=0x0003 ;; entropy) _id=0x0004 ;; input) _id=0x0012 ;;
    *) fail "no type of virtio device is called $1" ;;
  esac
  for _v in /sys/bus/virtio/devices/*; do
    [ "$(cat "$_v/device" 2>/dev/null)" != $_id ] || { basename "$_v"; return 0; }
  done
  return 1
}

# PCI address of a type of function, with or without a driver.
pci_of() { # KIND
  case $1 in
    net) _id=0x1041 _old=0x1000 ;; blk) _id=0x1042 _old=0x1001 ;; console) _id=0x1043 _old=0x1003 ;;
    entropy) _id=0x1044 _old=0x1005 ;; input) _id=0x1052 _old=0x1052 ;; mgmt) _id=0x5649 _old=0x5649 ;;
    *) fail "no type of function is called $1" ;;
  esac
  for _p in $(functions); do
    case $(cat "/sys/bus/pci/devices/$_p/device") in "$_id" | "$_old") echo "$_p"; return 0 ;; esac
  done
  return 1
}

# The device that a function appears as with its driver.
net_name() { _d=$(virtio_of net) && ls "/sys/bus/virtio/devices/$_d/net" 2>/dev/null | grep .; }
blk_name() { _d=$(virtio_of blk) && ls "/sys/bus/virtio/devices/$_d/block" 2>/dev/null | grep .; }

# Sets $name to the network device, with its own address and link up.
net_up() { # OWN-ADDRESS/BITS
  name=$(net_name) || fail "no network device"
  ip address flush dev "$name"
  ip address add "$1" dev "$name"
  ip link set "$name" up
  wait_for 600 grep -q 1 "/sys/class/net/$name/carrier" || fail "no carrier"
}

# The driver's module of a type; the console's is built in.
module_of() {
  case $1 in net) echo virtio_net ;; blk) echo virtio_blk ;; entropy) echo virtio_rng ;; input) echo virtio_input ;; *) return 1 ;; esac
}

# Bits 3:0 of the device status are set, and no error bits.
device_is_well() { # KIND
  _s=$(cat "/sys/bus/virtio/devices/$(virtio_of "$1")/status" 2>/dev/null) || return 1
  [ $((_s)) -eq 15 ]
}

# Warnings and errors of the kernel since the script began, except those that occur in every guest.
kernel_complaints() { dmesg | grep -E 'WARNING:|BUG:|Oops|Call Trace|I/O error|transmit queue .* timed out|general protection'; }
# Names of tasks that hang: the kernel's own detection is off, since it depends on time and the machine may be busy.
waiting() { sed -n 's/^\([0-9]* (.*)\) D .*/\1/p' /proc/[0-9]*/stat 2>/dev/null; }
no_complaints() {
  ! kernel_complaints || fail "the kernel complains"
  for _ in 1 2 3 4 5 6; do
    [ "$(waiting)" ] || return 0
    sleep 10
  done
  fail "waiting for a minute: $(waiting)"
}

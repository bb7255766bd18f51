# SPDX-License-Identifier: Apache-2.0
# Helpers of the guest's scripts: `. /guest/lib.sh`.
set -u

# Ends the script with a reason.
fail() { echo "FAIL: $*" >&2; dmesg | tail -30 >&2; exit 1; }
pass() { echo "pass: $*"; }

# Waits until a command succeeds, at most so many seconds.
wait_for() { # SECONDS COMMAND…
  _end=$(($(date +%s) + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt $_end ] || return 1
    usleep 20000
  done
}

# The card's functions: PCI addresses of what is behind the root ports.
functions() { ls /sys/bus/pci/devices | grep -v '^0000:00:'; }

# The virtio device of a kind (net, blk, console, entropy, input), such as virtio0.
virtio_of() { # KIND
  case $1 in
    net) _id=0x0001 ;; blk) _id=0x0002 ;; console) _id=0x0003 ;; entropy) _id=0x0004 ;; input) _id=0x0012 ;;
    *) fail "no kind of virtio device is called $1" ;;
  esac
  for _v in /sys/bus/virtio/devices/*; do
    [ "$(cat "$_v/device" 2>/dev/null)" != $_id ] || { basename "$_v"; return 0; }
  done
  return 1
}

# PCI address of a kind of function, with or without a driver.
pci_of() { # KIND
  case $1 in
    net) _id=0x1041 _old=0x1000 ;; blk) _id=0x1042 _old=0x1001 ;; console) _id=0x1043 _old=0x1003 ;;
    entropy) _id=0x1044 _old=0x1005 ;; input) _id=0x1052 _old=0x1052 ;; mgmt) _id=0x5649 _old=0x5649 ;;
    *) fail "no kind of function is called $1" ;;
  esac
  for _p in $(functions); do
    case $(cat "/sys/bus/pci/devices/$_p/device") in "$_id" | "$_old") echo "$_p"; return 0 ;; esac
  done
  return 1
}

# What a kind of function shows as when its driver has taken it.
net_name() { _d=$(virtio_of net) && ls "/sys/bus/virtio/devices/$_d/net" 2>/dev/null | grep .; }
blk_name() { _d=$(virtio_of blk) && ls "/sys/bus/virtio/devices/$_d/block" 2>/dev/null | grep .; }

# Sets $name to the network device, with an address of its own and a cable that carries.
net_up() { # OWN-ADDRESS/BITS
  name=$(net_name) || fail "no network device"
  ip address flush dev "$name"
  ip address add "$1" dev "$name"
  ip link set "$name" up
  wait_for 600 grep -q 1 "/sys/class/net/$name/carrier" || fail "no carrier"
}

# The driver's module of a kind; the console's is built in.
module_of() {
  case $1 in net) echo virtio_net ;; blk) echo virtio_blk ;; entropy) echo virtio_rng ;; input) echo virtio_input ;; *) return 1 ;; esac
}

# Bits 3:0 of the device status are set and nothing failed.
device_is_well() { # KIND
  _s=$(cat "/sys/bus/virtio/devices/$(virtio_of "$1")/status" 2>/dev/null) || return 1
  [ $((_s)) -eq 15 ]
}

# Warnings and errors of the kernel since the script began, without those that every guest has.
kernel_complaints() { dmesg | grep -E 'WARNING:|BUG:|Oops|Call Trace|I/O error|transmit queue .* timed out|general protection'; }
# Tasks that wait without end, by name: the kernel's own watch over them is off, since it goes by time and the machine may be busy.
waiting() { sed -n 's/^\([0-9]* (.*)\) D .*/\1/p' /proc/[0-9]*/stat 2>/dev/null; }
no_complaints() {
  ! kernel_complaints || fail "the kernel complains"
  for _ in 1 2 3 4 5 6; do
    [ "$(waiting)" ] || return 0
    sleep 10
  done
  fail "waiting for a minute: $(waiting)"
}

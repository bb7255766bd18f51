#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Round trips through the network function and through the XDMA-compatible one, for `viaduct bench guest`: it reads the card's
# counters whenever this waits for a line. Arguments: ROUNDS SIZE…. In its folder: viaduct_xdma.ko.
. /guest/lib.sh
rounds=$1; shift
own=10.0.0.1/24 peer=10.0.0.2

# In a process of its own: it must not become the terminal's owner, whose end would hang up the terminal.
now() { echo "$*"; (read -r _ </dev/ttyS1); }

# Nothing else may use the device.
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
net_up $own
wait_for 600 ping -c 1 -W 5 $peer || fail "$peer does not reply"
insmod ./viaduct_xdma.ko || fail "viaduct_xdma.ko"
wait_for 600 test -c /dev/viaduct_xdma0_c2h_0 || fail "no XDMA-compatible function"
for size; do
  now begin virtio
  udp_rtt $peer 7 -n "$rounds" -t 60000 "$size" || fail "UDP round trips of $size bytes"
  now end virtio
  now begin xdma
  xdma_rtt /dev/viaduct_xdma0 -n "$rounds" "$size" || fail "XDMA round trips of $size bytes"
  now end xdma
done
no_complaints

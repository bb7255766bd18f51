#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# User interrupts of the XDMA-compatible function: those of the app in slot 0. Argument: the number expected after it has printed `ready`.
# In the same folder: viaduct_xdma.ko.
. /guest/lib.sh
insmod ./viaduct_xdma.ko || fail "viaduct_xdma.ko"
node=/dev/viaduct_xdma0_events_
wait_for 600 test -c ${node}1 || fail "no XDMA-compatible function"
# Enabled while open.
exec 5<${node}0 6<${node}1
echo ready
got=0
while [ $got -lt "$1" ]; do
  count=$(timeout 600 dd bs=4 count=1 <&5 2>/dev/null | od -An -tu4)
  [ -n "$count" ] || fail "only $got interrupts"
  got=$((got + count))
done
[ $got -eq "$1" ] || fail "$got interrupts, not $1"
[ -z "$(timeout 1 dd bs=4 count=1 <&5 2>/dev/null | od -An -tu4)" ] || fail "one too many"
[ -z "$(timeout 1 dd bs=4 count=1 <&6 2>/dev/null | od -An -tu4)" ] || fail "one of another slot"
pass "$got interrupts of user logic"
no_complaints

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Registers of an app through the user BAR of the XDMA-compatible function: slot 0 has app rng and is open, the others are closed.
# In the same folder: viaduct_xdma.ko.
. /guest/lib.sh
insmod ./viaduct_xdma.ko || fail "viaduct_xdma.ko"
node=/dev/viaduct_xdma0_user
wait_for 100 test -c $node || fail "no user BAR"
word() { dd if=$node bs=4 skip="$1" count=1 2>/dev/null | od -An -tx4 | tr -d ' '; }
# `count`, the register after base, bytes and size, has its reset value.
[ "$(word 5)" = 00000400 ] || fail "register count: $(word 5)"
printf 'ABCDefgh' | dd of=$node bs=8 2>/dev/null || fail "write"
[ "$(word 0)$(word 1)" = 4443424168676665 ] || fail "register base: $(word 0) $(word 1)"
for slot in 1 2 3 15; do
  [ "$(word $((slot * 1024)))" = ffffffff ] || fail "slot $slot is open"
done
# The engine still works: data written to card memory is read back.
head -c 100000 /dev/urandom >data
dd if=data of=/dev/viaduct_xdma0_h2c_0 bs=100000 count=1 conv=notrunc 2>/dev/null || fail "to card memory"
dd if=/dev/viaduct_xdma0_c2h_0 bs=100000 count=1 2>/dev/null | cmp - data || fail "from card memory"
pass "registers of an app through the user BAR"
no_complaints

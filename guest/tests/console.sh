#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The console function: a login on hvc0. Whoever is at its other end logs in as root and types `touch /run/console-done`, then `exit`.
. /guest/lib.sh
wait_for 10 test -c /dev/hvc0 || fail "no /dev/hvc0"
device_is_well console || fail "the console's driver is not at work"
setsid busybox getty -L 0 hvc0 vt100 &
wait_for "${1:-60}" test -e /run/console-done || fail "nobody has logged in"
pass "login on hvc0"
no_complaints

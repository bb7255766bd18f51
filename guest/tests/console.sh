#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The console function: a login on hvc0. Its other end logs in as root and types `touch /run/console-done`, then `exit`.
# Arguments: seconds to wait (default 60), then, if the terminal must have a size, ROWS COLUMNS.
. /guest/lib.sh
wait_for 600 test -c /dev/hvc0 || fail "no /dev/hvc0"
device_is_well console || fail "the console's driver does not work"
setsid busybox getty -L 0 hvc0 vt100 &
wait_for "${1:-600}" test -e /run/console-done || fail "no login"
pass "login on hvc0"
if [ $# -eq 3 ]; then
  is_size() { [ "$(stty -F /dev/hvc0 size)" = "$1 $2" ]; }
  wait_for 600 is_size "$2" "$3" || fail "rows and columns are $(stty -F /dev/hvc0 size), not $2 $3"
  pass "$2 rows, $3 columns"
fi
no_complaints

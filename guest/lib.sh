# SPDX-License-Identifier: Apache-2.0
# Helpers of the guest's scripts: `. /guest/lib.sh`.
set -u

# Ends the script with a reason.
fail() { echo "FAIL: $*" >&2; exit 1; }

# Waits until a command succeeds, at most so many seconds.
wait_for() { # SECONDS COMMAND…
  _end=$(($(date +%s) + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt $_end ] || return 1
    usleep 20000
  done
}

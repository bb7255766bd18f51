#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything the virtio functions can do, in one boot: the other scripts one after another, and finally net and disk once more, after all
# the resets. The scripts are in the same folder (--copy). Arguments: OWN-ADDRESS/BITS PEER UDP-PORT ROUNDS IPERF-PORT MEGABYTES RESETS.
. /guest/lib.sh
own=$1 peer=$2 port=$3 rounds=$4 iperf=$5 megabytes=$6 resets=$7
kinds="net blk console entropy input"
step() { # SCRIPT ARGUMENT…
  echo "== $*, after $(cut -d. -f1 /proc/uptime) s"
  _script=$1; shift
  sh "./$_script.sh" "$@" || fail "$_script.sh ends with $?"
}

uname -srv
step enumerate $kinds
step net "$own" "$peer" "$port" "$rounds" "$iperf"
step blk "$megabytes"
step console 600 25 80
step entropy
step rebind $kinds
step traffic "$resets" net "$own" "$peer"
step traffic "$resets" blk
step net "$own" "$peer" "$port" 100
step blk 1
pass "all, in one boot of $(uname -r), up for $(cut -d. -f1 /proc/uptime) s"

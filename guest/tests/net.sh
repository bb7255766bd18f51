#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The network function. Arguments: OWN-ADDRESS/BITS PEER [UDP-PORT ROUNDS] [IPERF-PORT]; 0 skips a part.
. /guest/lib.sh
own=$1 peer=$2 port=${3:-0} rounds=${4:-1000} iperf=${5:-0}

net_up "$own"
ethtool -i "$name" | head -1
echo "features: $(cat "/sys/class/net/$name/device/features")"
wait_for 600 ping -c 1 -W 5 "$peer" || fail "$peer does not reply"
for size in 18 56 500 1400; do
  ping -c 20 -i 0.01 -W 60 -s $size -q "$peer" >/tmp/ping || { cat /tmp/ping; fail "ping with $size bytes"; }
  grep -q ' 0% packet loss' /tmp/ping || { cat /tmp/ping; fail "ping with $size bytes loses packets"; }
done
pass "ping: $(tail -1 /tmp/ping)"
if [ "$port" -ne 0 ]; then
  udp_rtt "$peer" "$port" -n "$rounds" -t 60000 || fail "UDP round trips"
  pass "$rounds UDP round trips of each size"
fi
if [ "$iperf" -ne 0 ]; then
  for direction in "" -R; do
    timeout 600 iperf3 -c "$peer" -p "$iperf" -t 3 $direction -J >/tmp/iperf.json || { cat /tmp/iperf.json; fail "iperf3 $direction"; }
    python3 -c "
import json
end = json.load(open('/tmp/iperf.json'))['end']
print('iperf3 $direction: %.1f Mbit/s received' % (end['sum_received']['bits_per_second'] / 1e6))
assert end['sum_received']['bytes'] > 100000"  || fail "iperf3 $direction carries no data"
  done
  pass "iperf3 both ways"
fi
ethtool -S "$name" | grep -E 'drop|err' | grep -v ': 0$'
no_complaints

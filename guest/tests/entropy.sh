#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The entropy function: its random numbers pass the tests of FIPS 140-2. Argument: blocks of 2500 bytes (default 20).
. /guest/lib.sh
blocks=${1:-20}
rng=/sys/class/misc/hw_random
wait_for 600 grep -q virtio $rng/rng_available || fail "the kernel has no virtio random number generator: $(cat $rng/rng_available)"
grep -o 'virtio_rng[^ ]*' $rng/rng_available | head -1 >$rng/rng_current
echo "generator: $(cat $rng/rng_current)"
# rngtest first reads 32 bits to compare with.
timeout 600 dd if=/dev/hwrng of=/tmp/random bs=2500 count=$((blocks + 1)) iflag=fullblock 2>/dev/null || fail "reading /dev/hwrng"
[ "$(wc -c </tmp/random)" -eq $(((blocks + 1) * 2500)) ] || fail "only $(wc -c </tmp/random) bytes came"
rngtest -c "$blocks" </tmp/random 2>/tmp/rngtest
cat /tmp/rngtest | grep -E 'FIPS 140-2 (successes|failures)'
# A good generator fails one block in about 1200.
bad=$(sed -n 's/.*FIPS 140-2 failures: //p' /tmp/rngtest)
[ -n "$bad" ] && [ "$bad" -le $((1 + blocks / 100)) ] || fail "rngtest: $bad of $blocks blocks"
a=$(head -c 2500 /tmp/random | sha256sum)
b=$(tail -c 2500 /tmp/random | sha256sum)
[ "$a" != "$b" ] || fail "the same numbers again"
pass "rngtest: $blocks blocks"
no_complaints

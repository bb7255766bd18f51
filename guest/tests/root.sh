#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The root file system is on the card's disk (`--root`): a login on hvc0, whose other end types `touch /run/console-done`; files are
# written, synced and read. With `again` the files of an earlier boot are checked first.
# Arguments: megabytes and number of files to write, [again].
. /guest/lib.sh
grep -q '^/dev/vd. / ext4 rw' /proc/mounts || fail "the root file system is elsewhere: $(grep ' / ' /proc/mounts)"
setsid busybox getty -L 0 hvc0 vt100 &
wait_for 3600 test -e /run/console-done || fail "no login"
pass "login on hvc0 after $(cut -d. -f1 /proc/uptime) s"
if [ "${3-}" ]; then
  (cd /root/files && sha256sum --quiet -c ../sums) || fail "files of an earlier boot have changed"
  rm -r /root/files
  pass "the files of the earlier boot are there"
fi
mkdir -p /root/files
n=0
while [ $n -lt "$2" ]; do
  n=$((n + 1))
  head -c $((n * 37)) /dev/urandom >"/root/files/$n"
  # Some of them as a program does that must not lose them.
  [ $((n % 10)) -ne 0 ] || sync "/root/files/$n"
done
dd if=/dev/urandom of=/root/files/large bs=1M count="$1" conv=fsync 2>/dev/null || fail "writing $1 MB"
(cd /root/files && sha256sum -- * >../sums) || fail "reading"
sync
echo 3 >/proc/sys/vm/drop_caches
(cd /root/files && sha256sum --quiet -c ../sums) || fail "what was written does not come back"
pass "$1 MB and $2 files written and read"
no_complaints

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The block function; everything on it is lost. Argument: megabytes that fio writes (default 4).
. /guest/lib.sh
size=${1:-4}

name=$(blk_name) || fail "no block device"
dev=/dev/$name
wait_for 600 test -b "$dev" || fail "no $dev"
bytes=$(blockdev --getsize64 "$dev")
echo "$dev: $bytes bytes, queues $(ls "/sys/block/$name/mq" | wc -l), $(cat "/sys/block/$name/queue/write_cache")"

# One large request to an unused area. It cannot be killed if it hangs, so it runs in the background.
(dd if=/dev/urandom of="$dev" bs=512k seek=$((bytes / 1048576)) count=1 oflag=direct 2>/dev/null && touch /run/written) &
wait_for 600 test -e /run/written || fail "a write of 512 KB to an unused area is not done within 600 s"
pass "large first write"

for rw in write randwrite; do
  fio --name=$rw --filename="$dev" --rw=$rw --bs=4k --size="${size}M" --iodepth=8 --ioengine=libaio --direct=1 --verify=crc32c \
    --verify_fatal=1 --do_verify=1 --norandommap=0 --output-format=terse --terse-version=3 >/tmp/fio 2>&1 || { cat /tmp/fio; fail "fio $rw"; }
done
fio --name=mixed --filename="$dev" --rw=randwrite --bsrange=512-64k --size="${size}M" --iodepth=16 --ioengine=libaio --direct=1 \
  --verify=crc32c --verify_fatal=1 --fsync=32 >/tmp/fio 2>&1 || { cat /tmp/fio; fail "fio with mixed sizes"; }
pass "fio writes and verifies ${size} MB three times"

mke2fs -q -F -t ext4 "$dev" || fail "mke2fs"
mkdir -p /mnt/card
mount -t ext4 "$dev" /mnt/card || fail "mount"
for i in 1 2 3 4 5; do head -c "$((i * 77777))" /dev/urandom >"/mnt/card/file$i"; done
(cd /mnt/card && sha256sum file*) >/tmp/sums
cp -r /usr/share/misc /mnt/card/ 2>/dev/null
sync
umount /mnt/card || fail "umount"
blockdev --flushbufs "$dev"
e2fsck -f -n "$dev" >/tmp/fsck || { cat /tmp/fsck; fail "fsck"; }
mount -t ext4 "$dev" /mnt/card || fail "second mount"
(cd /mnt/card && sha256sum -c --status /tmp/sums) || fail "the files have changed"
umount /mnt/card
pass "ext4: made, filled, checked, read back"

if [ "$(cat "/sys/block/$name/queue/discard_max_bytes")" -gt 0 ]; then
  blkdiscard -o 0 -l 65536 "$dev" || fail "discard"
  pass "discard"
fi
if [ "$(cat "/sys/block/$name/queue/write_zeroes_max_bytes")" -gt 0 ]; then
  dd if=/dev/urandom of="$dev" bs=64k count=2 oflag=direct 2>/dev/null
  blkdiscard -z -o 4096 -l 65536 "$dev" || fail "write zeroes"
  dd if="$dev" bs=4k skip=1 count=16 iflag=direct 2>/dev/null | cmp -s -n 65536 - /dev/zero || fail "write zeroes leaves other bytes"
  pass "write zeroes"
fi
no_complaints

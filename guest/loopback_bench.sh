#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Requests to a disk through viaduct_loopback, through vDUSE, and to its file, for `viaduct bench loopback`. Arguments: MICROSECONDS of a
# measurement, then jobs PATTERN:BYTES:DEPTH. Prints for each job and system: JOB SYSTEM IOPS REQUESTS COPIED MAPPED, the last three of
# the module's counters. In its folder: viaduct_loopback.ko, viaduct, devices.tar (tools/guest_devices.sh).
. /guest/lib.sh
time=$1; shift
# While the guest waits for its own disk, which takes real time, its clock may run far ahead.
LONG=100000
cat /usr/bin/fio /usr/sbin/vdpa >/dev/null
tar -x -C / -f devices.tar
for module in virtio_blk vduse virtio_vdpa; do modprobe $module || fail "this kernel has no module $module"; done
insmod ./viaduct_loopback.ko || fail "viaduct_loopback.ko"

# The same program, with the same options, and files of the same kind.
size=64M
head -c $size /dev/urandom >/run/ours.img
cp /run/ours.img /run/vduse.img
cp /run/ours.img /run/file.img
device="--blockdev driver=file,node-name=f"
qemu-storage-daemon $device,filename=/run/vduse.img --export type=vduse-blk,id=e,node-name=f,name=vduse,writable=on,queue-size=256 >vduse.log 2>&1 &
wait_for $LONG vdpa dev add name vduse mgmtdev vduse || fail "vDUSE: $(cat vduse.log)"
wait_for $LONG test -b /dev/vda || fail "vDUSE has no disk"
./viaduct loopback add blk --exec "qemu-storage-daemon $device,filename=/run/ours.img --export type=vhost-user-blk,id=e,node-name=f,writable=on,addr.type=unix,addr.path={socket}" >added || fail "no disk"
wait_for $LONG test -b /dev/vdb || fail "no disk"
counters=/sys/bus/virtio/devices/$(cut -d' ' -f1 added)/viaduct
place() { case $1 in ours) echo /dev/vdb ;; vduse) echo /dev/vda ;; file) echo /run/file.img ;; esac; }
counts() { cat $counters/requests $counters/copied $counters/mapped | tr '\n' ' '; }

for system in ours vduse file; do
  fio --name=verify --filename="$(place $system)" --direct=1 --ioengine=libaio --iodepth=8 --rw=randrw --bssplit=4k/50:64k/50 --size=16M \
    --verify=crc32c --verify_fatal=1 >verify.log 2>&1 || fail "$system has other data: $(tail -5 verify.log)"
done
order="ours vduse file"
for job; do
  IFS=: read -r pattern bytes depth <<JOB
$job
JOB
  for system in $order; do
    set -- $(counts)
    said=$(fio --name=measure --filename="$(place $system)" --direct=1 --ioengine=libaio --rw="$pattern" --bs="$bytes" --iodepth="$depth" \
      --size=$size --time_based --runtime="${time}us" --output-format=terse --terse-version=3) || fail "fio: $said"
    iops=$(echo "$said" | tail -1 | cut -d';' -f8,49 | tr ';' '\n' | sort -n | tail -1)
    set -- "$@" $(counts)
    echo "result $job $system $iops $(($4 - $1)) $(($5 - $2)) $(($6 - $3))"
  done
  order=$(echo "$order" | awk '{ print $2, $3, $1 }')
done
./viaduct loopback rm vdb || fail "rm"
echo "done"

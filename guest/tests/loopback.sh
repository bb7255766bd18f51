#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Virtio devices of the guest's own kernel, by kernel/loopback and an off-the-shelf device process. Needs in the same folder
# viaduct_loopback.ko, test_loopback, viaduct and devices.tar (`--copy`; tests/test_loopback.py). Arguments: [CYCLES] of plugging and unplugging.
. /guest/lib.sh
cycles=${1-20}

# Errors of requests are what some of the tests are about.
kernel_is_well() {
  ! dmesg | grep -E 'WARNING:|BUG:|Oops|Call Trace|general protection' || fail "the kernel complains"
}
refusal() { # WORDS COMMAND…
  words=$1; shift
  ! "$@" >refusal 2>&1 || fail "not refused: $*"
  grep -q "$words" refusal || fail "not '$words': $(cat refusal)"
}

tar -x -C / -f devices.tar
viaduct=$PWD/viaduct
for module in virtio_blk virtio_net virtio_rng; do modprobe $module; done

refusal "load the kernel module" "$viaduct" loopback ls
refusal "load the kernel module" "$viaduct" loopback add blk --exec true
insmod ./viaduct_loopback.ko || fail "the module cannot be loaded"

./test_loopback "$cycles" || fail "test_loopback"
kernel_is_well
dmesg -c >/dev/null

# ---------------------------------------------------------------- a disk, served by qemu-storage-daemon
image=/run/disk.img
serve="qemu-storage-daemon --blockdev driver=file,node-name=f,filename=$image --export type=vhost-user-blk,id=e,node-name=f,writable=on,addr.type=unix,addr.path={socket}"
truncate -s 96M $image
refusal "no type of device is called" "$viaduct" loopback add disk --exec "$serve"
refusal "has ended: exit status: 3" "$viaduct" loopback add blk --exec "sh -c 'exit 3'"
refusal "nobody-has-this" "$viaduct" loopback add blk --exec "nobody-has-this {socket}"
refusal "is no loopback device" "$viaduct" loopback rm vda
chmod 755 /run /run/job
refusal "permission denied" setpriv --reuid 65534 --clear-groups "$viaduct" loopback add blk --exec "$serve"
pass "what cannot be is refused"

added=$("$viaduct" loopback add blk --exec "$serve --chardev socket,id=m,path=/run/qmp,server=on,wait=off --monitor chardev=m") || fail "no disk"
echo "$added"
device=${added%% *}
wait_for 60 test -b /dev/vda || fail "no /dev/vda"
"$viaduct" loopback ls | grep -q "^$device  blk  vda " || fail "ls: $("$viaduct" loopback ls)"
count() { cat "/sys/bus/virtio/devices/$device/viaduct/$1"; }

head -c 8M /dev/urandom >data
dd if=data of=/dev/vda bs=1M oflag=direct 2>/dev/null || fail "writing"
cmp data $image 2>&1 | grep -q "EOF on data" || fail "the file has other data"
copied=$(count copied)
dd if=/dev/vda of=back bs=64k count=128 iflag=direct 2>/dev/null || fail "reading"
cmp data back || fail "other data is read"
# Headers, states, tables of descriptors: less than 64 bytes a request; no byte of the 8 MiB.
[ $(($(count copied) - copied)) -lt $((128 * 64)) ] || fail "$(($(count copied) - copied)) bytes were copied"
[ "$(count mapped)" -ge 16777216 ] || fail "only $(count mapped) bytes were mapped"
pass "8 MiB each way, none of it copied"

printf '%s\n' '{"execute":"qmp_capabilities"}' '{"execute":"block_resize","arguments":{"node-name":"f","size":134217728}}' |
  socat -t 5 - UNIX-CONNECT:/run/qmp >resized || fail "no resize: $(cat resized)"
wait_for 60 grep -qx 262144 /sys/block/vda/size || fail "$(cat /sys/block/vda/size) blocks after: $(cat resized)"
pass "the disk has grown"

! rmmod viaduct_loopback 2>/dev/null || fail "the module is unloaded under a device"

# ---------------------------------------------------------------- its process is killed while data moves
move_and_verify() { # NAME
  fio --name="$1" --filename=/dev/vda --direct=1 --rw=randrw --bssplit=4k/40:16k/20:64k/30:256k/10 --iodepth=16 \
    --ioengine=libaio --size=96M --io_size=192M --verify=crc32c --verify_fatal=1 >"$1.log" 2>&1 &
  load=$!
}
verified() { # NAME
  wait $load || fail "fio: $(tail -20 "$1.log")"
}
moving() { usleep 300000; kill -0 $load 2>/dev/null || fail "fio has ended too early"; }
requests_go_on() {
  _before=$(count requests)
  wait_for 60 sh -c "[ \$(cat /sys/bus/virtio/devices/$device/viaduct/requests) -gt $_before ]" || fail "nothing moves any more"
}

move_and_verify process
for n in 1 2 3; do
  moving
  kill -9 "$(pidof qemu-storage-daemon)" || fail "no process"
  requests_go_on
  wait_for 60 sh -c "[ \$(cat /sys/bus/virtio/devices/$device/viaduct/restarts) -eq $n ]" || fail "$n kills, $(count restarts) restarts"
done
verified process
pass "fio verifies its data after 3 ends of the device process"

move_and_verify adapter
for n in 4 5; do
  moving
  owner=$(count owner)
  kill -9 "$owner" || fail "no adapter"
  wait_for 60 sh -c "[ \$(cat /sys/bus/virtio/devices/$device/viaduct/restarts) -eq $n ]" || fail "$n kills, $(count restarts) restarts"
  requests_go_on
  [ "$(count owner)" -ne "$owner" ] || fail "the same adapter"
  [ "$(pidof qemu-storage-daemon | wc -w)" = 1 ] || fail "processes: $(pidof qemu-storage-daemon)"
done
# Requests do not pass through the adapter.
kill -STOP "$(count owner)"
requests_go_on
kill -CONT "$(count owner)"
verified adapter
pass "fio verifies its data after 2 ends of the adapter, and while it is stopped"

# ---------------------------------------------------------------- unplugged while data moves
fio --name=load --filename=/dev/vda --direct=1 --rw=randread --bs=32k --iodepth=8 --ioengine=libaio --time_based --runtime=600 >load.log 2>&1 &
load=$!
wait_for 60 sh -c "[ \$(cat /sys/bus/virtio/devices/$device/viaduct/requests) -gt 2000 ]"
"$viaduct" loopback rm "$device" || fail "rm"
! wait $load || fail "fio has seen no error"
! [ -e /dev/vda ] || fail "/dev/vda is still there"
wait_for 60 sh -c '! pidof qemu-storage-daemon' || fail "the process is still there"
pass "unplugged while data moves"

# ---------------------------------------------------------------- a network device, served by passt
"$viaduct" loopback add net --exec "passt --vhost-user -s {socket} -f --runas 0 -4 -i lo -a 10.0.2.15 -n 24 -g 10.0.2.2 -D none -l passt.log" ||
  fail "no network device: $(cat passt.log)"
name=$("$viaduct" loopback ls | sed -n 's/.*  net  \([^ ]*\) .*/\1/p')
ip address add 10.0.2.15/24 dev "$name"
ip link set "$name" up
# Out through the device, and back to this machine by the process: the router's address is that of loopback there.
exchange() {
  rm -f got
  socat -u TCP-LISTEN:7777,bind=127.0.0.1,reuseaddr OPEN:got,creat,trunc &
  listener=$!
  wait_for 60 sh -c "ss -ltn | grep -q 127.0.0.1:7777"
  timeout 300 socat -u OPEN:data TCP:10.0.2.2:7777 || fail "no connection through $name"
  wait $listener
  cmp data got || fail "other data has come"
}
exchange
kill -9 "$(pidof passt.avx2 passt)" || fail "no process"
wait_for 60 pidof passt.avx2 passt || fail "the process is not started again"
exchange
"$viaduct" loopback rm "$name" || fail "rm"
pass "8 MiB through a network device, and again after the end of its process"

# ---------------------------------------------------------------- entropy, if vhost-device-rng is at hand
if [ -e vhost-device-rng ]; then
  head -c 4M /dev/zero | tr '\0' V >source
  "$viaduct" loopback add rng --exec "$PWD/vhost-device-rng -f $PWD/source -s {socket}" || fail "no entropy device"
  [ "$(dd if=/dev/hwrng bs=4096 count=1 iflag=fullblock 2>/dev/null | tr -d V | wc -c)" = 0 ] || fail "other data is read"
  [ "$(dd if=/dev/hwrng bs=4096 count=1 iflag=fullblock 2>/dev/null | wc -c)" = 4096 ] || fail "no data is read"
  "$viaduct" loopback rm "$("$viaduct" loopback ls | sed -n 's/  rng  .*//p')" || fail "rm"
  pass "entropy"
fi

rmmod viaduct_loopback || fail "the module is still in use"
kernel_is_well
[ "$(waiting)" = "" ] || fail "waiting: $(waiting)"
pass "the kernel is well"

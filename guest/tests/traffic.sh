#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Drivers are unbound while data is moving, and work again after they are rebound. Arguments: ROUNDS, then net OWN-ADDRESS/BITS PEER, or blk.
. /guest/lib.sh
rounds=$1
kind=$2
pci=$(pci_of "$kind") || fail "no function $kind"

unbind() { echo "$pci" >/sys/bus/pci/drivers/virtio-pci/unbind; }
bind() { echo "$pci" >/sys/bus/pci/drivers/virtio-pci/bind; }

case $kind in
  net)
    own=$3 peer=$4
    up() {
      net_up "$own"
      wait_for 600 ping -c 1 -W 5 "$peer" || fail "$peer does not reply $1"
    }
    up "at first"
    i=0
    while [ $i -lt "$rounds" ]; do
      i=$((i + 1))
      ping -f -s 1400 -q "$peer" >/dev/null 2>&1 &
      flood=$!
      usleep $((100000 + 70000 * i))
      case $((i % 3)) in
        0) ip link set "$name" down ;;
        1) unbind && bind ;;
        2) rmmod virtio_net && modprobe virtio_net ;;
      esac
      kill $flood 2>/dev/null
      wait $flood 2>/dev/null
      wait_for 600 device_is_well net || fail "the device does not work after round $i"
      up "after round $i"
    done
    ;;
  blk)
    i=0
    while [ $i -lt "$rounds" ]; do
      i=$((i + 1))
      wait_for 600 blk_name || fail "no block device in round $i"
      name=$(blk_name)
      wait_for 600 test -b "/dev/$name"
      fio --name=traffic --filename="/dev/$name" --rw=randwrite --bs=4k --size=4M --time_based --runtime=60 --iodepth=8 --ioengine=libaio \
        --direct=1 >/dev/null 2>&1 &
      flood=$!
      usleep $((300000 + 70000 * i))
      unbind
      kill -9 $flood 2>/dev/null
      wait $flood 2>/dev/null
      bind
      wait_for 600 device_is_well blk || fail "the device does not work after round $i"
    done
    name=$(blk_name) && wait_for 600 test -b "/dev/$name" || fail "no block device in the end"
    fio --name=after --filename="/dev/$name" --rw=randwrite --bs=4k --size=1M --ioengine=libaio --direct=1 --verify=crc32c >/tmp/fio 2>&1 ||
      { cat /tmp/fio; fail "fio afterwards"; }
    ;;
  *) fail "no traffic for $kind" ;;
esac
pass "$rounds resets under traffic: $kind"

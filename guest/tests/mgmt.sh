#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The management function: the guest is the card's host, through vfio-pci. Needs --iommu, and in its folder (--copy) the program and two apps:
# target/release/viaduct, build/apps/sha256/sha256.via and sha256.toml, build/apps/rng/rng.via and rng.toml. The test
# host/viaduct-pci/tests/vfio.rs, if present (vfio-*), is run first.
. /guest/lib.sh
pci=$(pci_of mgmt) || fail "no management function on the bus: $(lspci -n)"
dev=/sys/bus/pci/devices/$pci
card=vfio:$pci
trap 'cat /tmp/said >&2 2>/dev/null' EXIT
refused() { # TEXT COMMAND…
  _text=$1; shift
  ! "$@" >/dev/null 2>/tmp/said || fail "$*: it was not refused"
  grep -qF "$_text" /tmp/said || fail "$*: the error does not say \"$_text\""
}
ok() { "$@" >/tmp/out 2>/tmp/said || fail "$*: exit code $?"; }

refused "no driver is bound to it" ./viaduct info card --card "$card"
sh -ec "$(sed -n 's/.*as root: //p' /tmp/said)" || fail "the commands in the error do not work"
[ "$(basename "$(readlink "$dev/driver")")" = vfio-pci ] || fail "not bound to vfio-pci"
group=$(basename "$(readlink "$dev/iommu_group")")
pass "bound to vfio-pci as told, IOMMU group $group"

for test in ./vfio-*; do
  [ -x "$test" ] || continue
  VIADUCT_VFIO=$pci "$test" --ignored >/tmp/said 2>&1 && grep -q " 1 passed" /tmp/said || fail "call by call"
  pass "call by call"
done

ok ./viaduct info card --card "$card"
cat /tmp/out
refused "no such PCI function" ./viaduct info card --card vfio:ffff:01:00.0

for size in 1 4097 100000; do
  head -c "$size" /dev/urandom >"data$size"
  ok ./viaduct run ./sha256.via --card "$card" --in "file:data$size"
  [ "$(cut -c1-64 /tmp/out)" = "$(sha256sum <"data$size" | cut -c1-64)" ] || fail "sha256 of $size bytes: $(cat /tmp/out)"
done
pass "sha256: $(tail -2 /tmp/said | head -1)"

# The app writes 64-bit words 2^32 + offset at random offsets of a file; each page is loaded by a fault and written back.
head -c 1000000 /dev/zero >memory
ok ./viaduct run ./rng.via --card "$card" --out mem=file:memory --set size=64 --set count=100 --set write=1 --set seed=0x100000000
words=$(od -v -Ad -tu8 -w8 memory | awk 'NF == 2 && $2 != 0 { n++; if ($2 != $1 + 4294967296) bad++ } END { print n + 0, bad + 0 }')
[ "${words% *}" -ge 600 ] && [ "${words#* }" -eq 0 ] || fail "rng: words written, wrong: $words"
pass "rng: ${words% *} words in a mapped file"

# One user at a time. Registers are mapped; the card works after a program is killed.
head -c 20000000 /dev/zero >long
./viaduct run ./sha256.via --card "$card" --in file:long >/dev/null 2>&1 &
wait_for 300 grep -q vfio /proc/$!/maps || fail "the registers are not mapped"
refused "has /dev/vfio/$group open" ./viaduct info card --card "$card"
kill -9 $!
wait $! 2>/dev/null
ok ./viaduct run ./sha256.via --card "$card" --in file:data4097
[ "$(cut -c1-64 /tmp/out)" = "$(sha256sum <data4097 | cut -c1-64)" ] || fail "sha256 after a program was killed"
pass "in use, killed, used again"

# The driver is unbound while a program runs: the program ends with an error, and the kernel has the function back.
./viaduct run ./sha256.via --card "$card" --in file:long >/dev/null 2>/tmp/said &
wait_for 300 grep -q vfio /proc/$!/maps || fail "the registers are not mapped"
timeout 600 sh -c "echo $pci >/sys/bus/pci/drivers/vfio-pci/unbind" || fail "the driver cannot be unbound"
wait $! && fail "a program has not noticed the removal of its card"
grep -q "wants $pci back" /tmp/said || fail "no message about the removal of the card"
[ ! -e "$dev/driver" ] || fail "still bound"
pass "unbound in use"
trap - EXIT
no_complaints

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on a real file of at least 16 MiB: AES-256-CTR and SHA-256 of it on the simulated card, compared with
# openssl and sha256sum. DEMO_FILE=path selects another file.
set -euo pipefail
cd "$(dirname "$0")/.."

# Any real file will do; the tools just installed contain several large ones. The smallest of them is the same on every run.
input=${DEMO_FILE:-$(find -L .venv/lib -type f -size +16M -printf '%s %p\n' | sort -n | head -n 1 | cut -d' ' -f2-)}
[ -f "$input" ] || { echo "demo: no file of 16 MiB or more found: name one with DEMO_FILE=path" >&2; exit 1; }
out=build/demo
mkdir -p $out
key=603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4
iv=f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff

printf '\n%s, %d bytes\n' "$input" "$(stat -Lc %s "$input")"
printf '\n── AES-256-CTR on the card ──\n'
./viaduct run aes --in "file:$input" --out "file:$out/card.aes" --set key=$key --set iv=$iv
openssl enc -aes-256-ctr -K $key -iv $iv -in "$input" -out $out/openssl.aes
cmp $out/card.aes $out/openssl.aes
echo "same bytes as openssl enc -aes-256-ctr"

printf '\n── SHA-256 on the card ──\n'
./viaduct run sha256 --in "file:$input" --out "file:$out/card.sha256"
card=$(od -An -v -tx1 $out/card.sha256 | tr -d ' \n')
host=$(sha256sum "$input" | cut -d' ' -f1)
echo "card       $card"
echo "sha256sum  $host"
[ "$card" = "$host" ] || { echo "demo: the digests differ" >&2; exit 1; }
printf '\nBoth results are right. Next: ./viaduct --help\n'

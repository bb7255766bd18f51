// SPDX-License-Identifier: Apache-2.0
// Every invalid argument gives an error with a text, and valid calls work afterwards. Argument: the card.
#include "test.h"

int main(int argc, char** argv) {
  CHECK(argc == 2);
  CHECK(viaduct_error()[0] == 0);
  viaduct_card *card = NULL, *none = NULL;
  viaduct_slot *slot = NULL, *other = NULL;
  viaduct_mapping* mapping = NULL;
  uint32_t word;
  uint64_t cycles;
  unsigned char data[128];
  fill(data, sizeof data, 1);

  // Cards.
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_open(NULL, NULL, &none));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_open(argv[1], NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "UTF-8", viaduct_open("sim:\xff", NULL, &none));
  FAILS(VIADUCT_E_ARGUMENT, "or sim", viaduct_open("", NULL, &none));
  FAILS(VIADUCT_E_ARGUMENT, "or sim", viaduct_open("pci:0", NULL, &none));
  FAILS(VIADUCT_E_NOT_FOUND, "gen3x16", viaduct_open("sim:gen9", NULL, &none));
  FAILS(VIADUCT_E_CARD, "/nowhere/a.sock", viaduct_open("unix:/nowhere/a.sock", NULL, &none));
  CHECK(none == NULL);
  FAILS(VIADUCT_E_HANDLE, "NULL", viaduct_time(NULL, &cycles));
  FAILS(VIADUCT_E_HANDLE, "not the handle", viaduct_time((viaduct_card*)data, &cycles));
  viaduct_timeouts timeouts = {2000, 0, 0};
  OK(viaduct_open(argv[1], &timeouts, &card));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_time(card, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "aligned", viaduct_time(card, (uint64_t*)(void*)(data + 1)));

  // Slots.
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_load(card, 0, NULL, &slot));
  FAILS(VIADUCT_E_NOT_FOUND, "did you mean pass?", viaduct_load(card, 0, "psas", &slot));
  FAILS(VIADUCT_E_NOT_FOUND, "no slot 99", viaduct_load(card, 99, "pass", &slot));
  FAILS(VIADUCT_E_NOT_FOUND, "no slot -2", viaduct_load(card, -2, "pass", &slot));
  FAILS(VIADUCT_E_IO, "nowhere.via", viaduct_load(card, 0, "nowhere.via", &slot));
  FAILS(VIADUCT_E_IO, "/dev/zero", viaduct_load(card, 0, "/dev/zero", &slot));
  FAILS(VIADUCT_E_ARGUMENT, "image", viaduct_load(card, 0, argv[0], &slot));
  CHECK(slot == NULL);
  OK(viaduct_load(card, 0, "aes", &slot));
  FAILS(VIADUCT_E_BUSY, "slot 0", viaduct_load(card, 0, "pass", &other));
  FAILS(VIADUCT_E_BUSY, "in use", viaduct_close(card));
  FAILS(VIADUCT_E_HANDLE, "open slot", viaduct_unload((viaduct_slot*)(void*)card));

  // Registers.
  FAILS(VIADUCT_E_NOT_FOUND, "did you mean key?", viaduct_set(slot, "kye", "0"));
  FAILS(VIADUCT_E_ARGUMENT, "hexadecimal", viaduct_set(slot, "key", "zz"));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_set(slot, "key", NULL));
  FAILS(VIADUCT_E_ARGUMENT, "31 bytes given", viaduct_set_bytes(slot, "key", data, 31));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_set_bytes(slot, "key", NULL, 32));
  FAILS(VIADUCT_E_ARGUMENT, "more than memory can have", viaduct_set_bytes(slot, "key", data, SIZE_MAX));
  size_t length = 0;
  FAILS(VIADUCT_E_TOO_SMALL, "32 bytes", viaduct_get_bytes(slot, "key", data, 31, &length));
  CHECK(length == 32);
  FAILS(VIADUCT_E_ARGUMENT, "multiples of 4", viaduct_read32(slot, 2, &word));
  FAILS(VIADUCT_E_ARGUMENT, "multiples of 4", viaduct_write32(slot, 1 << 20, 0));

  // Routes.
  viaduct_route two[] = {route(VIADUCT_IN, data, 64), route(VIADUCT_OUT, data, 64)};
  FAILS(VIADUCT_E_ARGUMENT, "register key must be set", viaduct_run(slot, two, 2, NULL, NULL));
  OK(viaduct_set_bytes(slot, "key", data, 32));
  OK(viaduct_set(slot, "iv", "00000000000000000000000000000000"));
  FAILS(VIADUCT_E_ARGUMENT, "routes", viaduct_run(slot, NULL, 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "too many", viaduct_run(slot, two, 1000, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "output out has no route", viaduct_run(slot, two, 1, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "input in has no route", viaduct_run(slot, two, 0, NULL, NULL));
  viaduct_route wrong[2];
#define WITH(field, value) (memcpy(wrong, two, sizeof two), wrong[1].field = (value), wrong)
  FAILS(VIADUCT_E_ARGUMENT, "two routes", viaduct_run(slot, WITH(direction, VIADUCT_IN), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "7 is not a direction", viaduct_run(slot, WITH(direction, 7), 2, NULL, NULL));
  FAILS(VIADUCT_E_NOT_FOUND, "there are out", viaduct_run(slot, WITH(port, "zzzz"), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "UTF-8", viaduct_run(slot, WITH(port, "\xc0"), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "reserved of routes[1] is 3",
        viaduct_run(slot, WITH(reserved, 3), 2, NULL, NULL));
  viaduct_run_options later = {0, NULL, NULL, 0, 9};
  FAILS(VIADUCT_E_ARGUMENT, "reserved of the options is 9", viaduct_run(slot, two, 2, &later, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "reserved of the options is 9",
        viaduct_start_and_wait(slot, NULL, 0, &later, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "endpoint", viaduct_run(slot, WITH(endpoint, "disk:1"), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "capacity", viaduct_run(slot, WITH(endpoint, "host:64"), 2, NULL, NULL));
  FAILS(VIADUCT_E_IO, "/nowhere", viaduct_run(slot, WITH(endpoint, "file:/nowhere/x"), 2, NULL, NULL));
  FAILS(VIADUCT_E_ARGUMENT, "NULL", viaduct_run(slot, WITH(data, NULL), 2, NULL, NULL));
  FAILS(VIADUCT_E_TOO_SMALL, "64 bytes", viaduct_run(slot, WITH(capacity, 63), 2, NULL, NULL));
  CHECK(wrong[1].length == 64);
  two[0].capacity = UINT64_MAX;
  FAILS(VIADUCT_E_ARGUMENT, "more than memory can have", viaduct_run(slot, two, 2, NULL, NULL));
  two[0].capacity = 64;
  FAILS(VIADUCT_E_ARGUMENT, "not a buffer", viaduct_free(data));
  OK(viaduct_free(NULL));

  // Mappings.
  FAILS(VIADUCT_E_ARGUMENT, "prot is 0", viaduct_map(slot, NULL, data, 64, 0, 0, &mapping));
  FAILS(VIADUCT_E_ARGUMENT, "flags", viaduct_map(slot, NULL, data, 64, VIADUCT_READ, 1u << 31, &mapping));
  FAILS(VIADUCT_E_ARGUMENT, "flags", viaduct_map(slot, NULL, data, 64, VIADUCT_READ, 6, &mapping));
  FAILS(VIADUCT_E_ARGUMENT, "length is 0", viaduct_map(slot, NULL, data, 0, VIADUCT_READ, 0, &mapping));
  FAILS(VIADUCT_E_ARGUMENT, "both given", viaduct_map(slot, "x", data, 1, VIADUCT_READ, 0, &mapping));
  FAILS(VIADUCT_E_ARGUMENT, "a path",
        viaduct_map(slot, NULL, data, 1, VIADUCT_READ, VIADUCT_MAP_CREATE, &mapping));
  FAILS(VIADUCT_E_IO, "/nowhere", viaduct_map(slot, "/nowhere/x", NULL, 0, VIADUCT_READ, 0, &mapping));
  FAILS(VIADUCT_E_IO, "directory", viaduct_map(slot, "/", NULL, 0, VIADUCT_READ, 0, &mapping));
  FAILS(VIADUCT_E_MEMORY, "host memory",
        viaduct_map(slot, NULL, NULL, 1ull << 62, VIADUCT_READ, 0, &mapping));
  FAILS(VIADUCT_E_NOT_FOUND, "no memory port", viaduct_start_and_wait(slot, NULL, 0, NULL, NULL));
  CHECK(mapping == NULL);
  OK(viaduct_map(slot, NULL, data, 100, VIADUCT_READ | VIADUCT_WRITE, 0, &mapping));
  uint64_t va, mapped;
  OK(viaduct_mapping_va(mapping, &va));
  OK(viaduct_mapping_length(mapping, &mapped));
  CHECK(va != 0 && mapped == 100);
  FAILS(VIADUCT_E_BUSY, "in use", viaduct_unload(slot));
  OK(viaduct_sync(mapping, 1));
  OK(viaduct_unmap(mapping));
  FAILS(VIADUCT_E_HANDLE, "mapping", viaduct_unmap(mapping));

  // After all that, the slot works. AES in counter mode is its own inverse.
  unsigned char text[64], cipher[64], back[64];
  fill(text, sizeof text, 3);
  viaduct_route encrypt[] = {route(VIADUCT_IN, text, 64), route(VIADUCT_OUT, cipher, 64)};
  viaduct_route decrypt[] = {route(VIADUCT_IN, cipher, 64), route(VIADUCT_OUT, back, 64)};
  OK(viaduct_run(slot, encrypt, 2, NULL, NULL));
  OK(viaduct_run(slot, decrypt, 2, NULL, NULL));
  CHECK(memcmp(text, cipher, 64) != 0 && memcmp(text, back, 64) == 0);

  // A run that fails resets the app; its registers are as before.
  FAILS(VIADUCT_E_IO, "/dev/full",
        viaduct_run(slot, (memcpy(wrong, encrypt, sizeof wrong), wrong[1].endpoint = "file:/dev/full", wrong),
                    2, NULL, NULL));
  memset(back, 0, sizeof back);
  OK(viaduct_run(slot, decrypt, 2, NULL, NULL));
  CHECK(memcmp(text, back, 64) == 0);

  // Closed handles.
  OK(viaduct_unload(slot));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_unload(slot));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_run(slot, two, 2, NULL, NULL));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_set(slot, "key", "0"));
  OK(viaduct_close(card));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_close(card));
  FAILS(VIADUCT_E_HANDLE, "closed", viaduct_load(card, 0, "pass", &slot));
  puts("as expected");
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <viaduct.h>

/* A value other than 0 would stop the run. */
static int progress(void* user, const viaduct_progress* now) {
  (void)user;
  fprintf(stderr, "%llu of %llu bytes\n", (unsigned long long)now->bytes_in,
          (unsigned long long)now->total_in);
  return 0;
}

/* Encrypts a file on an open card: 0, or a code of viaduct.h. */
static int encrypt(viaduct_card* card, const char* key, const char* iv, const char* input,
                   const char* output) {
  char from[4096], to[4096];
  viaduct_slot* slot;
  viaduct_report report;
  snprintf(from, sizeof from, "file:%s", input);
  snprintf(to, sizeof to, "file:%s", output);
  viaduct_route routes[] = {
      {.port = "in", .direction = VIADUCT_IN, .endpoint = from},
      {.port = "out", .direction = VIADUCT_OUT, .endpoint = to},
  };
  viaduct_run_options options = {.progress = progress};

  int code = viaduct_load(card, VIADUCT_ANY_SLOT, "aes", &slot);
  if (code != 0) return code;
  code = viaduct_set(slot, "key", key);
  if (code == 0) code = viaduct_set(slot, "iv", iv);
  if (code == 0) code = viaduct_run(slot, routes, 2, &options, &report);
  if (code == 0) {
    printf("%llu bytes, %llu cycles\n", (unsigned long long)report.bytes_out,
           (unsigned long long)report.cycles);
  }
  viaduct_unload(slot);
  return code;
}

int main(int argc, char** argv) {
  viaduct_card* card;
  if (argc != 5) {
    fprintf(stderr, "usage: encrypt KEY IV INPUT OUTPUT\n");
    return 2;
  }
  int code = viaduct_open("sim", NULL, &card);
  if (code == 0) {
    code = encrypt(card, argv[1], argv[2], argv[3], argv[4]);
    if (code != 0) fprintf(stderr, "%s\n", viaduct_error());
    viaduct_close(card);
  } else {
    fprintf(stderr, "%s\n", viaduct_error());
  }
  return code != 0;
}

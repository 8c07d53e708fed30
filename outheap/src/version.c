/* SPDX-License-Identifier: MIT */
#include "version.h"
#include "log.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define BYTES 16
#define NAME "Stdlib"

/* The digest of the interface Stdlib in each version that was checked. */
static struct { char const *digest, *version; } const known[] = {
  { "79b0e9d3b6f7fed07eb3cc2abb961b91", "OCaml 4.14" },
  { "f4b8105ebd6e6055083019140b5caac1", "OCaml 5.1" },
  { "b7726274865ffd07290ef11351fb84fe", "OCaml 5.3" },
  { "8d797bdbce78b02196f5124ffdf821f4", "OCaml 5.4" },
  { "42a1edbc6bc6dbbcc6b5a3283ab7eace", "OCaml 5.5" }
};

static bool holds(char const *map, size_t length, char const *what, size_t size)
{
  for (size_t i = 0; i + size <= length; i++)
    if (memcmp(map + i, what, size) == 0) return true;
  return false;
}

static bool holds_digest(char const *map, size_t length, char const *digits)
{
  char bytes[BYTES];
  for (int i = 0; i < BYTES; i++) {
    int value = 0;
    for (int j = 0; j < 2; j++) {
      char c = digits[2 * i + j];
      value = 16 * value + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    bytes[i] = (char)value;
  }
  return holds(map, length, bytes, sizeof bytes);
}

static size_t number(char const *bytes, unsigned size)
{
  size_t n = 0;
  for (unsigned i = 0; i < size; i++) n = n << 8 | (unsigned char)bytes[i];
  return n;
}

/* Of a marshalled value, with its header. 0: it is none. */
static size_t length_of(char const *map)
{
  switch (number(map, 4)) {
    case 0x8495a6be: return 20 + number(map + 4, 4);
    case 0x8495a6bf: return 32 + number(map + 8, 8);
    default: return 0;
  }
}

char const *oh_version_of_other(char const *map, char const *own)
{
  size_t length = length_of(map);
  if (strlen(own) != 2 * BYTES || !holds(map, length, NAME, sizeof NAME - 1) || holds_digest(map, length, own))
    return NULL;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (holds_digest(map, length, known[i].digest)) return known[i].version;
  return "another version of OCaml";
}

void oh_version_check(char const *map, char const *own, char const *version)
{
  char const *other = oh_version_of_other(map, own);
  if (other == NULL) return;
  oh_log("this runtime was built for OCaml %s, and the program was compiled by %s: link it with the folder that "
         "outheap-build has made for that compiler", version, other);
  _exit(2);
}

/* SPDX-License-Identifier: MIT */
/* Which version a program says that it was compiled by. */
#include "program.h"
#include "try.h"

#define OWN "000102030405060708090a0b0c0d0eff"
#define OWN_BYTES "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\xff"
#define OF_5_3 "\xb7\x72\x62\x74\x86\x5f\xfd\x07\x29\x0e\xf1\x13\x51\xfb\x84\xfe"

/* A marshalled value with these contents, followed by what must not be read. */
static char const *other(char const *contents, size_t length, bool big, char const *own)
{
  static char map[200];
  char const *magic = big ? "\x84\x95\xa6\xbf" : "\x84\x95\xa6\xbe";
  size_t header = big ? 32 : 20;
  memset(map, 0, header);
  memcpy(map, magic, 4);
  map[big ? 15 : 7] = (char)length;
  memcpy(map + header, contents, length);
  memcpy(map + header + length, OWN_BYTES, sizeof OWN_BYTES);
  return oh_version_of_other(map, own);
}
#define OTHER(contents, own) other(contents, sizeof contents - 1, false, own)

static void versions(void)
{
  EXPECT(OTHER("x Stdlib " OWN_BYTES, OWN) == NULL, "its own");
  EXPECT(other("x Stdlib " OWN_BYTES, 25, true, OWN) == NULL, "with a large header");
  char const *said = OTHER("Stdlib " OF_5_3, OWN);
  EXPECT(said != NULL && strcmp(said, "OCaml 5.3") == 0, "a known one");
  said = other("Stdlib " OF_5_3, 23, true, OWN);
  EXPECT(said != NULL && strcmp(said, "OCaml 5.3") == 0, "with a large header");
  said = OTHER("Stdlib 0123456789abcdef", OWN);
  EXPECT(said != NULL && strcmp(said, "another version of OCaml") == 0, "not known");
}

/* Nothing is said where nothing is known. */
static void unknown(void)
{
  EXPECT(OTHER("Stdlib 0123456789abcdef", "unknown") == NULL, "the runtime's own is not known");
  EXPECT(OTHER("Main 0123456789abcdef", OWN) == NULL, "no Stdlib");
  EXPECT(OTHER("", OWN) == NULL, "empty");
  EXPECT(oh_version_of_other("something else, without a header", OWN) == NULL, "no marshalled value");
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(versions);
  TRY(unknown);
  return try_end();
}

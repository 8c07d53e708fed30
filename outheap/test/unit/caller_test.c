/* SPDX-License-Identifier: MIT */
/* What code behind a call does with the result: compiled code of OCaml 5, at the end of memory that can be read. */
#define _GNU_SOURCE
#include "program.h"
#include "os.h"
#include "try.h"

/* The code is put at the very end of a page, behind which nothing can be read. */
static bool keeps(char const *code, size_t bytes)
{
  static char *page;
  size_t size = oh_os_page_size();
  if (page == NULL) {
    page = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(page != MAP_FAILED && mprotect(page + size, size, PROT_NONE) == 0, "memory");
  }
  memcpy(page + size - bytes, code, bytes);
  return oh_caller_keeps(page + size - bytes);
}
#define KEEPS(code) keeps(code, sizeof code - 1)
#define RESTORE "\x48\x89\xdc"                    /* mov %rbx, %rsp */
#define INDEX "\x48\xd1\xf8"                      /* sar $1, %rax */
#define TABLE "\x48\x8d\x15\x10\x00\x00\x00"      /* lea table(%rip), %rdx */
#define TABLE_BX "\x48\x8d\x1d\x10\x00\x00\x00"   /* lea table(%rip), %rbx */

static void jumps(void)
{
  EXPECT(!KEEPS(RESTORE INDEX TABLE "\x48\x63\x04\x82\x48\x01\xc2\xff\xe2"), "Lazy.force");
  EXPECT(!KEEPS("\x48\x89\xec" INDEX TABLE), "the stack pointer from rbp");
  EXPECT(!KEEPS("\x4c\x89\xe4" INDEX TABLE), "from r12");
  EXPECT(!KEEPS(INDEX TABLE), "there is one stack");
  EXPECT(!KEEPS("\x48\x83\xc4\x08" INDEX TABLE), "add $8, %%rsp");
  EXPECT(!KEEPS("\x48\x81\xc4\x00\x01\x00\x00" INDEX TABLE), "add $256, %%rsp");
  EXPECT(!KEEPS(RESTORE "\x48\x89\xc3\x48\xd1\xfb" TABLE), "another register");
  EXPECT(!KEEPS(RESTORE "\x49\x89\xc4\x49\xd1\xfc" TABLE), "r12");
  EXPECT(!KEEPS(RESTORE "\x48\x8b\x7c\x24\x08" INDEX TABLE), "a variable comes back from the stack");
  EXPECT(!KEEPS(RESTORE "\x48\x8b\xbc\x24\x00\x01\x00\x00" INDEX TABLE), "from far away");
  EXPECT(!KEEPS(RESTORE "\x48\x89\xdf" INDEX TABLE), "another variable is moved");
  EXPECT(!KEEPS(RESTORE INDEX TABLE_BX), "the table in another register");
  EXPECT(!KEEPS(RESTORE "\x48\xc1\xf8\x01" TABLE), "a shift in its long form");
  EXPECT(!KEEPS(RESTORE INDEX "\x48\x3d\xf4\x00\x00\x00"), "first compared, without a bound above");
  EXPECT(!KEEPS(RESTORE TABLE INDEX), "the table first");
  EXPECT(!KEEPS(RESTORE INDEX "\x48\x89\xc3" TABLE), "moved as an index");
}

static void numbers(void)
{
#ifdef __x86_64__
  EXPECT(KEEPS(RESTORE "\xc3"), "returned");
  EXPECT(KEEPS(RESTORE "\x48\x3d\xd3\x07\x00\x00"), "compared with 1001");
  EXPECT(KEEPS(RESTORE "\x48\x83\xf8\x09"), "compared with 4");
  EXPECT(KEEPS(RESTORE "\x48\x81\xfb\xd3\x07\x00\x00"), "compared, another register");
  EXPECT(KEEPS(RESTORE "\x48\x39\xf8"), "compared with a variable");
  EXPECT(KEEPS(RESTORE "\x48\x89\x44\x24\x08"), "on the stack");
  EXPECT(KEEPS(RESTORE "\x48\x89\xc3\x48\x89\x5c\x24\x08"), "moved, and then on the stack");
  EXPECT(KEEPS(RESTORE "\x48\x89\x03"), "in a block");
  EXPECT(KEEPS(RESTORE "\x49\x83\xef\x10"), "a block is made for it");
  EXPECT(KEEPS(RESTORE "\x48\x83\xc0\x02"), "added to");
  EXPECT(KEEPS(RESTORE "\x48\x8d\x58\x02"), "added to, with another register for the sum");
  EXPECT(KEEPS(RESTORE "\xe8\x00\x00\x00\x00"), "an argument");
  EXPECT(KEEPS(RESTORE "\xbb\x03\x00\x00\x00\xe9\x00\x00\x00\x00"), "an argument, and a constant");
  EXPECT(KEEPS(RESTORE "\x48\x8b\x3b\xff\xe7"), "an argument of a closure");
  EXPECT(KEEPS(RESTORE "\x41\xff\x14\x24"), "the same, not at the end of a function");
  EXPECT(KEEPS(RESTORE INDEX "\xf2\x48\x0f\x2a\xc0"), "made a float");
  EXPECT(KEEPS(RESTORE INDEX "\x48\x83\xc8\x01"), "divided by two");
#endif
}

/* Whatever lies there: an answer, after an end that can be reached. */
static void anything(void)
{
  uint64_t random = try_seed;
  char code[64];
  memset(code, 0xcc, sizeof code); /* no instruction that is known: reading ends there */
  for (int i = 0; i < 200000; i++) {
    for (size_t j = try_below(&random, 16) + 1; j-- > 0;) code[j] = (char)try_random(&random);
    code[0] = (char)i;
    (void)keeps(code, sizeof code);
    memset(code, 0xcc, 16);
  }
  EXPECT(!KEEPS("\xcc") && !KEEPS("\x0f") && !KEEPS("\x66") && !KEEPS("\xf3"), "not known");
}

int main(int argc, char **argv)
{
  try_start(argc, argv);
  TRY(jumps);
  TRY(numbers);
  TRY(anything);
  return try_end();
}

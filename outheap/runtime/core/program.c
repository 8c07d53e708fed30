/* SPDX-License-Identifier: MIT */
#include "program.h"
#include "base.h"
#include <string.h>
#include <unistd.h>

/* --- versions ----------------------------------------------------------------------------------------------------- */

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

/* --- the code behind a call --------------------------------------------------------------------------------------- */

#ifdef __x86_64__

/* Bytes are read one after the other, and none behind an instruction that is not known: so never beyond the code. */
struct instruction {
  unsigned char prefix, rex, opcode;
  unsigned char mod, reg, rm; /* of the operands; reg and rm with the bits of rex */
  bool relative;              /* the address is relative to the code's */
  unsigned char const *next;  /* behind all that but a constant */
};

enum { RAX = 0, RSP = 4 };
enum { MOST = 12 }; /* instructions before an answer */
enum { ADD = 0, OR = 1, SHIFT = 7, CALL = 2, JUMP = 4 }; /* what `reg` means where there is one operand */

static void read_operands(struct instruction *i)
{
  unsigned char m = *i->next++;
  i->mod = m >> 6;
  i->reg = (unsigned char)((m >> 3 & 7) | (i->rex & 4) << 1);
  i->rm = (unsigned char)((m & 7) | (i->rex & 1) << 3);
  if (i->mod == 3) return;
  i->relative = i->mod == 0 && (m & 7) == 5;
  bool far = i->mod == 2 || i->relative;
  if ((m & 7) == 4 && (*i->next++ & 7) == 5 && i->mod == 0) far = true; /* index, without a base */
  i->next += far ? 4 : i->mod;
}

static struct instruction read_instruction(unsigned char const *code)
{
  struct instruction i = { .next = code };
  if (*i.next == 0xf2) i.prefix = *i.next++;
  if ((*i.next & 0xf0) == 0x40) i.rex = *i.next++;
  i.opcode = *i.next++;
  return i;
}

/* What follows a shift to the right: is the number made a float, or an OCaml integer again? */
static bool is_number(unsigned char const *at, unsigned held)
{
  struct instruction i = read_instruction(at);
  if (i.prefix != 0) return (i.rex & 8) != 0 && i.opcode == 0x0f && *i.next == 0x2a;
  if ((i.rex & 8) == 0 || i.opcode != 0x83) return false;
  read_operands(&i);
  return i.mod == 3 && (i.reg & 7) == OR && (held >> i.rm & 1) != 0;
}

bool oh_caller_keeps(void const *code)
{
  unsigned held = 1u << RAX; /* the registers that hold the result */
  unsigned char const *at = code;
  for (int n = 0; n < MOST && held != 0; n++) {
    struct instruction i = read_instruction(at);
    if (i.prefix != 0) return false;
    bool wide = (i.rex & 8) != 0;
    at = i.next;
    switch (i.opcode) {
      case 0xc3: case 0xe8: case 0xe9: case 0xeb: return true; /* returned, or given to a function */
      case 0x05: case 0x3d: return wide;                       /* added to, compared with, a constant */
      case 0xb8: case 0xb9: case 0xba: case 0xbb: case 0xbc: case 0xbd: case 0xbe: case 0xbf: /* a constant */
        held &= ~(1u << ((i.opcode & 7) | (i.rex & 1) << 3));
        at += wide ? 8 : 4;
        continue;
      default: break;
    }
    switch (i.opcode) { /* with operands */
      case 0xff:
        read_operands(&i);
        return (i.reg & 7) == CALL || (i.reg & 7) == JUMP; /* given to a function of which the address is known */
      case 0x01: case 0x03: case 0x29: case 0x2b: case 0x39: case 0x3b: return wide; /* calculated with, compared */
      case 0x81: case 0x83:
        if (!wide) return false;
        read_operands(&i);
        if (i.mod != 3 || i.rm != RSP || (i.reg & 7) != ADD) return true;
        at = i.next + (i.opcode == 0x81 ? 4 : 1); /* the stack pointer is put back */
        break;
      case 0x89: case 0x8b: {
        if (!wide) return false;
        read_operands(&i);
        bool load = i.opcode == 0x8b, in_memory = i.mod != 3;
        unsigned from = load ? i.rm : i.reg, to = load ? i.reg : i.rm;
        bool result = (!load || !in_memory) && (held >> from & 1) != 0;
        if (result && in_memory) return true; /* stored */
        if (load || !in_memory) held = result ? held | 1u << to : held & ~(1u << to);
        at = i.next;
        break;
      }
      case 0xc7: return wide; /* another word is written: a block is made */
      case 0xd1:
        if (!wide) return false;
        read_operands(&i);
        return i.mod == 3 && (i.reg & 7) == SHIFT && is_number(i.next, held);
      case 0x8d:
        if (!wide) return false;
        read_operands(&i);
        return !i.relative; /* calculated with */
      default: return false;
    }
  }
  return false;
}
#else
bool oh_caller_keeps(void const *code) { return (void)code, false; }
#endif

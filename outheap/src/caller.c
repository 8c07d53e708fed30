/* SPDX-License-Identifier: MIT */
#include "caller.h"

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

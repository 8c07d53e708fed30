/* SPDX-License-Identifier: MIT */
/* Pointers to memory of C: to blocks as the stock runtime allows them, and naked pointers. */
#define _GNU_SOURCE
#define CAML_INTERNALS
#include <caml/address_class.h>
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/printexc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <outheap.h>

#pragma weak outheap_declare_values
#pragma weak outheap_withdraw_values

#ifdef Caml_out_of_heap_header
#define HEADER(size, tag) Caml_out_of_heap_header(size, tag)
#else
#define HEADER(size, tag) Make_header(size, tag, Caml_black)
#endif

/* A pair, a string, a float, a function of one argument and a second one in the same closure. */
enum { PAIR = 1, STRING = 4, FLOAT = 6, WORDS = 8 };
static value code(value unit) { return unit; }
#define CONTENTS                                                                              \
  { HEADER(2, 0), Val_long(1), Val_long(2), HEADER(1, String_tag), 0x0200006f6c6c6568, /* hello */ \
    HEADER(1, Double_tag), 0x3ff8000000000000 /* 1.5 */, 0 }

static uintnat in_data[WORDS] = CONTENTS;
static uintnat const in_constants[WORDS] = CONTENTS;

static void *map(size_t bytes, int protection)
{
  void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) abort();
  return p;
}

/* The words of a kind of memory. */
static uintnat const *words(int kind)
{
  static uintnat *made[9];
  uintnat plain[WORDS] = CONTENTS;
  switch (kind) {
    case 0: return in_data;
    case 1: return in_constants;
    default: break;
  }
  if (made[kind] != NULL) return made[kind];
  switch (kind) {
    case 2: made[kind] = malloc(sizeof plain); break;
    case 3: made[kind] = map(1 << 16, PROT_READ | PROT_WRITE); break;
    case 4: return made[kind] = map(1 << 16, PROT_NONE); /* cannot be read */
    case 5: { /* like blocks, but with a header of the heap's */
      made[kind] = malloc(sizeof plain);
      plain[PAIR - 1] = Make_header(2, 0, 0), plain[STRING - 1] = Make_header(1, String_tag, 0);
      plain[FLOAT - 1] = Make_header(1, Double_tag, 0);
      break;
    }
    case 6: { /* the beginning of a mapping: nothing in front of it */
      char *two = map(1 << 17, PROT_READ | PROT_WRITE);
      munmap(two, 1 << 16);
      return made[kind] = (uintnat *)(two + (1 << 16)) - 1;
    }
    default: abort();
  }
  memcpy(made[kind], plain, sizeof plain);
  return made[kind];
}

/* Kinds 7 and 8: in memory that cannot be read, not at a word; 2 modulo 4, even. */
value foreign_pair(value kind)
{
  if (Int_val(kind) >= 7) return (value)words(4) + (Int_val(kind) == 7 ? 4 : 2);
  return (value)(words(Int_val(kind)) + PAIR);
}
value foreign_string(value kind)
{
  return (value)(words(Int_val(kind)) + (Int_val(kind) == 6 ? PAIR : STRING));
}
value foreign_float(value kind)
{
  return (value)(words(Int_val(kind)) + (Int_val(kind) == 6 ? PAIR : FLOAT));
}

/* What the runtime prints of an exception that nobody catches. */
value foreign_format(value exception)
{
  char *text = caml_format_exception(exception);
  value v = caml_copy_string(text);
  caml_stat_free(text);
  return v;
}

/* A pair in memory that is declared, and can be withdrawn and unmapped. */
static uintnat *declared;
value foreign_declare(value unit)
{
  (void)unit;
  declared = map(1 << 16, PROT_READ | PROT_WRITE);
  declared[0] = Make_header(2, 0, 3 << 8);
  declared[1] = declared[2] = Val_long(7);
  if (outheap_declare_values && outheap_declare_values(declared, declared + 3) != 0) abort();
  return (value)(declared + 1);
}
value foreign_withdraw(value unit)
{
  if (outheap_withdraw_values && outheap_withdraw_values(declared, declared + 3) != 0) abort();
  munmap(declared, 1 << 16);
  return unit;
}

/* --- results of callbacks */

value foreign_address(value distance)
{
  static char *memory;
  if (memory == NULL) memory = map(4096, PROT_NONE);
  return (value)(memory + 64 + Long_val(distance));
}

value foreign_call_exn(value f, value expected)
{
  CAMLparam1(f);
  /* `expected` is a foreign pointer, which never moves. */
  value result = caml_callback_exn(f, Val_unit);
  if (!Is_exception_result(result)) CAMLreturn(caml_copy_string(result == expected ? "the pointer" : "another"));
  CAMLreturn(caml_copy_string((result | 2) == (expected | 2) ? "taken for an exception" : "an exception"));
}

value foreign_call(value f) { return caml_callback(f, Val_unit); }

/* SPDX-License-Identifier: MIT */
/* Which object file an address is in, and which symbol. The names come from the files, so that those of static
   functions and variables are among them, which the dynamic linker does not know. Nothing here knows of OCaml. */
#ifndef BXR_SYMBOLS_H
#define BXR_SYMBOLS_H

#include "base.h"

/* The name of the executable in reports. */
#define BXR_SYMBOLS_PROGRAM "the program"

/* The objects that are loaded now, with their symbols as far as they were asked for. */
typedef struct bxr_symbols bxr_symbols;

typedef struct bxr_symbol {
  char const *object; /* the file's name without its folder. NULL: the address is in no object */
  char const *name;   /* NULL: not known, the file was stripped of it */
  char const *source; /* the source file to which the name is local. NULL: to none, or not known */
  uintptr_t start;    /* where the symbol begins; without a name: where the object does */
  uintptr_t offset;   /* of the address in the object, as tools want it for its file */
} bxr_symbol;

/* NULL: no memory, or the system does not tell. All texts are valid until bxr_symbols_close. */
BXR_INTERNAL bxr_symbols *bxr_symbols_open(void);
BXR_INTERNAL void bxr_symbols_close(bxr_symbols *all);

/* Cost: a look at each object; at first for each also what it takes to read and sort its symbols, some milliseconds for
   a large program. */
BXR_INTERNAL bxr_symbol bxr_symbols_find(bxr_symbols *all, uintptr_t address);

#endif

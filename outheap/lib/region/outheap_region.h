/* SPDX-License-Identifier: MIT */
/* Regions, for C: the functions of the module Outheap_region, with error values. A program that uses the module gets
   them with it; docs/guide/regions.md says what regions are.

   Unless a function says otherwise, the caller holds OCaml's lock, and the function may run the collector (not
   finalisers, signal handlers or other OCaml code) and release the lock meanwhile; it raises nothing. The result tells
   whether there is an error; if so `error`, which may not be NULL, is filled in.

   With the variant on OCaml 5, copying and mapping make the collector run, as allocation does: a cycle for each 4,096
   regions, or for as much memory as 16 MiB and a sixteenth of heap and regions. Before outheap_region_copy, _save and
   _map return OUTHEAP_REGION_TOO_MANY or OUTHEAP_REGION_NO_MEMORY they run three major cycles, if there are regions at
   all, and try again; if regions have ended meanwhile, they run three more. */
#ifndef OUTHEAP_REGION_H
#define OUTHEAP_REGION_H

#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- errors ------------------------------------------------------------------------------------------------------- */

/* In the order of the constructors of Outheap_region.error. In brackets: which members of the structure say more. */
enum outheap_region_error_kind {
  OUTHEAP_REGION_OK = -1,
  OUTHEAP_REGION_UNSUPPORTED,   /* not with this runtime, or not possible (text) */
  OUTHEAP_REGION_NO_MEMORY,     /* this one and the next: after a collection, where regions can end */
  OUTHEAP_REGION_TOO_MANY,      /* regions, or no address space */
  OUTHEAP_REGION_REFUSED,       /* cannot be copied (text: the kind of block; identifier; path) */
  OUTHEAP_REGION_IN_USE,        /* (number of pointers that the marker found; from) */
  OUTHEAP_REGION_GONE,          /* deleted or revoked before */
  OUTHEAP_REGION_SYSTEM,        /* a system call failed (text: which; number: errno) */
  OUTHEAP_REGION_DAMAGED,       /* (text: what is wrong) */
  OUTHEAP_REGION_OTHER_PROGRAM, /* (text: what differs; identifier: what the image has; wanted) */
  OUTHEAP_REGION_OTHER_SCHEMA,  /* (identifier: the name found; number: the version found; wanted, wanted_version) */
  OUTHEAP_REGION_MISSING        /* an image is not mapped (identifier: its digest, in hexadecimal) */
};

/* From where pointers lead to a region: from stacks, registers, global variables and roots of C code; from blocks of
   the heap; from images that need this one, or calls that are reading it. */
enum outheap_region_from {
  OUTHEAP_REGION_FROM_ROOTS = 1, OUTHEAP_REGION_FROM_HEAP = 2, OUTHEAP_REGION_FROM_REGIONS = 4
};

struct outheap_region_error {
  enum outheap_region_error_kind kind;
  char const *text; /* stays; NULL: none */
  size_t number;
  unsigned from;    /* sum of outheap_region_from */
  char identifier[144], path[256];
  char file[256];   /* of outheap_region_save and outheap_region_map: the path; of a longer one the end */
  char wanted[144]; /* what this program has instead: OTHER_SCHEMA: the name; OTHER_PROGRAM: as `identifier` */
  int64_t wanted_version; /* OTHER_SCHEMA */
};

/* Writes the error as a line of text: which file or which part of the value, what was wanted and what was found. Writes
   at most `size` bytes, the zero at the end included; `size` may be 0. Returns the length of the whole text. Any thread
   may call it, with or without OCaml's lock. */
size_t outheap_region_error_text(struct outheap_region_error const *error, char *text, size_t size);

/* --- regions ------------------------------------------------------------------------------------------------------ */

/* A handle, like one of type Outheap_region.t: while there is one, the region does not end by itself. */
typedef struct outheap_region_record *outheap_region;

/* A value in a region, with a handle. Whoever got it from outheap_region_copy or outheap_region_map calls
   outheap_region_release(root.region) once, when it is not needed any more. */
struct outheap_region_root { outheap_region region; value inside; };

/* Options are a sum of these. They mean what the arguments of the module's functions mean. */
enum outheap_region_option {
  OUTHEAP_REGION_MAX_SHARING = 1, /* ~sharing:`Max */
  OUTHEAP_REGION_CLOSURES = 2,    /* ~closures:true */
  OUTHEAP_REGION_TRACK = 4,       /* ~writes:`Track */
  OUTHEAP_REGION_FULL = 8,        /* ~verify:`Full */
  OUTHEAP_REGION_EXCLUSIVE = 16   /* ~exclusive:true */
};

/* Copies a value, with all that it refers to, into a new region. Options: MAX_SHARING, CLOSURES, TRACK, EXCLUSIVE.
   Cost: some nanoseconds for each word. The copy is that of a moment; how long others wait for it, and that a second
   process may make it, is as for Outheap_region.copy. Returns false if there is an error; then nothing is left behind.
   */
bool outheap_region_copy(value v, unsigned options, struct outheap_region_root *, struct outheap_region_error *error);

/* Returns the value; 0 if the region was deleted or revoked. It is an ordinary one, which keeps the region while it is
   reachable: register it as a root before you call anything else. Runs no collector. Cost: some nanoseconds. */
value outheap_region_get(struct outheap_region_root const *);

/* Add a handle, or drop one. Any thread may call them, with or without the lock; they run no collector. A region
   without handles ends some major cycles after the last pointer to it is gone. */
void outheap_region_retain(outheap_region);
void outheap_region_release(outheap_region);

/* Runs three major cycles, and deletes the region if the marker finds no pointer to it in a whole one. Otherwise the
   error is OUTHEAP_REGION_IN_USE, and nothing happens: values that wait for their finalisers count, so run these, and
   try again. It is OUTHEAP_REGION_UNSUPPORTED with a runtime that cannot tell. The caller keeps its handle. Cost: three
   major cycles. */
bool outheap_region_delete(outheap_region, struct outheap_region_error *error);

/* Makes the memory inaccessible at once: see Outheap_region.revoke. */
bool outheap_region_revoke(outheap_region, struct outheap_region_error *error);

/* Is this a block of the region? Any thread that may look at `v` may ask; runs no collector. */
bool outheap_region_contains(outheap_region, value v);

/* --- images ------------------------------------------------------------------------------------------------------- */

/* Writes a value to a file. `name` is that of the schema, 1 to 127 bytes; `needs` are `count` regions that were
   mapped from images. Options: MAX_SHARING, EXCLUSIVE. Cost: that of a copy and of writing the file. */
bool outheap_region_save(value v, char const *path, char const *name, int64_t version, unsigned options,
                         outheap_region const *needs, size_t count, struct outheap_region_error *error);

/* Maps an image. `offset` is where it begins in a larger file, a multiple of 64 KiB; -1: it is the whole file. Options:
   FULL, TRACK. Cost: some system calls, and more as for Outheap_region.map. */
bool outheap_region_map(char const *path, char const *name, int64_t version, int64_t offset, unsigned options,
                        struct outheap_region_root *, struct outheap_region_error *error);

/* --- custom blocks ------------------------------------------------------------------------------------------------ */

struct custom_operations;

/* From now on blocks with these operations are copied into regions, byte by byte, and found again by their identifier
   when an image is mapped. So they must hold nothing but plain data: no OCaml values, no pointers, nothing that a
   finaliser frees. Finalisers are not called for copies. `operations` must stay. Any thread may call this, with or
   without OCaml's lock. Returns false if there is no memory. */
bool outheap_region_register_custom(struct custom_operations const *operations);

#ifdef __cplusplus
}
#endif
#endif

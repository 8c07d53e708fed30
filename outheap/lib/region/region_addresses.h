/* SPDX-License-Identifier: MIT */
/* Address space for regions, in whole chunks: [2^44, 2^45), where neither the system nor the runtime places anything
   unless asked, and which is the same in every process, so that a file can be mapped where it was written for. Where
   that cannot be had (small address spaces, ThreadSanitizer), the system chooses, and the addresses stay reserved.

   An extent belongs to one region at a time. Nothing is mapped in it before its owner does that, and nothing may be
   mapped when it is given back. Locks: one of its own, held shortly; it is the lowest. */
#ifndef OUTHEAP_REGION_ADDRESSES_H
#define OUTHEAP_REGION_ADDRESSES_H

#include "region_config.h"

#define OUTHEAP_REGION_ADDRESSES_BEGIN ((uintptr_t)1 << 44)
#define OUTHEAP_REGION_ADDRESSES_CHUNKS ((size_t)1 << 16)

/* Places that are tried when something else lies there. */
#define OUTHEAP_REGION_ADDRESSES_ATTEMPTS 1000

struct outheap_region_addresses { char *base; size_t bytes; };

/* Is there such a place in this process? */
bool outheap_region_addresses_fixed(void);

/* Is this address in an extent, of whoever and in whatever state, or can be? Lock-free. Never true of static data, of
   OCaml's heap, or of what malloc returns. */
bool outheap_region_addresses_has(uintptr_t address);

/* What each chunk of [base, base + bytes) belongs to; NULL: nothing. The chunks are in one extent of the caller's. */
void outheap_region_addresses_set_owner(char const *base, size_t bytes, void *owner);
/* Whose chunk this is. Lock-free, and for signal handlers; what the owner was before it was set is seen. */
void *outheap_region_addresses_owner(uintptr_t address);

/* As much as can be had between `least` and `most` bytes. False: not even `least`. */
bool outheap_region_addresses_take(struct outheap_region_addresses *, size_t least, size_t most);
/* False: taken, or outside of the place. */
bool outheap_region_addresses_take_at(struct outheap_region_addresses *, uintptr_t base, size_t bytes);
/* Gives back what is beyond the first `bytes`, which are rounded up to chunks. */
void outheap_region_addresses_cut(struct outheap_region_addresses *, size_t bytes);
void outheap_region_addresses_give(struct outheap_region_addresses *);

/* Gives an extent back but for the chunk of `at`, where something else lies: it is never tried again. */
void outheap_region_addresses_avoid(struct outheap_region_addresses *, char const *at);

/* Maps memory at [at, at + bytes) of an extent: of a file from `offset` on, or anonymous (file = -1). False with
   errno: something else lies there (EEXIST), no memory, … */
bool outheap_region_addresses_map(char *at, size_t bytes, int protection, int flags, int file, uint64_t offset);
/* Unmaps it. */
void outheap_region_addresses_unmap(char *at, size_t bytes);

size_t outheap_region_addresses_page(void);

void outheap_region_addresses_lock(void);
void outheap_region_addresses_unlock(void);

#endif

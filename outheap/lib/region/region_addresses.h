/* SPDX-License-Identifier: MIT */
/* Address space for regions, in whole chunks. It lies at fixed addresses, [2^44, 2^45), where neither the system nor
   the runtime maps anything unless asked, and which are the same in every process, so that a file can be mapped where
   it was written for. Where these cannot be had (small address spaces, ThreadSanitizer), the system chooses the
   addresses, and they stay reserved.

   An extent belongs to one region at a time. Nothing is mapped in it before its owner does that, and nothing may be
   mapped when it is given back. Locks: one of its own, held shortly; it is the lowest. */
#ifndef OUTHEAP_REGION_ADDRESSES_H
#define OUTHEAP_REGION_ADDRESSES_H

#include "region_base.h"

#define OUTHEAP_REGION_ADDRESSES_BEGIN ((uintptr_t)1 << 44)
#define OUTHEAP_REGION_ADDRESSES_CHUNKS ((size_t)1 << 16)

/* So many extents are tried when something else is mapped in them. */
#define OUTHEAP_REGION_ADDRESSES_ATTEMPTS 1000

struct outheap_region_addresses { char *base; size_t bytes; };

/* Has this process the fixed addresses? */
bool outheap_region_addresses_fixed(void);

/* Is this address in an extent, whoever has it and in whatever state, or can it be later? Lock-free. Never true of
   static data, of OCaml's heap, or of what malloc returns. */
bool outheap_region_addresses_has(uintptr_t address);

/* Sets the owner of each chunk of [base, base + bytes); NULL: none. The chunks are in one extent of the caller's. */
void outheap_region_addresses_set_owner(char const *base, size_t bytes, void *owner);
/* Returns the owner of the chunk that an address lies in. Lock-free; signal handlers may call it. What was written to
   the owner before it was set is seen. */
void *outheap_region_addresses_owner(uintptr_t address);

/* Takes an extent of as much as can be had between `least` and `most` bytes. Returns false if not even `least` can. */
bool outheap_region_addresses_take(struct outheap_region_addresses *, size_t least, size_t most);
/* Takes an extent at a given address. Returns false if it is taken, or is not one of the fixed addresses. */
bool outheap_region_addresses_take_at(struct outheap_region_addresses *, uintptr_t base, size_t bytes);
/* Gives back what is beyond the first `bytes`, which are rounded up to chunks. */
void outheap_region_addresses_cut(struct outheap_region_addresses *, size_t bytes);
/* Gives an extent back. */
void outheap_region_addresses_give(struct outheap_region_addresses *);

/* Gives an extent back but for the chunk of `at`, where something else is mapped: it is never tried again. */
void outheap_region_addresses_avoid(struct outheap_region_addresses *, char const *at);

/* Maps memory at [at, at + bytes) of an extent: of a file from `offset` on, or anonymous (file = -1). Returns false
   with errno: something else is mapped there (EEXIST), no memory, … */
bool outheap_region_addresses_map(char *at, size_t bytes, int protection, int flags, int file, uint64_t offset);
/* Unmaps it. */
void outheap_region_addresses_unmap(char *at, size_t bytes);

/* The size of a system page. */
size_t outheap_region_addresses_page(void);

/* Take and give the lock: for fork. */
void outheap_region_addresses_lock(void);
void outheap_region_addresses_unlock(void);

#endif

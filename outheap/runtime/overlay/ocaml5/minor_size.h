/* SPDX-License-Identifier: MIT */
/* Minor heaps that adapt their size (setting `minor=adaptive`; the policy is in minor.h).

   A domain's minor heap lies at the beginning of the domain's part of the addresses for all minor heaps, of which
   nothing is reserved before it is needed. With the setting the parts have room for the largest size. So a minor heap
   grows and shrinks where it is, by its own domain at the end of a minor collection, when it is empty: other domains
   may run already, but have no pointers into it, and the bounds that they compare with do not change. */
#ifndef OH_MINOR_SIZE_H
#define OH_MINOR_SIZE_H

#include "prelude.h"

/* Before the first domain. `resize` gives the current domain a minor heap of another size (a normal one, in words),
   and leaves the old one if it cannot; `keep`: memory that is not needed is not given back. Nothing adapts itself if
   this is not called. */
void oh_minor_size_start(uintnat domains, bool (*resize)(asize_t words, bool keep));

/* The domain has memory for a minor heap of that many words now (0: none); and how many these are. The minor heap is
   not larger, and smaller only while two sizes are tried in turn. */
void oh_minor_size_is(caml_domain_state *, uintnat words);
uintnat oh_minor_size_memory(caml_domain_state *);

/* The program has chosen a size: it stays until the domain ends. */
void oh_minor_size_fix(caml_domain_state *);

/* The domain's part of a minor collection begins; and ends: so much had been allocated, or its remembered set was full.
   Then, with the minor heap empty and nothing else to do, it may get another size; the least one if the domain is about
   to end. True: it has another one, and its remembered sets should be made anew. */
void oh_minor_size_begin(caml_domain_state *);
void oh_minor_size_end(caml_domain_state *, uintnat allocated_bytes, bool remembered);
bool oh_minor_size_adapt(caml_domain_state *);

/* A slice of the major collector begins in this domain, and ends. */
void oh_minor_size_slice_begin(caml_domain_state *);
void oh_minor_size_slice_end(caml_domain_state *);

#endif

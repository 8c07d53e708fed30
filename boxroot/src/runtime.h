/* SPDX-License-Identifier: MIT */
/* All contact with the internals of the OCaml runtime. The folder runtime/ has one implementation for each generation:
   ocaml4.c and ocaml4_token.c; ocaml5.c and ocaml5_marker.c, all that is known of the collector, for which
   conservative.c stands in with BOXROOT_CONSERVATIVE; and ephemeron.c for both. Nothing else in the library includes an
   internal header of OCaml. */
#ifndef BXR_RUNTIME_H
#define BXR_RUNTIME_H

#include "base.h"

#if BXR_OCAML5
#define BXR_MAX_DOMAINS 4096
#else
#define BXR_MAX_DOMAINS 1
#endif

/* Whether a compaction cannot be told from three major cycles in a row: it is no more than that (OCaml 5.0 and 5.1), or
   it may be no more. */
#define BXR_COMPACTION_IS_A_CYCLE (BXR_OCAML5 && (OCAML_VERSION < 50200 || BOXROOT_CONSERVATIVE))

/* What the collector wants done with each root: bxr_runtime_visit(visitor, v, slot) for a slot that holds the block
   v. */
typedef struct bxr_visitor {
  void (*action)(void);
  void *data;
} bxr_visitor;
BXR_INTERNAL void bxr_runtime_visit(bxr_visitor const *visitor, value v, uintptr_t *slot);

/* The same in a minor collection, for a v that points into a minor heap. Afterwards what the slot holds may be darkened
   at any time, though the collector has not filled the block in its new place yet. */
BXR_INTERNAL void bxr_runtime_visit_young(bxr_visitor const *visitor, value v, uintptr_t *slot);

/* What the library does when the collector asks. `id` is the domain on whose behalf this thread runs. All but
   end_domain and advance_marking are called while the world is stopped or (4.14) under the master lock. */
typedef struct bxr_callbacks {
  /* Visits at least all slots that point into a minor heap. */
  void (*scan_young)(unsigned id, bxr_visitor const *visitor);
  /* A major cycle starts: ensures that the marker reaches every root. */
  void (*start_cycle)(unsigned id, bxr_visitor const *visitor);
  /* Visits all slots. */
  void (*scan_all)(unsigned id, bxr_visitor const *visitor);
  /* The domain runs no more OCaml code. */
  void (*end_domain)(void);
  /* Marks this share of the roots, until about so many entries are on the mark stack; `drained` says that the marker is
     emptying it. May run beside other domains. */
  void (*advance_marking)(unsigned id, double share, uint64_t pushes, bool drained);
} bxr_callbacks;

/* False if the runtime is seen to be of another minor version of OCaml 5 than the library was compiled for. It cannot
   tell 5.2 from its neighbours. Needs no lock. */
BXR_INTERNAL bool bxr_runtime_is_ours(void);

/* Installs the hooks, or removes them (those that another library has wrapped become inert instead). attach needs the
   domain lock. `callbacks` must stay valid for ever. */
BXR_INTERNAL void bxr_runtime_attach(bxr_callbacks const *callbacks);
BXR_INTERNAL void bxr_runtime_detach(void);

/* Ensures that bxr_self() is right (4.14). Slow paths of create and modify call it before they rely on bxr_self(). */
BXR_INTERNAL void bxr_runtime_check_lock(void);

/* Whether this thread, which has the lock, can release it at its end without a sign, so that slow paths alone find out
   afterwards (4.14: the threads that OCaml made). Then it must make no roots by inline paths. */
BXR_INTERNAL bool bxr_runtime_may_end_unseen(void);

/* bxr_self(), but NULL also on a thread whose domain has ended, and when OCaml has shut down. Slow paths use it, since
   the functions below that need the domain lock read what the shutdown may have freed. After the shutdown the inline
   paths of this thread find no domain either, from then on. */
BXR_INTERNAL void *bxr_runtime_self(void);

/* Whether this thread has begun to end a domain, so that bxr_self() may name one that is gone, or the next one with its
   identity: bxr_runtime_self() knows. Reads nothing of the runtime. Cost: a load. */
#if BXR_OCAML5
BXR_INTERNAL_DATA BXR_THREAD_LOCAL bool bxr_runtime_terminating BXR_TLS_MODEL;
static inline bool bxr_runtime_self_may_be_stale(void) { return bxr_runtime_terminating; }
#else
static inline bool bxr_runtime_self_may_be_stale(void) { return false; }
#endif

/* The rest needs the domain lock. */

/* The identity of the current domain, below BXR_MAX_DOMAINS. */
BXR_INTERNAL unsigned bxr_runtime_domain(void);

/* Whether the current domain has begun to terminate, and others are there to adopt its roots. */
BXR_INTERNAL bool bxr_runtime_is_terminating(void);

/* Whether the threads of earlier domains with the identity and the state of the current one may be running, and take
   themselves for its threads (OCaml 5). Then the inline paths must be closed: for all but new roots, which a thread
   takes from a pool that it has come to know on a slow path; for these, too, if strays may know one from before a
   teardown. To be asked when a domain first uses the library. Cost: a load, or a few system calls where it is not
   known. */
typedef enum { BXR_RUNTIME_NO_STRAYS, BXR_RUNTIME_STRAYS, BXR_RUNTIME_OLD_STRAYS } bxr_runtime_strays;
BXR_INTERNAL bxr_runtime_strays bxr_runtime_strays_here(void);

/* Whether the current domain is the only one. */
BXR_INTERNAL bool bxr_runtime_is_only_domain(void);

/* Whether the marker of the current domain has finished with what it was given when marking started, or marking has not
   started in this cycle (OCaml 5.5). Once true, stays true for that purpose until marking starts again. */
BXR_INTERNAL bool bxr_runtime_marking_done(void);

/* A number that changes when all marking is over, and no domain has marked its roots again; on OCaml 5.5 also when
   marking starts, before any domain marks its roots. Constant on OCaml 4.14, which marks while the world is stopped. */
BXR_INTERNAL uintptr_t bxr_runtime_cycle(void);

/* Whether the last domain has ended or begun to: OCaml has shut down, or is about to, and no domain will be started. Up
   to OCaml 5.3 it is noticed only when all is over. Needs no lock. */
BXR_INTERNAL bool bxr_runtime_has_shut_down(void);

/* Whether the last domain has begun to end: what creations leave behind must not be open to inline ones, since nothing
   tells when the domain is gone. Needs no lock. False where the runtime does not say so (OCaml 4.14, 5 up to 5.3). */
BXR_INTERNAL bool bxr_runtime_is_shutting_down(void);

/* Whether all domains stand still from the time when the first of them calls start_cycle until the last has returned
   from it. Since OCaml 5.5 a domain may go on before that; only the minor collection that comes before is over for all
   of them. */
#define BXR_WORLD_STOPS_FOR_ALL (!BXR_OCAML5 || OCAML_VERSION < 50500)

/* Whether a marker may have something to read in this cycle: since OCaml 5.5 a cycle begins without marking. False
   where all roots are visited at once. */
BXR_INTERNAL bool bxr_runtime_marking_has_started(void);

/* Whether marking may start at the end of this minor collection (OCaml 5.5). */
BXR_INTERNAL bool bxr_runtime_may_start_marking(void);

/* Lets the marker of the current domain finish, where that can be done; true when it has. May run the GC. Without the
   domain lock: false. */
BXR_INTERNAL bool bxr_runtime_finish_marking(void);

/* Ensures that v, if it is a block of the major heap, survives this cycle. Only once the domain has begun to mark in
   this cycle: before, its part in the count of domains that mark is not open, and what is left on its stack a
   compaction moves. In a minor collection, only values that were old before it, or that have come through
   bxr_runtime_visit_young. */
BXR_INTERNAL void bxr_runtime_darken(value v);

/* The same for the n slots from `slots`: those that hold a pointer are darkened. The result is the number of entries
   put on the mark stack, about; since OCaml 5.5, of blocks marked. Cost: a look at each value. */
BXR_INTERNAL uint32_t bxr_runtime_darken_slots(uintptr_t const *slots, uint32_t n);

/* The header of a block of `words` fields that the marker has yet to visit. */
BXR_INTERNAL uintptr_t bxr_runtime_block_header(size_t words);

/* Whether the marker has visited the block of this header. */
BXR_INTERNAL bool bxr_runtime_block_visited(uintptr_t header);

/* A block is young iff start <= v < start + size. */
typedef struct { uintptr_t start, size; } bxr_minor_range;
BXR_INTERNAL bxr_minor_range bxr_runtime_minor_range(void);

#if BOXROOT_CONSERVATIVE /* the range is ignored: only the runtime's own macro knows */
BXR_INTERNAL bool bxr_runtime_is_young(value block);
static inline bool bxr_runtime_in_minor_range(bxr_minor_range r, uintptr_t v)
{
  (void)r;
  return (v & 1) == 0 && bxr_runtime_is_young((value)v);
}
#else
static inline bool bxr_runtime_in_minor_range(bxr_minor_range r, uintptr_t v)
{
  return (v & 1) == 0 && v - r.start < r.size;
}
#endif

/* --- weak arrays -------------------------------------------------------------------------------------------------- */

/* The number of the current domain, at least 1, which no other has had (OCaml 4.14: 1). */
BXR_INTERNAL uint64_t bxr_runtime_domain_number(void);

/* A new array of n weak keys without values, in the care of the current domain. 0: no memory. Does not run the GC. */
BXR_INTERNAL value bxr_runtime_weak_array(size_t n);

/* Whether v is a lazy value: in the place of one that was forced the runtime may put the result, and up to OCaml 5.5.2
   it forgets that a weak key so changed can be young (docs/internals/upstream.md). */
BXR_INTERNAL bool bxr_runtime_is_lazy(value v);

/* Whether the runtime looks after the weak arrays of the current domain. OCaml 5.1 to 5.4: of the first only, for when
   a domain that has some ends, the collector can come to a stop, or miss them (docs/internals/upstream.md). Never if
   !BXR_KNOWN_WEAK. */
BXR_INTERNAL bool bxr_runtime_keeps_weak_arrays(void);

/* Whether OCaml's shutdown has freed what it needs to make weak arrays; the finalisers of what is left in the heap
   still run (since OCaml 5.4). */
BXR_INTERNAL bool bxr_runtime_weak_arrays_are_over(void);

/* Lets key i of the array hold v. Does not run the GC. Not beside another domain that does the same, or that has the
   array in its care. */
BXR_INTERNAL void bxr_runtime_weak_set(value array, size_t i, value v);

/* The value of key i, which survives this cycle of the collector; false: it has none, or it was collected. Does not run
   the GC. */
BXR_INTERNAL bool bxr_runtime_weak_get(value array, size_t i, value *v);

/* An array with data is an ephemeron: the data lives while the ephemeron and its key do. A new one, for this key; as
   bxr_runtime_weak_array. And it is given the key and the data, once; as bxr_runtime_weak_set. */
BXR_INTERNAL value bxr_runtime_ephemeron(value key);
BXR_INTERNAL void bxr_runtime_ephemeron_set(value ephemeron, value key, value data);

/* Its key and data; the one that is asked for (not NULL) survives this cycle. False: the key was collected. Does not
   run the GC. */
BXR_INTERNAL bool bxr_runtime_ephemeron_get(value ephemeron, value *key, value *data);

/* Whether v may be such an ephemeron: for the checked build. */
BXR_INTERNAL bool bxr_runtime_is_ephemeron(value v);

/* --- for reports -------------------------------------------------------------------------------------------------- */

/* The kinds of values that a report tells apart. It describes a closure by its code, a custom block by its operations,
   and any other block by its tag. FOREIGN: the value is not OCaml's. YOUNG: the block must not be read, because the
   world is stopped. Needs the domain lock, or the world stopped. */
typedef enum {
  BXR_KIND_IMMEDIATE, BXR_KIND_YOUNG, BXR_KIND_FOREIGN, BXR_KIND_CLOSURE, BXR_KIND_CUSTOM, BXR_KIND_BLOCK
} bxr_kind_of_value;
typedef struct bxr_kind {
  bxr_kind_of_value kind;
  uintptr_t which;
} bxr_kind;
BXR_INTERNAL bxr_kind bxr_runtime_kind(value v, bool stopped);

/* The name in the operations of a custom block. */
BXR_INTERNAL char const *bxr_runtime_custom_name(uintptr_t operations);

/* Calls f for each cell that was registered with the runtime (caml_register_global_root and its like), by whatever
   code; in a collection, too. f must not register or remove one, nor call anything else of OCaml. False: not known with
   this version of OCaml. */
BXR_INTERNAL bool bxr_runtime_other_roots(void (*f)(void *data, value const *cell), void *data);

/* The values that the runtime keeps for caml_named_value, at most `most`: their cells are among the registered ones.
   The result is how many. Needs the domain lock; not while the world is stopped. */
typedef struct bxr_named {
  char const *name;
  value const *cell;
} bxr_named;
BXR_INTERNAL size_t bxr_runtime_named_values(bxr_named *named, size_t most);

/* --- the shutdown, for the implementations ------------------------------------------------------------------------ */

/* OCaml's shutdown. Afterwards the thread that asked for it still counts as holder of its domain's lock, but the
   domain's state is gone: with pooled allocation (caml_startup_pooled, or "c" in OCAMLRUNPARAM) it has been freed.

   caml_locale is the runtime's locale for numbers: it is there from the start; the shutdown frees it and sets it to 0,
   after the last finaliser and before it frees the domains' states. It is a static variable, so it can be read at any
   time. (A runtime on a system without newlocale has none; then the end is not noticed.) */
extern void *caml_locale __attribute__((weak));

/* Whether OCaml has shut down, that is, no code of OCaml and no finaliser runs any more; or has not started. Needs no
   lock: nothing that the shutdown frees is read. Cost: a load. */
static inline bool bxr_runtime_end_reached(void)
{
  return &caml_locale != NULL && bxr_load_relaxed(&caml_locale) == NULL;
}

#endif

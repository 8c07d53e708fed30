/* SPDX-License-Identifier: MIT */
/* Wide roots: several values with one owner and one handle, as an object with a few callbacks has them; and many roots
   created or deleted by one call.

     value vs[3] = { on_read, on_write, on_close };
     boxroot_wide w = boxroot_wide_create(3, vs);                  // NULL on failure: boxroot_error_string() says why
     ...
     caml_callback(boxroot_wide_get(w, 0), Val_unit);
     boxroot_wide_modify(&w, 1, v);
     boxroot_wide_delete(w);                                       // any thread, at any time

   A wide root with n slots is n roots side by side in memory that live and end together; it takes 8 bytes a slot. Those
   with equally many slots have separate pools: at least one (16 KB of address space, touched as it is
   used) for each domain that makes them, and at its minor collections a tenth of a microsecond.

   Ownership, locks, copies of the library and unloading: as for roots (boxroot.h), where nothing else is said. */
#ifndef BOXROOT_WIDE_H
#define BOXROOT_WIDE_H

#include "../boxroot.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct boxroot_wide_private *boxroot_wide;

/* The most slots that a wide root can have. (Less than 64 only if the library was configured for tiny pools.) */
#define BOXROOT_WIDEST (BOXROOT_POOL_CAPACITY < 64 ? BOXROOT_POOL_CAPACITY : 64)

/* boxroot_wide_create(n, vs): a new wide root with n slots, which hold vs[0] .. vs[n - 1]; the caller owns it.
   Needs the domain lock, and 1 <= n <= BOXROOT_WIDEST. Never runs the GC, so the values stay valid. Sets the library up
   at its first use.
   Failure: NULL, with the reasons of boxroot_create; with EPERM also in a domain that has ended (in a finaliser that
   runs at its end); or with errno == EINVAL: n is out of range.
   Cost: a call, what three or four calls of boxroot_create cost, and a store for each slot; one call in 128 / n at most
   takes up to a few microseconds, as boxroot_create's. */
boxroot_wide boxroot_wide_create(size_t n, value const *vs) BXR_LINK_NAME(wide_create);

/* boxroot_wide_get(w, i): the value in slot i. boxroot_wide_ref(w, i): the address of the slot, as boxroot_get_ref;
   those of other slots follow and precede it.
   Both need w owned or borrowed, and i < n; otherwise what boxroot_get needs. No failure. Cost: one load; none. */
BXR_INLINE value boxroot_wide_get(boxroot_wide w, size_t i) BXR_LINK_NAME(wide_get);
BXR_INLINE value const *boxroot_wide_ref(boxroot_wide w, size_t i) BXR_LINK_NAME(wide_ref);

/* boxroot_wide_modify(&w, i, v): makes slot i hold v. *w may change, with all slots, as in boxroot_modify.
   Needs w owned, i < n, and the domain lock. Failure: false, with the reasons of boxroot_wide_create; then w still
   holds what it held.
   Cost: as boxroot_modify; a copy of all slots when it moves. */
BXR_INLINE bool boxroot_wide_modify(boxroot_wide *w, size_t i, value v) BXR_LINK_NAME(wide_modify);

/* boxroot_wide_delete(w): ends the wide root w, with all slots; the caller gives it up.
   Needs w non-NULL and owned. Needs no lock, and may be called wherever boxroot_delete may, with what is said there. No
   failure. Cost: a call; a store for each slot on the domain that created w; for others one or two atomic operations,
   however many slots it has. */
void boxroot_wide_delete(boxroot_wide w) BXR_LINK_NAME(wide_delete);

/* boxroot_create_all(n, vs, rs): stores n new roots to rs[0] .. rs[n - 1], which hold vs[0] .. vs[n - 1]; all or none.
   Needs the domain lock. Failure: false, with the reasons of boxroot_create; no root was made, and
   rs[0] .. rs[n - 1] are NULL.
   boxroot_delete_all(n, rs): boxroot_delete for each of rs[0] .. rs[n - 1] that is not NULL.
   Cost: what n calls of boxroot_create or boxroot_delete cost, or a little less; one call. */
bool boxroot_create_all(size_t n, value const *vs, boxroot *rs) BXR_LINK_NAME(create_all);
void boxroot_delete_all(size_t n, boxroot const *rs) BXR_LINK_NAME(delete_all);

/* The checked build (BOXROOT_DEBUG) finds for wide roots what it finds for others, and a slot that is out of range; a
   wide root counts as one. */

#if BOXROOT_DEBUG
#ifndef BXR_LIBRARY /* private: boxroot/checked.h */
BXR_AT(boxroot_wide, wide_create, (size_t n, value const *vs, BXR_PLACE), (n, vs))
BXR_AT(value, wide_get, (boxroot_wide w, size_t i, BXR_PLACE), (w, i))
BXR_AT(value const *, wide_ref, (boxroot_wide w, size_t i, BXR_PLACE), (w, i))
BXR_AT(bool, wide_modify, (boxroot_wide *w, size_t i, value v, BXR_PLACE), (w, i, v))
BXR_VOID_AT(wide_delete, (boxroot_wide w, BXR_PLACE), (w))
BXR_AT(bool, create_all, (size_t n, value const *vs, boxroot *rs, BXR_PLACE), (n, vs, rs))
BXR_VOID_AT(delete_all, (size_t n, boxroot const *rs, BXR_PLACE), (n, rs))
#define boxroot_wide_create(n, vs) bxr_wide_create_at((n), (vs), BXR_HERE)
#define boxroot_wide_get(w, i) bxr_wide_get_at((w), (i), BXR_HERE)
#define boxroot_wide_ref(w, i) bxr_wide_ref_at((w), (i), BXR_HERE)
#define boxroot_wide_modify(w, i, v) bxr_wide_modify_at((w), (i), (v), BXR_HERE)
#define boxroot_wide_delete(w) bxr_wide_delete_at((w), BXR_HERE)
#define boxroot_create_all(n, vs, rs) bxr_create_all_at((n), (vs), (rs), BXR_HERE)
#define boxroot_delete_all(n, rs) bxr_delete_all_at((n), (rs), BXR_HERE)
#endif
#else
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
bool bxr_wide_modify_slow(boxroot_wide *w, size_t i, value v) BXR_AGREED_NAME(wide_modify_slow);

BXR_INLINE_HERE value boxroot_wide_get(boxroot_wide w, size_t i)
{
  return ((value *)w)[i];
}

BXR_INLINE_HERE value const *boxroot_wide_ref(boxroot_wide w, size_t i)
{
  return (value const *)w + i;
}

BXR_INLINE_HERE bool boxroot_wide_modify(boxroot_wide *w, size_t i, value v)
{
  if (BXR_LIKELY(bxr_load_relaxed(&bxr_pool_of(*w)->store_owner) == bxr_self())) {
    ((value *)*w)[i] = v;
    return true;
  }
  return bxr_wide_modify_slow(w, i, v);
}
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* Ephemeral roots: cells that foreign code owns and that keep one OCaml value, the *data*, alive exactly as long as
   another one, the *key*, lives. They do not keep the key alive, not even if the data refers to it. So a foreign object
   can own a callback on behalf of the OCaml value that stands for the object, without a field in that value:

     boxroot_ephemeral e = boxroot_ephemeral_create(handle, closure);  // the closure may refer to the handle
     ...
     value f;
     if (boxroot_ephemeral_get(e, &f)) caml_callback(f, Val_unit);     // the handle lives, so the closure does
     boxroot_ephemeral_delete(e);                                      // any thread, at any time

   With a root in its place a closure that refers to the handle would live for ever; with a weak root (weak.h) somebody
   else would have to keep it. An ephemeral root ends in three ways: its key dies, it is deleted, or the library is torn
   down. In the first two the data is let go by the end of the next major cycle, unless something else keeps it.

   They mean what OCaml's module Ephemeron.K1 means, and each is such an ephemeron, which a root holds. So
   - a key is alive in its own finaliser (Gc.finalise), with its data, though not afterwards, unless that stored it; in
     that of Gc.finalise_last it is dead;
   - as a key, an immediate value, and what is outside the heap, never dies: its data lives until the deletion; with
     Outheap's runtime a key in a region lives as long as that;
   - a key may be a closure of several that are defined together, and lives as long as one of them;
   - a lazy value is refused as a key, since the collector may put the result in its place once it was forced: take a
     record that has it as a field. The data may be any value;
   - OCaml 5.0 to 5.4 make them on the first domain only, for the runtime loses the ephemerons of domains that end
     (docs/internals/upstream.md). They are used and deleted on all;
   - OCaml 5.0, and 5.6 and later: not tested, so none is made.
   To exchange the data, make it a block that is mutable, or replace the ephemeral root by a new one.
   Ownership, locks, copies of the library and unloading: as for roots (boxroot.h), where nothing else is said. */
#ifndef BOXROOT_EPHEMERAL_H
#define BOXROOT_EPHEMERAL_H

#include "../boxroot.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct boxroot_ephemeral_private *boxroot_ephemeral;

/* boxroot_ephemeral_create(key, data): a new ephemeral root; the caller owns it.
   Needs the domain lock. Never runs the GC, so key and data stay valid. Sets the library up at its first use.
   Failure: NULL, with the reasons of boxroot_create; with EPERM also in a finaliser of what OCaml's shutdown finds in
   the heap at its end (since OCaml 5.4); or errno == EINVAL: the key is a lazy value; or errno == ENOTSUP: on a domain
   but the first, before OCaml 5.5; with a version of OCaml that was not tested.
   Cost: constant: a root, and four words of the major heap. If key or data is young, the next minor collection looks at
   the ephemeral root, and very many (some 15,000 with the usual minor heap) bring it about; young data is promoted if
   its key lives (OCaml 5: in any case). Otherwise minor collections look at the root alone. In each major cycle the
   collector looks at each once when it marks and once when it sweeps; and again for each link of a chain in which the
   data of one is what keeps the key of the next alive. */
boxroot_ephemeral boxroot_ephemeral_create(value key, value data) BXR_LINK_NAME(ephemeral_create);

/* boxroot_ephemeral_get(e, &v): true, and v is the data; or false, and v is left alone, if the key is dead; then it is
   for ever. boxroot_ephemeral_get_key(e, &v): the same for the key.
   The value is subject to the usual rules for values that are not rooted. Never runs the GC. The value lives at least
   to the end of the major cycle.
   Both need e non-NULL and owned or borrowed, and the domain lock: of any domain. No failure. After boxroot_teardown
   all keys are dead. Cost: constant. */
bool boxroot_ephemeral_get(boxroot_ephemeral e, value *v) BXR_LINK_NAME(ephemeral_get);
bool boxroot_ephemeral_get_key(boxroot_ephemeral e, value *v) BXR_LINK_NAME(ephemeral_get_key);

/* boxroot_ephemeral_delete(e): ends the ephemeral root e; the caller gives it up.
   Needs e non-NULL and owned. Needs no lock, and may be called wherever boxroot_delete may. After boxroot_teardown the
   call does nothing, until the library is set up again; then it is an error. No failure.
   Cost: that of boxroot_delete; the collector gives the four words back. An ephemeral root whose key has died must be
   deleted, too. */
void boxroot_ephemeral_delete(boxroot_ephemeral e) BXR_LINK_NAME(ephemeral_delete);

/* The checked build (BOXROOT_DEBUG) ends the program, with the places, at "use after delete" and "double delete", as of
   a root, at a root that is not ephemeral, and at a use without the domain lock. Its reports of live roots, and the
   counters, have ephemeral roots among the others. */

#if BOXROOT_DEBUG && !defined(BXR_LIBRARY) /* private: boxroot/checked.h */
BXR_AT(boxroot_ephemeral, ephemeral_create, (value key, value data, BXR_PLACE), (key, data))
BXR_AT(bool, ephemeral_get, (boxroot_ephemeral e, value *v, BXR_PLACE), (e, v))
BXR_AT(bool, ephemeral_get_key, (boxroot_ephemeral e, value *v, BXR_PLACE), (e, v))
BXR_VOID_AT(ephemeral_delete, (boxroot_ephemeral e, BXR_PLACE), (e))
#define boxroot_ephemeral_create(key, data) bxr_ephemeral_create_at((key), (data), BXR_HERE)
#define boxroot_ephemeral_get(e, v) bxr_ephemeral_get_at((e), (v), BXR_HERE)
#define boxroot_ephemeral_get_key(e, v) bxr_ephemeral_get_key_at((e), (v), BXR_HERE)
#define boxroot_ephemeral_delete(e) bxr_ephemeral_delete_at((e), BXR_HERE)
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif

/* SPDX-License-Identifier: MIT */
#include "linear_contents.h"
#include "linear_lock.h"
#include "region_addresses.h"
#include "region_runtime.h"
#include <caml/fail.h>
#include <stdlib.h>

/* The regions whose values may be in cells; OCaml code keeps them alive. Grows only. */
static struct { void const **owner; size_t count, room; } held;

static bool is_held(uintptr_t address)
{
  void const *owner = outheap_region_addresses_owner(address);
  bool found = false;
  if (owner == NULL) return false;
  outheap_linear_lock_take(NULL);
  for (size_t i = 0; i < held.count && !found; i++) found = held.owner[i] == owner;
  outheap_linear_lock_give(NULL);
  return found;
}

/* Returns false if `v` does not lead to a region. */
value outheap_linear_ml_hold(value v)
{
  bool room = true;
  void const *owner = Is_block(v) ? outheap_region_addresses_owner((uintptr_t)v) : NULL;
  if (owner == NULL) return Val_false;
  if (is_held((uintptr_t)v)) return Val_true;
  outheap_linear_lock_take(NULL);
  if (held.count == held.room) {
    void const **new = realloc(held.owner, (2 * held.room + 8) * sizeof *new);
    room = new != NULL;
    if (room) {
      held.owner = new;
      held.room = 2 * held.room + 8;
    }
  }
  if (room) held.owner[held.count++] = owner;
  outheap_linear_lock_give(NULL);
  if (!room) caml_raise_out_of_memory();
  return Val_true;
}

bool outheap_linear_contents_plain(value v)
{
  if (!Is_block(v)) return true;
  if (outheap_region_addresses_has((uintptr_t)v)) return is_held((uintptr_t)v);
  if (!outheap_region_marker_is_value((uintptr_t)v)) return false;
  if (Tag_val(v) == Infix_tag) v -= Infix_offset_val(v); /* one of several functions in a block */
  return outheap_region_marker_is_static((uintptr_t)v, Hd_val(v));
}

value outheap_linear_ml_is_plain(value v) { return Val_bool(outheap_linear_contents_plain(v)); }

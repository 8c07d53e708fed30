/* SPDX-License-Identifier: MIT */
/* Custom blocks whose finalisers delete roots, and misuse. */
#include "../common/check.h"

#include <stdatomic.h>

/* --- custom blocks that own a root -------------------------------------------------------------------------------- */

typedef struct holder {
  _Atomic(boxroot) root;
  atomic_int dead;
} holder;

static atomic_long deleted_by_finalisers;
static _Bool modified_by_finalisers; /* before they are deleted */
value r_modify_in_finalisers(value yes) { modified_by_finalisers = Bool_val(yes); return Val_unit; }

static void finalise(value v)
{
  holder *h = *(holder **)Data_custom_val(v);
  atomic_store(&h->dead, 1);
  boxroot r = atomic_exchange(&h->root, NULL);
  if (r != NULL) {
    if (modified_by_finalisers) CHECK(boxroot_modify(&r, Val_int(0)), "boxroot_modify in a finaliser failed");
    boxroot_delete(r);
    atomic_fetch_add(&deleted_by_finalisers, 1);
  }
}

static struct custom_operations operations = { "boxroot.test.holder",      finalise,
                                               custom_compare_default,     custom_hash_default,
                                               custom_serialize_default,   custom_deserialize_default,
                                               custom_compare_ext_default, custom_fixed_length_default };

static holder *holders;

/* n holders, in place of the present ones. Those are not freed: blocks that are not finalised yet have their
   addresses. */
value r_holders(value n)
{
  holders = calloc((size_t)Long_val(n), sizeof *holders);
  CHECK(holders != NULL, "calloc");
  return Val_unit;
}

/* The block for holder i. */
value r_holder(value i)
{
  value v = caml_alloc_custom(&operations, sizeof(holder *), 0, 1);
  *(holder **)Data_custom_val(v) = &holders[Long_val(i)];
  return v;
}

/* Gives holder i a root, even after OCaml code has lost sight of the block; no, if it was finalised already or has
   one. */
value r_give(value i, value root)
{
  holder *h = &holders[Long_val(i)];
  if (atomic_load(&h->dead) || atomic_load(&h->root) != NULL) return Val_false;
  atomic_store(&h->root, root_of_val(root));
  return Val_true;
}

value r_take(value i) { return val_of_root(atomic_exchange(&holders[Long_val(i)].root, NULL)); }
value r_deleted_by_finalisers(value unit) { (void)unit; return Val_long(atomic_load(&deleted_by_finalisers)); }

/* --- misuse ------------------------------------------------------------------------------------------------------- */

static uintptr_t not_a_pool[8192];

value r_misuse(value what, value root)
{
  boxroot r = root_of_val(root);
  char const *w = String_val(what);
  if (strcmp(w, "get") == 0) (void)boxroot_get(r);
  else if (strcmp(w, "get_ref") == 0) (void)boxroot_get_ref(r);
  else if (strcmp(w, "modify") == 0) (void)boxroot_modify(&r, Val_int(1));
  else if (strcmp(w, "delete") == 0) boxroot_delete(r);
  else if (strcmp(w, "foreign get") == 0) (void)boxroot_get((boxroot)&not_a_pool[4100]);
  else if (strcmp(w, "foreign delete") == 0) boxroot_delete((boxroot)&not_a_pool[4100]);
  else if (strcmp(w, "foreign modify") == 0) { r = (boxroot)&not_a_pool[4100]; (void)boxroot_modify(&r, Val_int(1)); }
  else if (strcmp(w, "heap delete") == 0) boxroot_delete((boxroot)malloc(64));
  else if (strcmp(w, "stack delete") == 0) { value v = Val_int(0); boxroot_delete((boxroot)&v); }
  else if (strcmp(w, "inside delete") == 0) boxroot_delete((boxroot)((char *)r + 1));
  else if (strcmp(w, "header delete") == 0)
    boxroot_delete((boxroot)((uintptr_t)r & ~(uintptr_t)4095 & ~(uintptr_t)12288));
  else if (strcmp(w, "null delete") == 0) boxroot_delete(NULL);
  else if (strcmp(w, "null get") == 0) (void)boxroot_get(NULL);
  else CHECK(0, "what is %s?", w);
  return Val_unit;
}

/* SPDX-License-Identifier: MIT */
/* Wide roots for OCaml code: the address of one, as an integer, which keeps nothing alive. */
#include "../common/check.h"

#include <boxroot/wide.h>

static boxroot_wide wide_of_val(value w) { return (boxroot_wide)root_of_val(w); }
static value val_of_wide(boxroot_wide w) { return w == NULL ? Val_int(0) : val_of_root((boxroot)w); }

value w_widest(value unit) { (void)unit; return Val_long(BOXROOT_WIDEST); }
/* The fields of a block that is no float array. */
value w_create(value block) { return val_of_wide(boxroot_wide_create(Wosize_val(block), (value *)block)); }
value w_get(value w, value i) { return boxroot_wide_get(wide_of_val(w), (size_t)Long_val(i)); }
value w_sum_of_refs(value w, value n)
{
  value const *slots = boxroot_wide_ref(wide_of_val(w), 0);
  intnat sum = 0;
  for (long i = 0; i < Long_val(n); i++) {
    CHECK(slots + i == boxroot_wide_ref(wide_of_val(w), (size_t)i), "slots are not adjacent");
    sum += Long_val(slots[i]);
  }
  return Val_long(sum);
}
/* Where the wide root is afterwards; 0 on failure, which must leave it as it was. */
value w_modify(value w, value i, value v)
{
  boxroot_wide b = wide_of_val(w), before = b;
  value old = boxroot_wide_get(b, (size_t)Long_val(i));
  if (boxroot_wide_modify(&b, (size_t)Long_val(i), v)) return val_of_wide(b);
  CHECK(b == before && boxroot_wide_get(b, (size_t)Long_val(i)) == old, "a failing modification changed the root");
  return Val_int(0);
}
value w_delete(value w) { boxroot_wide_delete(wide_of_val(w)); return Val_unit; }
value w_delete_nolock(value w)
{
  boxroot_wide b = wide_of_val(w);
  caml_enter_blocking_section();
  boxroot_wide_delete(b);
  caml_leave_blocking_section();
  return Val_unit;
}
value w_error(value unit) { (void)unit; return caml_copy_string(boxroot_error_string()); }
value w_errno(value block)
{
  errno = 0;
  return boxroot_wide_create(Wosize_val(block), (value *)block) == NULL ? Val_int(errno) : Val_int(-1);
}

static void *delete_it(void *w)
{
  boxroot_wide_delete(w);
  return NULL;
}
/* On a thread that OCaml does not know, while this one has the lock. */
value w_delete_elsewhere(value w)
{
  pthread_t t;
  CHECK(pthread_create(&t, NULL, delete_it, wide_of_val(w)) == 0, "pthread_create");
  pthread_join(t, NULL);
  return Val_unit;
}

/* Without the lock everything fails, but a deletion. */
static void *use_without_lock(void *w)
{
  value vs[2] = { Val_int(1), Val_int(2) };
  boxroot_wide b = w;
  boxroot rs[2] = { (boxroot)w, (boxroot)w };
  errno = 0;
  CHECK(boxroot_wide_create(2, vs) == NULL && errno == EPERM, "created: errno is %d", errno);
  errno = 0;
  CHECK(!boxroot_create_all(2, vs, rs) && errno == EPERM && rs[0] == NULL && rs[1] == NULL, "created: errno is %d",
        errno);
  errno = 0;
  CHECK(!boxroot_wide_modify(&b, 1, Val_int(3)) && errno == EPERM && b == w, "modified: errno is %d", errno);
  return NULL;
}
value w_eperm(value w)
{
  t_without_lock(use_without_lock, wide_of_val(w));
  return Val_unit;
}

/* Several roots by one call: their addresses, in a block of the same size, or 0. */
value w_create_all(value block)
{
  CAMLparam1(block);
  CAMLlocal1(result);
  size_t n = Wosize_val(block);
  result = caml_alloc(n, 0);
  boxroot *rs = malloc(n * sizeof *rs);
  CHECK(rs != NULL, "malloc");
  for (size_t i = 0; i < n; i++) rs[i] = (boxroot)rs;
  bool done = boxroot_create_all(n, (value *)block, rs);
  for (size_t i = 0; i < n; i++) {
    CHECK((rs[i] != NULL) == done, "root %zu", i);
    if (done) caml_modify(&Field(result, i), val_of_root(rs[i]));
  }
  free(rs);
  CAMLreturn(done ? result : Val_int(0));
}
value w_delete_all(value block)
{
  size_t n = Wosize_val(block);
  boxroot *rs = malloc((n + 1) * sizeof *rs);
  CHECK(rs != NULL, "malloc");
  for (size_t i = 0; i < n; i++) rs[i] = root_of_val(Field(block, i));
  rs[n] = NULL;
  boxroot_delete_all(n + 1, rs);
  free(rs);
  return Val_unit;
}

/* A custom block that deletes a wide root, and makes another, when it is finalised. */
static long finalised, made;
static void do_deed(value v)
{
  value vs[3] = { Val_int(1), Val_int(2), Val_int(3) };
  boxroot_wide_delete(*(boxroot_wide *)Data_custom_val(v));
  boxroot_wide w = boxroot_wide_create(3, vs);
  if (w != NULL) {
    made++;
    boxroot_wide_delete(w);
  }
  finalised++;
}
static struct custom_operations operations = { "boxroot.test.wide", do_deed, custom_compare_default,
                                               custom_hash_default, custom_serialize_default,
                                               custom_deserialize_default, custom_compare_ext_default,
                                               custom_fixed_length_default };
value w_at_end(value w)
{
  value v = caml_alloc_custom(&operations, sizeof(boxroot_wide), 0, 1);
  *(boxroot_wide *)Data_custom_val(v) = wide_of_val(w);
  return v;
}
value w_finalised(value unit) { (void)unit; return Val_long(finalised); }
value w_made(value unit) { (void)unit; return Val_long(made); }

/* n wide roots of a width are created and deleted; how many creations, and deletions, left the short way. */
value w_slow(value width, value n)
{
  enum { MOST = 1000, WIDEST = 8 };
  static boxroot_wide ws[MOST];
  value vs[WIDEST];
  size_t k = (size_t)Long_val(width), m = (size_t)Long_val(n);
  boxroot_statistics before, after;
  for (size_t i = 0; i < WIDEST; i++) vs[i] = Val_long(i);
  boxroot_get_stats(&before);
  for (size_t i = 0; i < m; i++) CHECK((ws[i] = boxroot_wide_create(k, vs)) != NULL, "no wide root");
  for (size_t i = 0; i < m; i++) boxroot_wide_delete(ws[i]);
  boxroot_get_stats(&after);
  value result = caml_alloc_small(2, 0);
  Field(result, 0) = Val_long(after.create_slow - before.create_slow);
  Field(result, 1) = Val_long(after.delete_slow - before.delete_slow);
  return result;
}

/* --- misuse: what the checked build finds ------------------------------------------------------------------------- */

value w_use_after_delete(value v)
{
  value vs[2] = { v, v };
#line 101 "wide.c"
  boxroot_wide w = boxroot_wide_create(2, vs);
#line 102 "wide.c"
  boxroot_wide_delete(w);
#line 103 "wide.c"
  return boxroot_wide_get(w, 1);
}
value w_delete_twice(value v)
{
  value vs[2] = { v, v };
#line 101 "wide.c"
  boxroot_wide w = boxroot_wide_create(2, vs);
#line 102 "wide.c"
  boxroot_wide_delete(w);
#line 104 "wide.c"
  boxroot_wide_delete(w);
  return v;
}
value w_out_of_range(value v)
{
  value vs[3] = { v, v, v };
#line 101 "wide.c"
  boxroot_wide w = boxroot_wide_create(3, vs);
#line 105 "wide.c"
  (void)boxroot_wide_modify(&w, 3, v);
  return v;
}
value w_second_slot(value v)
{
  value vs[3] = { v, v, v };
#line 101 "wide.c"
  boxroot_wide w = boxroot_wide_create(3, vs);
#line 106 "wide.c"
  boxroot_delete((boxroot)boxroot_wide_ref(w, 1));
  return v;
}
value w_delete_all_twice(value v)
{
  boxroot rs[2];
  value vs[2] = { v, v };
#line 101 "wide.c"
  (void)boxroot_create_all(2, vs, rs);
  rs[1] = rs[0];
#line 107 "wide.c"
  boxroot_delete_all(2, rs);
  return v;
}

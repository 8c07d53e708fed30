/* SPDX-License-Identifier: MIT */
/* Ephemeral roots for OCaml code: the address of one, as an integer, which keeps nothing alive. And an object of C that
   owns one on behalf of its handle. */
#include "../common/check.h"

#include <boxroot/ephemeral.h>

static boxroot_ephemeral ephemeral_of_val(value e) { return (boxroot_ephemeral)Long_val(e); }
static value val_of_ephemeral(boxroot_ephemeral e) { return Val_long((intnat)e); }

value e_create(value key, value data) { return val_of_ephemeral(boxroot_ephemeral_create(key, data)); }

static value option(bool there, value found)
{
  CAMLparam1(found);
  if (!there) {
    CHECK(found == Val_true, "the variable has changed");
    CAMLreturn(Val_int(0));
  }
  value some = caml_alloc_small(1, 0);
  Field(some, 0) = found;
  CAMLreturn(some);
}
value e_get(value e)
{
  value v = Val_true;
  bool there = boxroot_ephemeral_get(ephemeral_of_val(e), &v);
  return option(there, v);
}
value e_get_key(value e)
{
  value v = Val_true;
  bool there = boxroot_ephemeral_get_key(ephemeral_of_val(e), &v);
  return option(there, v);
}
value e_is_alive(value e)
{
  value v, k;
  bool there = boxroot_ephemeral_get(ephemeral_of_val(e), &v);
  CHECK(boxroot_ephemeral_get_key(ephemeral_of_val(e), &k) == there, "key and data do not agree");
  return Val_bool(there);
}
value e_delete(value e) { boxroot_ephemeral_delete(ephemeral_of_val(e)); return Val_unit; }
value e_delete_nolock(value e)
{
  boxroot_ephemeral b = ephemeral_of_val(e);
  caml_enter_blocking_section();
  boxroot_ephemeral_delete(b);
  caml_leave_blocking_section();
  return Val_unit;
}

/* Deletes all of an array on a thread that OCaml does not know, while this one waits with its domain's lock. */
static void *delete_list(void *list)
{
  for (boxroot_ephemeral *e = list; *e != NULL; e++) boxroot_ephemeral_delete(*e);
  return NULL;
}
value e_delete_elsewhere(value array)
{
  mlsize_t n = Wosize_val(array);
  boxroot_ephemeral *list = calloc(n + 1, sizeof(boxroot_ephemeral));
  CHECK(list != NULL, "no memory");
  for (mlsize_t i = 0; i < n; i++) list[i] = ephemeral_of_val(Field(array, i));
  pthread_t t;
  CHECK(pthread_create(&t, NULL, delete_list, list) == 0, "pthread_create");
  pthread_join(t, NULL);
  free(list);
  return Val_unit;
}

value e_error(value unit) { (void)unit; return caml_copy_string(boxroot_error_string()); }

static void *create_without_lock(void *arg)
{
  (void)arg;
  errno = 0;
  CHECK(boxroot_ephemeral_create(Val_int(1), Val_int(2)) == NULL, "created");
  CHECK(errno == EPERM && strstr(boxroot_error_string(), "lock") != NULL, "errno is %d: %s", errno,
        boxroot_error_string());
  return NULL;
}
value e_eperm(value unit)
{
  t_without_lock(create_without_lock, NULL);
  return unit;
}

/* --- an object of C, its handle, and the callback that lives as long as the handle -------------------------------- */

typedef struct object {
  boxroot strong;
  boxroot_ephemeral ephemeral;
} object;

static long finalised;
static void finalise_handle(value v)
{
  object *o = *(object **)Data_custom_val(v);
  if (o->strong != NULL) boxroot_delete(o->strong);
  if (o->ephemeral != NULL) boxroot_ephemeral_delete(o->ephemeral);
  free(o);
  __atomic_fetch_add(&finalised, 1, __ATOMIC_RELAXED);
}
static struct custom_operations operations = { "boxroot.test.handle", finalise_handle, custom_compare_default,
                                               custom_hash_default,   custom_serialize_default,
                                               custom_deserialize_default, custom_compare_ext_default,
                                               custom_fixed_length_default };
value e_handle(value unit)
{
  (void)unit;
  object *o = calloc(1, sizeof(object));
  CHECK(o != NULL, "no memory");
  value v = caml_alloc_custom(&operations, sizeof(object *), 0, 1);
  *(object **)Data_custom_val(v) = o;
  return v;
}
value e_handle_set(value v, value closure, value strong)
{
  object *o = *(object **)Data_custom_val(v);
  if (Bool_val(strong)) o->strong = boxroot_create(closure);
  else o->ephemeral = boxroot_ephemeral_create(v, closure);
  CHECK(o->strong != NULL || o->ephemeral != NULL, "no root: %s", boxroot_error_string());
  return Val_unit;
}
value e_handle_call(value v)
{
  object *o = *(object **)Data_custom_val(v);
  value f = Val_unit;
  if (o->strong != NULL) f = boxroot_get(o->strong);
  else CHECK(boxroot_ephemeral_get(o->ephemeral, &f), "the closure is dead");
  return caml_callback(f, Val_unit);
}
value e_finalised(value unit) { (void)unit; return Val_long(__atomic_load_n(&finalised, __ATOMIC_RELAXED)); }

/* --- misuse: what the checked build finds ------------------------------------------------------------------------- */

value e_use_after_delete(value v)
{
  value found;
#line 101 "eph.c"
  boxroot_ephemeral e = boxroot_ephemeral_create(v, v);
#line 102 "eph.c"
  boxroot_ephemeral_delete(e);
#line 103 "eph.c"
  return Val_bool(boxroot_ephemeral_get(e, &found));
}
value e_key_after_delete(value v)
{
  value found;
#line 101 "eph.c"
  boxroot_ephemeral e = boxroot_ephemeral_create(v, v);
#line 102 "eph.c"
  boxroot_ephemeral_delete(e);
#line 104 "eph.c"
  return Val_bool(boxroot_ephemeral_get_key(e, &found));
}
value e_delete_twice(value v)
{
#line 101 "eph.c"
  boxroot_ephemeral e = boxroot_ephemeral_create(v, v);
#line 102 "eph.c"
  boxroot_ephemeral_delete(e);
#line 105 "eph.c"
  boxroot_ephemeral_delete(e);
  return v;
}
static void *delete_one(void *e)
{
#line 102 "eph.c"
  boxroot_ephemeral_delete(e);
  return NULL;
}
value e_delete_twice_elsewhere(value v)
{
  pthread_t t;
#line 101 "eph.c"
  boxroot_ephemeral e = boxroot_ephemeral_create(v, v);
  CHECK(pthread_create(&t, NULL, delete_one, e) == 0, "pthread_create");
  pthread_join(t, NULL);
#line 105 "eph.c"
  boxroot_ephemeral_delete(e);
  return v;
}
static void *get_one(void *e)
{
  value v;
#line 106 "eph.c"
  (void)boxroot_ephemeral_get(e, &v);
  return NULL;
}
value e_use_without_lock(value v)
{
  pthread_t t;
#line 101 "eph.c"
  CHECK(pthread_create(&t, NULL, get_one, boxroot_ephemeral_create(v, v)) == 0, "pthread_create");
  pthread_join(t, NULL);
  return v;
}
value e_use_root(value v)
{
  value found;
  boxroot r = boxroot_create(v);
#line 107 "eph.c"
  (void)boxroot_ephemeral_get((boxroot_ephemeral)r, &found);
  return v;
}
value e_delete_null(value v)
{
#line 108 "eph.c"
  boxroot_ephemeral_delete(NULL);
  return v;
}

/* SPDX-License-Identifier: MIT */
/* One copy of a library of roots, for OCaml code, under names that begin with SIDE_: two.ml uses two of them in one
   process. */
#define CAML_NAME_SPACE
#include "boxroot.h"
#include <caml/alloc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <pthread.h>
#include <stdint.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define S(name) JOIN(SIDE, name)
#ifndef SHOWN
#define SHOWN
#endif

static value val_of_root(boxroot r) { return (value)((uintptr_t)r | 1); }
static boxroot root_of_val(value v) { return (boxroot)((uintptr_t)v & ~(uintptr_t)1); }

SHOWN value S(setup)(value unit) { (void)unit; return Val_bool(boxroot_setup()); }
SHOWN value S(teardown)(value unit) { boxroot_teardown(); return unit; }
SHOWN value S(status)(value unit) { (void)unit; return Val_int(boxroot_status()); }
SHOWN value S(error)(value unit) { (void)unit; return caml_copy_string(boxroot_error_string()); }
SHOWN value S(create)(value v) { return val_of_root(boxroot_create(v)); }
SHOWN value S(get)(value r) { return boxroot_get(root_of_val(r)); }
SHOWN value S(delete)(value r) { boxroot_delete(root_of_val(r)); return Val_unit; }

/* The root afterwards; 0 when that failed. */
SHOWN value S(modify)(value r, value v)
{
  boxroot b = root_of_val(r);
  return boxroot_modify(&b, v) ? val_of_root(b) : Val_int(0);
}

SHOWN value S(delete_nolock)(value r)
{
  boxroot b = root_of_val(r);
  caml_enter_blocking_section();
  boxroot_delete(b);
  caml_leave_blocking_section();
  return Val_unit;
}

static void *delete_all(void *roots)
{
  for (boxroot *r = roots; *r != NULL; r++) boxroot_delete(*r);
  return NULL;
}

/* The roots of an array of at most 1,000, on a thread that OCaml does not know, while this one keeps the lock. */
SHOWN value S(delete_elsewhere)(value array)
{
  boxroot roots[1001] = {NULL};
  pthread_t t;
  for (mlsize_t i = 0; i < Wosize_val(array) && i < 1000; i++) roots[i] = root_of_val(Field(array, i));
  if (pthread_create(&t, NULL, delete_all, roots) != 0) return Val_false;
  pthread_join(t, NULL);
  return Val_true;
}

/* Without the lock creation must fail. */
SHOWN value S(create_nolock)(value unit)
{
  caml_enter_blocking_section();
  boxroot r = boxroot_create(Val_int(1));
  caml_leave_blocking_section();
  (void)unit;
  return val_of_root(r);
}

/* Storages, where the library has them. */
#if defined(__has_include)
#if __has_include("boxroot/storage.h")
#include "boxroot/storage.h"
#define HAS_STORAGES 1
#endif
#endif
#ifdef HAS_STORAGES
SHOWN value S(storage)(value unit) { (void)unit; return val_of_root((boxroot)boxroot_storage_create("of one side")); }
SHOWN value S(storage_add)(value s, value v)
{
  return val_of_root(boxroot_storage_add((boxroot_storage)root_of_val(s), v));
}
SHOWN value S(storage_clear)(value s)
{
  return Val_bool(boxroot_storage_clear((boxroot_storage)root_of_val(s)));
}
#else
SHOWN value S(storage)(value unit) { (void)unit; return Val_int(0); }
SHOWN value S(storage_add)(value s, value v) { (void)s; (void)v; return Val_int(0); }
SHOWN value S(storage_clear)(value s) { (void)s; return Val_false; }
#endif

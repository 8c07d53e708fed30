/* SPDX-License-Identifier: MIT */
/* Storages for OCaml code: the address of one, as an integer, which keeps nothing alive. */
#include "../common/check.h"

#include <boxroot/storage.h>
#include <boxroot/wide.h>
#include <time.h>

static boxroot_storage storage_of_val(value s) { return (boxroot_storage)Long_val(s); }

value s_create(value name)
{
  return Val_long((intnat)boxroot_storage_create(caml_string_length(name) == 0 ? NULL : String_val(name)));
}
value s_add(value s, value v)
{
  boxroot r = boxroot_storage_add(storage_of_val(s), v);
  return r == NULL ? Val_int(0) : val_of_root(r);
}
/* The same by a handle. */
value s_add_here(value s, value v)
{
  boxroot_domain d = boxroot_storage_here(storage_of_val(s));
  boxroot r = d == NULL ? NULL : boxroot_create_in(d, v);
  return r == NULL ? Val_int(0) : val_of_root(r);
}
/* A handle, to be used later. */
value s_here(value s) { return Val_long((intnat)boxroot_storage_here(storage_of_val(s)) >> 1); }
value s_create_in(value d, value v)
{
  uintptr_t handle = (uintptr_t)Long_val(d) << 1;
#if OCAML_VERSION < 50000
  handle |= 1; /* of storages only */
#endif
  boxroot r = boxroot_create_in((boxroot_domain)handle, v);
  return r == NULL ? Val_int(0) : val_of_root(r);
}
value s_clear(value s) { return Val_bool(boxroot_storage_clear(storage_of_val(s))); }
value s_delete(value s) { boxroot_storage_delete(storage_of_val(s)); return Val_unit; }
value s_count(value s) { return Val_long((intnat)boxroot_storage_count(storage_of_val(s))); }
value s_name(value s) { return caml_copy_string(boxroot_storage_name(storage_of_val(s))); }
value s_error(value unit) { (void)unit; return caml_copy_string(boxroot_error_string()); }

value s_report(value unit) { (void)unit; return Val_long((intnat)boxroot_report_roots()); }
value s_wide(value v, value w)
{
  value vs[2] = { v, w };
  boxroot_wide r = boxroot_wide_create(2, vs);
  CHECK(r != NULL, "no wide root: %s", boxroot_error_string());
  return val_of_root((boxroot)r);
}
value s_wide_get(value r, value i) { return boxroot_wide_get((boxroot_wide)root_of_val(r), (size_t)Long_val(i)); }
value s_wide_delete(value r) { boxroot_wide_delete((boxroot_wide)root_of_val(r)); return Val_unit; }

static void *delete_it(void *s)
{
  boxroot_storage_delete(s);
  return NULL;
}
/* On a thread that OCaml does not know, while this one has the lock. */
value s_delete_elsewhere(value s)
{
  pthread_t t;
  CHECK(pthread_create(&t, NULL, delete_it, storage_of_val(s)) == 0, "pthread_create");
  pthread_join(t, NULL);
  return Val_unit;
}

/* Without the lock everything fails, but a deletion. */
static void *use_without_lock(void *s)
{
  errno = 0;
  CHECK(boxroot_storage_create("x") == NULL && errno == EPERM, "created: errno is %d", errno);
  errno = 0;
  CHECK(boxroot_storage_add(s, Val_int(1)) == NULL && errno == EPERM, "added: errno is %d", errno);
  errno = 0;
  CHECK(boxroot_storage_here(s) == NULL && errno == EPERM, "a handle: errno is %d", errno);
  errno = 0;
  CHECK(!boxroot_storage_clear(s) && errno == EPERM, "cleared: errno is %d", errno);
  CHECK(boxroot_storage_count(s) == 0, "counted");
  return NULL;
}
value s_eperm(value s)
{
  t_without_lock(use_without_lock, storage_of_val(s));
  return Val_unit;
}

/* A custom block that clears a storage, deletes one, and adds a root, when it is finalised. */
static long finalised;
typedef struct { boxroot_storage clear, delete, add; } deed;
static void do_deed(value v)
{
  deed *d = (deed *)Data_custom_val(v);
  if (d->clear != NULL) CHECK(boxroot_storage_clear(d->clear), "not cleared: %s", boxroot_error_string());
  if (d->delete != NULL) boxroot_storage_delete(d->delete);
  if (d->add != NULL) CHECK(boxroot_storage_add(d->add, Val_long(finalised)) != NULL, "no root");
  finalised++;
}
static struct custom_operations operations = { "boxroot.test.deed", do_deed, custom_compare_default,
                                               custom_hash_default, custom_serialize_default,
                                               custom_deserialize_default, custom_compare_ext_default,
                                               custom_fixed_length_default };
value s_at_end(value clear, value delete, value add)
{
  value v = caml_alloc_custom(&operations, sizeof(deed), 0, 1);
  *(deed *)Data_custom_val(v) = (deed){ storage_of_val(clear), storage_of_val(delete), storage_of_val(add) };
  return v;
}
value s_finalised(value unit) { (void)unit; return Val_long(finalised); }

/* --- the end of a thread, and of its domain ---------------------------------------------------------------------- */

/* In a finaliser that runs as a domain ends a root is made, or is refused with EPERM. */
static long granted, refused;
static void try_to_add(value v)
{
  errno = 0;
  if (boxroot_storage_add(*(boxroot_storage *)Data_custom_val(v), Val_int(7)) != NULL) granted++;
  else {
    CHECK(errno == EPERM, "no root: errno is %d", errno);
    refused++;
  }
}
static struct custom_operations trying = { "boxroot.test.trying", try_to_add, custom_compare_default,
                                           custom_hash_default, custom_serialize_default, custom_deserialize_default,
                                           custom_compare_ext_default, custom_fixed_length_default };
value s_trying(value s)
{
  value v = caml_alloc_custom(&trying, sizeof(boxroot_storage), 0, 1);
  *(boxroot_storage *)Data_custom_val(v) = storage_of_val(s);
  return v;
}
value s_granted(value unit) { (void)unit; return Val_long(granted); }
value s_refused(value unit) { (void)unit; return Val_long(refused); }

/* Destructors of thread-local data, which run after the domain of their thread has ended: nothing can be made there,
   and a storage can be deleted. */
typedef struct { boxroot_storage used, ends; } last_act;
static pthread_key_t last_act_key;
static pthread_once_t last_act_once = PTHREAD_ONCE_INIT;
static int acts; /* (atomic) */
static void act(void *a_)
{
  last_act *a = a_;
  errno = 0;
  CHECK(boxroot_storage_add(a->used, Val_int(1)) == NULL && errno == EPERM, "added: errno is %d", errno);
  errno = 0;
  CHECK(boxroot_storage_here(a->used) == NULL && errno == EPERM, "a handle: errno is %d", errno);
  errno = 0;
  CHECK(!boxroot_storage_clear(a->used) && errno == EPERM, "cleared: errno is %d", errno);
  boxroot_storage_delete(a->ends);
  free(a);
  __atomic_fetch_add(&acts, 1, __ATOMIC_SEQ_CST);
}
static void make_key(void) { CHECK(pthread_key_create(&last_act_key, act) == 0, "pthread_key_create"); }
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/* how: 0: the destructor of a POSIX key; 1: as C++ and Rust do it. */
value s_last_act(value how, value used, value ends)
{
  last_act *a = malloc(sizeof *a);
  CHECK(a != NULL, "malloc");
  *a = (last_act){ storage_of_val(used), storage_of_val(ends) };
  pthread_once(&last_act_once, make_key);
  if (Int_val(how) == 1 && __cxa_thread_atexit_impl != NULL)
    CHECK(__cxa_thread_atexit_impl(act, a, &__dso_handle) == 0, "__cxa_thread_atexit_impl");
  else CHECK(pthread_setspecific(last_act_key, a) == 0, "pthread_setspecific");
  return Val_unit;
}
value s_wait_for_acts(value n)
{
  caml_enter_blocking_section();
  while (__atomic_load_n(&acts, __ATOMIC_SEQ_CST) < Long_val(n)) usleep(100);
  caml_leave_blocking_section();
  return Val_unit;
}

/* --- misuse: what the checked build finds ------------------------------------------------------------------------- */

value s_use_after_clear(value v)
{
  boxroot_storage s = boxroot_storage_create("misuse");
#line 101 "storage.c"
  boxroot r = boxroot_storage_add(s, v);
#line 102 "storage.c"
  boxroot_storage_clear(s);
#line 103 "storage.c"
  return boxroot_get(r);
}
value s_delete_after_clear(value v)
{
  boxroot_storage s = boxroot_storage_create("misuse");
#line 101 "storage.c"
  boxroot r = boxroot_create_in(boxroot_storage_here(s), v);
#line 102 "storage.c"
  boxroot_storage_delete(s);
#line 104 "storage.c"
  boxroot_delete(r);
  return v;
}
value s_use_after_delete(value v)
{
  boxroot_storage s = boxroot_storage_create("misuse");
#line 102 "storage.c"
  boxroot_storage_delete(s);
#line 105 "storage.c"
  (void)boxroot_storage_add(s, v);
  return v;
}
value s_delete_twice(value v)
{
  boxroot_storage s = boxroot_storage_create("misuse");
#line 102 "storage.c"
  boxroot_storage_delete(s);
#line 106 "storage.c"
  boxroot_storage_delete(s);
  return v;
}

/* SPDX-License-Identifier: MIT */
/* Weak roots for OCaml code: the address of one, as an integer, which keeps nothing alive. And an object of C that owns
   a closure of OCaml. */
#include "../common/check.h"

#include <boxroot/ephemeral.h>
#include <boxroot/frame.h>
#include <boxroot/storage.h>
#include <boxroot/weak.h>
#include <boxroot/wide.h>
#include <sys/wait.h>

static boxroot_weak weak_of_val(value w) { return (boxroot_weak)Long_val(w); }
static value val_of_weak(boxroot_weak w) { return Val_long((intnat)w); }

value w_create(value v) { return val_of_weak(boxroot_weak_create(v)); }
value w_get(value w)
{
  CAMLparam0();
  CAMLlocal1(v);
  value got = Val_true, before = got;
  if (!boxroot_weak_get(weak_of_val(w), &got)) {
    CHECK(got == before, "boxroot_weak_get has changed the variable");
    CAMLreturn(Val_int(0));
  }
  v = got;
  value some = caml_alloc_small(1, 0);
  Field(some, 0) = v;
  CAMLreturn(some);
}
value w_is_alive(value w)
{
  value v;
  return Val_bool(boxroot_weak_get(weak_of_val(w), &v));
}
/* The root, or 0 if the weak root is dead. */
value w_upgrade(value w)
{
  errno = 1;
  boxroot r = boxroot_weak_upgrade(weak_of_val(w));
  CHECK(r != NULL || errno == 0, "errno is %d: %s", errno, boxroot_error_string());
  return r == NULL ? Val_int(0) : val_of_root(r);
}
value w_delete(value w) { boxroot_weak_delete(weak_of_val(w)); return Val_unit; }
value w_delete_nolock(value w)
{
  boxroot_weak b = weak_of_val(w);
  caml_enter_blocking_section();
  boxroot_weak_delete(b);
  caml_leave_blocking_section();
  return Val_unit;
}

/* Deletes all of an array on a thread that OCaml does not know, while this one waits with its domain's lock. */
static void *delete_all(void *list)
{
  for (boxroot_weak *w = list; *w != NULL; w++) boxroot_weak_delete(*w);
  return NULL;
}
value w_delete_elsewhere(value array)
{
  mlsize_t n = Wosize_val(array);
  boxroot_weak *list = calloc(n + 1, sizeof(boxroot_weak));
  CHECK(list != NULL, "no memory");
  for (mlsize_t i = 0; i < n; i++) list[i] = weak_of_val(Field(array, i));
  pthread_t t;
  CHECK(pthread_create(&t, NULL, delete_all, list) == 0, "pthread_create");
  pthread_join(t, NULL);
  free(list);
  return Val_unit;
}

value w_error(value unit) { (void)unit; return caml_copy_string(boxroot_error_string()); }

/* A creation without the lock fails, and says why. */
static void *create_without_lock(void *arg)
{
  (void)arg;
  errno = 0;
  CHECK(boxroot_weak_create(Val_int(1)) == NULL, "created");
  CHECK(errno == EPERM && strstr(boxroot_error_string(), "lock") != NULL, "errno is %d: %s", errno,
        boxroot_error_string());
  return NULL;
}
value w_eperm(value unit)
{
  t_without_lock(create_without_lock, NULL);
  return unit;
}

/* --- an object of C that has a callback --------------------------------------------------------------------------- */

typedef struct object {
  boxroot strong;
  boxroot_weak weak;
} object;

static long finalised;
static void finalise_object(value v)
{
  object *o = *(object **)Data_custom_val(v);
  if (o->strong != NULL) boxroot_delete(o->strong);
  if (o->weak != NULL) boxroot_weak_delete(o->weak);
  free(o);
  __atomic_fetch_add(&finalised, 1, __ATOMIC_RELAXED);
}
static struct custom_operations operations = { "boxroot.test.object", finalise_object, custom_compare_default,
                                               custom_hash_default,   custom_serialize_default,
                                               custom_deserialize_default, custom_compare_ext_default,
                                               custom_fixed_length_default };
value w_object(value unit)
{
  (void)unit;
  object *o = calloc(1, sizeof(object));
  CHECK(o != NULL, "no memory");
  value v = caml_alloc_custom(&operations, sizeof(object *), 0, 1);
  *(object **)Data_custom_val(v) = o;
  return v;
}
value w_object_set(value v, value closure, value strong)
{
  object *o = *(object **)Data_custom_val(v);
  if (Bool_val(strong)) o->strong = boxroot_create(closure);
  else o->weak = boxroot_weak_create(closure);
  CHECK(o->strong != NULL || o->weak != NULL, "no root");
  return Val_unit;
}
value w_object_call(value v)
{
  object *o = *(object **)Data_custom_val(v);
  value f = Val_unit;
  if (o->strong != NULL) f = boxroot_get(o->strong);
  else CHECK(boxroot_weak_get(o->weak, &f), "the closure is dead");
  return caml_callback(f, Val_unit);
}
value w_finalised(value unit) { (void)unit; return Val_long(__atomic_load_n(&finalised, __ATOMIC_RELAXED)); }

/* --- a weak root in thread-local storage, which ends with the thread ---------------------------------------------- */

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static long ended;
static void end_one(void *w)
{
  boxroot_weak_delete(w);
  __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
}
static void make_key(void) { CHECK(pthread_key_create(&key, end_one) == 0, "pthread_key_create"); }
value w_leave_to_destructor(value w)
{
  pthread_once(&once, make_key);
  CHECK(pthread_setspecific(key, weak_of_val(w)) == 0, "pthread_setspecific");
  return Val_unit;
}
value w_destructors(value unit) { (void)unit; return Val_long(__atomic_load_n(&ended, __ATOMIC_RELAXED)); }

/* --- finalisers that OCaml's shutdown runs, with roots of all kinds ----------------------------------------------- */

typedef struct user {
  boxroot root;
  boxroot_weak weak;
  boxroot_ephemeral ephemeral;
} user;

static long users_finalised, refused;

static void weak_is_refused(void)
{
  CHECK(errno == EPERM && strstr(boxroot_error_string(), "shutdown") != NULL, "errno is %d: %s", errno,
        boxroot_error_string());
  refused++;
}

static void finalise_user(value v)
{
  user *u = *(user **)Data_custom_val(v);
  value found, two[2] = { Val_int(1), Val_int(2) };
  (void)boxroot_weak_get(u->weak, &found);
  (void)boxroot_ephemeral_get(u->ephemeral, &found);
  boxroot_weak w = boxroot_weak_create(Val_int(1));
  if (w != NULL) boxroot_weak_delete(w);
  else weak_is_refused();
  boxroot_ephemeral e = boxroot_ephemeral_create(Val_int(1), Val_int(2));
  if (e != NULL) boxroot_ephemeral_delete(e);
  else weak_is_refused();
  boxroot_wide wide = boxroot_wide_create(2, two);
  CHECK(wide != NULL && boxroot_wide_modify(&wide, 1, Val_int(3)), "wide root: %s", boxroot_error_string());
  boxroot_wide_delete(wide);
  boxroot_storage s = boxroot_storage_create("finaliser");
  CHECK(s != NULL && boxroot_storage_add(s, Val_int(1)) != NULL, "storage: %s", boxroot_error_string());
  boxroot_storage_delete(s);
  BOXROOT_FRAME(f, 1);
  for (int i = 0; i < 100; i++) CHECK(boxroot_local_create(&f, Val_int(i)) != NULL, "local %d", i);
  CHECK(boxroot_modify(&u->root, Val_int(1)), "modified: %s", boxroot_error_string());
  boxroot_delete(u->root);
  boxroot_weak_delete(u->weak);
  boxroot_ephemeral_delete(u->ephemeral);
  free(u);
  users_finalised++;
}
static struct custom_operations user_operations = { "boxroot.test.user", finalise_user, custom_compare_default,
                                                    custom_hash_default, custom_serialize_default,
                                                    custom_deserialize_default, custom_compare_ext_default,
                                                    custom_fixed_length_default };
value w_user(value held)
{
  CAMLparam1(held);
  user *u = calloc(1, sizeof(user));
  CHECK(u != NULL, "no memory");
  CAMLlocal1(v);
  v = caml_alloc_custom(&user_operations, sizeof(user *), 0, 1);
  *(user **)Data_custom_val(v) = u;
  *u = (user){ boxroot_create(held), boxroot_weak_create(held), boxroot_ephemeral_create(held, held) };
  CHECK(u->root != NULL && u->weak != NULL && u->ephemeral != NULL, "no root: %s", boxroot_error_string());
  CAMLreturn(v);
}

static void say_what_users_did(void) { printf("%ld finalised, %ld refused\n", users_finalised, refused); }
value w_say_at_exit(value unit) { atexit(say_what_users_did); return unit; }

/* --- misuse: what the checked build finds ------------------------------------------------------------------------- */

value w_use_after_delete(value v)
{
  value found;
#line 101 "weak.c"
  boxroot_weak w = boxroot_weak_create(v);
#line 102 "weak.c"
  boxroot_weak_delete(w);
#line 103 "weak.c"
  return Val_bool(boxroot_weak_get(w, &found));
}
value w_upgrade_after_delete(value v)
{
#line 101 "weak.c"
  boxroot_weak w = boxroot_weak_create(v);
#line 102 "weak.c"
  boxroot_weak_delete(w);
#line 104 "weak.c"
  (void)boxroot_weak_upgrade(w);
  return v;
}
value w_delete_twice(value v)
{
#line 101 "weak.c"
  boxroot_weak w = boxroot_weak_create(v);
#line 102 "weak.c"
  boxroot_weak_delete(w);
#line 105 "weak.c"
  boxroot_weak_delete(w);
  return v;
}
/* The pool of the weak root has no others: its record must be there still. */
value w_delete_last_twice(value v)
{
  enum { N = 1000 };
  boxroot_weak all[N];
#line 101 "weak.c"
  for (int i = 0; i < N; i++) all[i] = boxroot_weak_create(v);
#line 102 "weak.c"
  for (int i = 0; i < N; i++) boxroot_weak_delete(all[i]);
#line 105 "weak.c"
  boxroot_weak_delete(all[N / 2]);
  return v;
}
static void *delete_one(void *w)
{
#line 102 "weak.c"
  boxroot_weak_delete(w);
  return NULL;
}
value w_delete_twice_elsewhere(value v)
{
  pthread_t t;
#line 101 "weak.c"
  boxroot_weak w = boxroot_weak_create(v);
  CHECK(pthread_create(&t, NULL, delete_one, w) == 0, "pthread_create");
  pthread_join(t, NULL);
#line 105 "weak.c"
  boxroot_weak_delete(w);
  return v;
}
static void *get_one(void *w)
{
  value v;
#line 106 "weak.c"
  (void)boxroot_weak_get(w, &v);
  return NULL;
}
value w_use_without_lock(value v)
{
  pthread_t t;
  CHECK(pthread_create(&t, NULL, get_one, boxroot_weak_create(v)) == 0, "pthread_create");
  pthread_join(t, NULL);
  return v;
}
value w_use_null(value v)
{
  value found;
#line 107 "weak.c"
  (void)boxroot_weak_get(NULL, &found);
  return v;
}
value w_delete_null(value v)
{
#line 108 "weak.c"
  boxroot_weak_delete(NULL);
  return v;
}
value w_delete_root(value v)
{
  boxroot r = boxroot_create(v);
#line 109 "weak.c"
  boxroot_weak_delete((boxroot_weak)r);
  return v;
}

/* SPDX-License-Identifier: MIT */
/* Calls from places whose names the tests know, and misuse. */
#include "../common/check.h"

value k_quarantine(value unit) { (void)unit; return Val_long(BOXROOT_QUARANTINE); }
value k_report(value unit) { (void)unit; return Val_long(boxroot_report_roots()); }

/* Through the address of a root that has ended. */
value k_write(value r, value v) { *(value *)root_of_val(r) = v; return Val_unit; }
value k_read(value r) { return Val_bool((*(uintptr_t *)root_of_val(r) & 1) == 1); }

/* Not by name: what programs in other languages do. Exported, so that the dynamic linker can tell the names. */
static boxroot (*volatile create_pointer)(value) = boxroot_create;
static void (*volatile delete_pointer)(boxroot) = boxroot_delete;
static value (*volatile get_pointer)(boxroot) = boxroot_get;
value k_create_by_pointer(value v) { boxroot r = create_pointer(v); return val_of_root(r); }
value k_delete_by_pointer(value r) { delete_pointer(root_of_val(r)); return Val_unit; }

__attribute__((weak)) value k_cxx_create(value v) { (void)v; return Val_int(0); }
__attribute__((weak)) value k_cxx_delete(value r) { return r; }
__attribute__((weak)) value k_cxx_keep(value v) { (void)v; return Val_unit; }
__attribute__((weak)) value k_cxx_get(value r) { return r; }

static void *deleter(void *r), *getter(void *r);

/* Roots that end at the exit: in a function for the exit that is registered before the library is set up, as those of
   C++ objects with static storage duration are; and in a destructor. */
static boxroot last[2];
static void end_first(void) { if (last[0] != NULL) boxroot_delete(last[0]); }
__attribute__((constructor)) static void first_to_be_registered(void) { atexit(end_first); }
__attribute__((destructor)) static void end_last(void) { if (last[1] != NULL) boxroot_delete(last[1]); }
value k_end_at_exit(value v)
{
  last[0] = boxroot_create(v);
  last[1] = boxroot_create(v);
  return Val_unit;
}

/* Without the lock. */
value k_get_thread(value r)
{
  pthread_t t;
  CHECK(pthread_create(&t, NULL, getter, root_of_val(r)) == 0, "pthread_create");
  pthread_join(t, NULL);
  return Val_unit;
}
value k_get_blocking(value r)
{
  boxroot b = root_of_val(r);
  caml_enter_blocking_section();
  getter(b);
  caml_leave_blocking_section();
  return Val_unit;
}

/* On a thread that OCaml does not know, and that holds no lock. */
value k_delete_thread(value r)
{
  pthread_t t;
  CHECK(pthread_create(&t, NULL, deleter, root_of_val(r)) == 0, "pthread_create");
  pthread_join(t, NULL);
  return Val_unit;
}

/* Two such threads delete the same root at the same time. */
value k_delete_twice_at_once(value r)
{
  pthread_t t[2];
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&t[i], NULL, deleter, root_of_val(r)) == 0, "pthread_create");
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  return Val_unit;
}

/* Through a handle on the domain, whoever has the lock. */
value k_domain_here(value unit)
{
  (void)unit;
  boxroot_domain d = boxroot_domain_here();
  CHECK(d != NULL, "domain_here");
  return (value)d | 1;
}
static boxroot_domain domain_of_val(value d) { return (boxroot_domain)(d & ~(value)1); }
static boxroot_domain handle_of_thread;
static void *creator(void *unused);

/* On a thread without a lock. */
value k_create_in_thread(value d)
{
  pthread_t t;
  handle_of_thread = domain_of_val(d);
  CHECK(pthread_create(&t, NULL, creator, NULL) == 0, "pthread_create");
  pthread_join(t, NULL);
  return Val_unit;
}

#line 101 "creations.c"
value k_create(value v) { return val_of_root(boxroot_create(v)); }
value k_create_elsewhere(value v) { return val_of_root(boxroot_create(v)); }
value k_create_in(value d, value v) { return val_of_root(boxroot_create_in(domain_of_val(d), v)); }
static void *creator(void *unused) { (void)boxroot_create_in(handle_of_thread, Val_int(0)); return unused; }
#line 201 "deletions.c"
value k_delete(value r) { boxroot_delete(root_of_val(r)); return Val_unit; }
value k_delete_elsewhere(value r) { boxroot_delete(root_of_val(r)); return Val_unit; }
static void *deleter(void *r) { boxroot_delete((boxroot)r); return NULL; }
value k_delete_in(value d, value r) { boxroot_delete_in(domain_of_val(d), root_of_val(r)); return Val_unit; }
#line 301 "uses.c"
value k_get(value r) { return boxroot_get(root_of_val(r)); }
value k_get_ref(value r) { return val_of_root((boxroot)boxroot_get_ref(root_of_val(r))); }
value k_modify(value r, value v)
{
  boxroot b = root_of_val(r);
#line 303
  CHECK(boxroot_modify(&b, v), "modify");
  return val_of_root(b);
}
#line 304
static void *getter(void *r) { (void)boxroot_get((boxroot)r); return NULL; }
value k_modify_nested(value r, value q)
{
  boxroot b = root_of_val(r);
#line 305
  CHECK(boxroot_modify(&b, get_pointer(root_of_val(q))), "modify");
  return val_of_root(b);
}
value k_modify_void(value r, value v)
{
  boxroot b = root_of_val(r);
  return Val_bool(boxroot_modify(&b, v) || b != root_of_val(r));
}

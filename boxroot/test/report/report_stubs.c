/* SPDX-License-Identifier: MIT */
/* Subjects of reports: roots made in places with names, and cells that are registered with the runtime. */
#include "../common/check.h"

#include <boxroot/report.h>
#include <boxroot/storage.h>
#include <boxroot/weak.h>
#include <boxroot/wide.h>
#include <signal.h>

#define NAMED __attribute__((noinline, noclone))

value p_report(value file)
{
  return Val_bool(boxroot_report(caml_string_length(file) == 0 ? NULL : String_val(file)));
}
value p_sample(value n) { return Val_bool(boxroot_sample((uint32_t)Long_val(n))); }
value p_created_slowly(value unit)
{
  (void)unit;
  boxroot_statistics s;
  boxroot_get_stats(&s);
  return Val_long((intnat)s.create_slow);
}

/* --- who makes roots ---------------------------------------------------------------------------------------------- */

NAMED value p_here(value v) { return val_of_root(boxroot_create(v)); }
NAMED value p_there(value v) { return val_of_root(boxroot_create(v)); }
NAMED value p_brief(value v)
{
  boxroot_delete(boxroot_create(v));
  return Val_unit;
}
NAMED value p_by_handle(value v)
{
  boxroot_domain d = boxroot_domain_here();
  CHECK(d != NULL, "%s", boxroot_error_string());
  return val_of_root(boxroot_create_in(d, v));
}
NAMED value p_wide(value v)
{
  value vs[3] = { v, Val_int(0), v };
  return val_of_root((boxroot)boxroot_wide_create(3, vs));
}
value p_wide_delete(value r) { boxroot_wide_delete((boxroot_wide)root_of_val(r)); return Val_unit; }

value p_storage(value name) { return Val_long((intnat)boxroot_storage_create(String_val(name))); }
NAMED value p_stored(value s, value v) { return val_of_root(boxroot_storage_add((boxroot_storage)Long_val(s), v)); }
NAMED value p_stored_by_handle(value s, value v)
{
  boxroot_domain d = boxroot_storage_here((boxroot_storage)Long_val(s));
  CHECK(d != NULL, "%s", boxroot_error_string());
  return val_of_root(boxroot_create_in(d, v));
}
value p_storage_clear(value s) { return Val_bool(boxroot_storage_clear((boxroot_storage)Long_val(s))); }

/* --- registered cells --------------------------------------------------------------------------------------------- */

static value p_table[4];
value p_exported;

/* Registers p_exported, and n of p_table. */
value p_register_variables(value n, value v)
{
  p_exported = v;
  caml_register_global_root(&p_exported);
  for (int i = 0; i < Int_val(n); i++) {
    p_table[i] = v;
    caml_register_generational_global_root(&p_table[i]);
  }
  return Val_unit;
}
value p_remove_variables(value n)
{
  caml_remove_global_root(&p_exported);
  for (int i = 0; i < Int_val(n); i++) caml_remove_generational_global_root(&p_table[i]);
  return Val_unit;
}

value p_register_allocated(value v)
{
  value *cell = malloc(sizeof(value));
  CHECK(cell != NULL, "malloc");
  *cell = v;
  caml_register_generational_global_root(cell);
  return Val_long((intnat)cell);
}

/* --- the cap ------------------------------------------------------------------------------------------------------ */

static uint64_t told, told_times;

static void reached(uint64_t live, void *data)
{
  told = live;
  told_times++;
  CHECK(data == &told, "another datum");
  boxroot_delete(boxroot_create(Val_int(1)));
  if (told_times == 1) boxroot_cap(2 * live, reached, data);
  CHECK(boxroot_report("capped.txt"), "no report");
}
value p_cap(value roots)
{
  boxroot_cap((uint64_t)Long_val(roots), reached, &told);
  return Val_unit;
}
value p_told(value unit) { (void)unit; return Val_long((intnat)told); }

/* --- otherwise ---------------------------------------------------------------------------------------------------- */

static void *report_to(void *file)
{
  CHECK(boxroot_report(file), "no report");
  return NULL;
}
value p_report_without_lock(value unit)
{
  t_without_lock(report_to, "nolock.txt");
  return unit;
}

value p_raise(value unit) { raise(SIGUSR1); return unit; }
static void ignore(int number) { (void)number; }
__attribute__((constructor)) static void has_handler(void)
{
  if (getenv("P_HANDLER") != NULL) signal(SIGUSR1, ignore);
}

/* SPDX-License-Identifier: MIT */
/* Global roots. The texts of four functions are changed by globroots.edits.

   Stock   passes over a root that is registered twice, or removed without having been registered.
   Here    it is reported: the second registration keeps nothing alive once the first is removed. */
#include "prelude.h"
#include "trap.h"
#include "trap_report.h"
#include <caml/globroots.h>
#include <caml/skiplist.h>

static void oh_trap_added(struct skiplist *list, struct skiplist *other, value *root);
static void oh_trap_removed(struct skiplist *list, struct skiplist *other, value *root);

#include <globroots.c>

static bool is_registered(struct skiplist *list, struct skiplist *other, value *root)
{
  if (iterating_roots > 0) return true; /* not known */
  caml_plat_lock_blocking(&roots_mutex);
  bool found = caml_skiplist_find_ptr(list, (uintnat)root) != NULL
               || (other != NULL && caml_skiplist_find_ptr(other, (uintnat)root) != NULL);
  caml_plat_unlock(&roots_mutex);
  return found;
}

static void oh_trap_added(struct skiplist *list, struct skiplist *other, value *root)
{
  if (oh_trap_on && iterating_roots == 0 && is_registered(list, other, root))
    oh_trap_report_fault("a global root was registered twice", root,
                         "remove it before you register it again, or before the memory that holds it is used anew");
}

/* Of a generational root: one that holds an immediate is on no list. */
static void oh_trap_removed(struct skiplist *list, struct skiplist *other, value *root)
{
  if (oh_trap_on && !is_registered(list, other, root))
    oh_trap_report_fault("a global root was removed that is not registered", root,
                         other == NULL ? "remove each root once"
                         : "remove each root once, and change it by caml_modify_generational_global_root only");
}

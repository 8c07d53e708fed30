/* SPDX-License-Identifier: MIT */
/* Minor collection, and the size of the minor heap. The texts of three functions are changed by minor_gc.edits.

   Stock   reads only headers of young blocks, but for two places: the target of a young Forward block, and an assertion
           of the debug runtime.
   Here    a foreign target stays behind its Forward block, and the assertion passes over foreign pointers.
   Stock   runs finalisers of young custom blocks.
   Here    not while another thread acts for the domain (cycle.h).
   Also    a minor heap may get another size at the end of a collection (minor_size.h). */
#include "prelude.h"
#include "base.h"
#include "cycle.h"
#include "minor_size.h"
#include <caml/minor_gc.h>
#include <caml/version.h>

/* Stock   gives the minor heap up, and ends the process when it gets none of the new size.
   Here    the old one stays. */
static int reallocate_or_keep(asize_t words);
#define caml_reallocate_minor_heap(words) reallocate_or_keep(words)
#define caml_reallocate_minor_heap_arena(words) reallocate_or_keep(words) /* OCaml 5.5 */

static void adapt(caml_domain_state *domain);

struct oldify_state;
static void keep_customs(caml_domain_state *domain, struct oldify_state *st);

/* Does one of its tables ask for a collection? The first store gives it memory. */
#define IS_FULL(table) ((table).base != NULL && (table).ptr >= (table).threshold)
static bool has_full_table(struct caml_minor_tables const *t)
{
  return IS_FULL(t->major_ref) || IS_FULL(t->ephe_ref) || IS_FULL(t->custom);
}

#include <minor_gc.c>

#undef caml_reallocate_minor_heap
#undef caml_reallocate_minor_heap_arena
#if OCAML_VERSION >= 50500
#define caml_reallocate_minor_heap caml_reallocate_minor_heap_arena
#endif
static int reallocate_or_keep(asize_t words)
{
  uintnat old = Caml_state->minor_heap_wsz;
  oh_minor_size_fix(Caml_state);
  if (caml_reallocate_minor_heap(words) == 0) return 0;
  oh_log("a minor heap of %zuk words cannot be had; it keeps its size, %zuk", (size_t)words / 1024, (size_t)old / 1024);
  return caml_reallocate_minor_heap(old);
}

/* In the place of a domain, the reclaim thread runs no finaliser: young blocks that have one are promoted. The entries
   of the table stay, since what they lead to tells the runtime that the block was promoted. */
static void keep_customs(caml_domain_state *domain, struct oldify_state *st)
{
  if (!oh_cycle_borrowed()) return;
  struct caml_custom_elt *end = domain->minor_tables->custom.ptr;
  for (struct caml_custom_elt *e = domain->minor_tables->custom.base; e < end; e++) {
    value v = e->block;
    if (!Is_block(v) || !Is_young(v) || get_header_val(v) == 0 || Custom_ops_val(v)->finalize == NULL) continue;
    value promoted = v;
    oldify_one(st, v, &promoted);
  }
}

/* The remembered sets are empty, and get sizes that fit the minor heap when they are used again. */
static void adapt(caml_domain_state *domain)
{
  if (oh_minor_size_adapt(domain)) reset_minor_tables(domain->minor_tables);
}

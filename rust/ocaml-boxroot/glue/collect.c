/* SPDX-License-Identifier: MIT */
/* Collections, and what is due. */
#include "obx.h"
#include <caml/gc.h>
#include <caml/major_gc.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/signals.h>
#if !OCAML5
#include <caml/compact.h>
#endif

/* Those that return a value return an encoded exception, or unit. */

value obx_poll(void) { return caml_process_pending_actions_exn(); }

void obx_minor(void) { caml_minor_collection(); }

static void finish_cycle(bool compact)
{
  caml_minor_collection();
#if OCAML_VERSION >= 50200
  caml_finish_major_cycle(compact);
#else
  caml_finish_major_cycle();
#if !OCAML5
  if (compact) caml_compact_heap(-1);
#endif
  (void)compact;
#endif
}

/* Finalisers run after each cycle; what they let go may need up to two more. */
static value full(bool compact)
{
  for (int i = 0; i < 3; i++) {
    finish_cycle(compact && i == 2);
    value result = caml_process_pending_actions_exn();
    if (Is_exception_result(result)) return result;
  }
  return Val_unit;
}

value obx_full_major(void) { return full(false); }
value obx_compact(void) { return full(true); }

/* SPDX-License-Identifier: MIT */
#include "runtime_ocaml4_held.h"
#if !BXR_OCAML5
#include "atomic.h"
#include "runtime_ocaml4_token.h"
#include "thread.h"
#include <caml/domain.h>

static bool prepared; /* (atomic) */
static bool blind; /* pointers into the stack tell nothing in this program: OCaml runs on a stack of its own making */

/* Whether the runtime's pointers are into this thread's stack: a thread that takes the lock gets its own restored.
   (Native code: the first two; the last is bytecode's.) They stay when the lock is released, so this is for threads
   about which the hooks say nothing. */
static bxr_thread_answer stack_says(void)
{
  if (Caml_state == NULL) return BXR_THREAD_NO;
  /* A coroutine's, or the system does not tell. */
  if (bxr_thread_stack_has(__builtin_frame_address(0)) != BXR_THREAD_YES) return BXR_THREAD_UNKNOWN;
  void *p[] = { Caml_state->top_of_stack, Caml_state->bottom_of_stack, Caml_state->local_roots,
                Caml_state->external_raise };
  /* without pointers: no OCaml code is active, and C code may well have the lock */
  bxr_thread_answer result = BXR_THREAD_UNKNOWN;
  for (int i = 0; i < 4; i++) {
    if (p[i] == NULL) continue;
    if (bxr_thread_stack_has(p[i]) == BXR_THREAD_YES) return BXR_THREAD_YES;
    result = BXR_THREAD_NO;
  }
  return blind && result == BXR_THREAD_NO ? BXR_THREAD_UNKNOWN : result;
}

bool bxr_runtime_held(void)
{
  if (bxr_runtime_token_released()) return false;
  if (stack_says() != BXR_THREAD_NO) return true;
  /* It may have started OCaml on a coroutine's stack. */
  return !bxr_load_relaxed(&prepared) && bxr_thread_is_first();
}

void bxr_runtime_held_prepare(void)
{
  bxr_store_relaxed(&prepared, true);
  blind = stack_says() == BXR_THREAD_NO || bxr_thread_stack_has(__builtin_frame_address(0)) == BXR_THREAD_NO;
}
#endif

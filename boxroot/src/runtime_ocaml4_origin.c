/* SPDX-License-Identifier: MIT */
#include "runtime_ocaml4_origin.h"
#if !BXR_OCAML5
#include "thread.h"
#include <caml/domain.h>
#include <caml/io.h>
#include <signal.h>

/* Systhreads', if it is there: the descriptor of the thread that has the lock. Its fields are a number, 0 for the
   program's first thread; and the function that the thread is to run, until it runs. */
extern value caml_thread_self(value unit) __attribute__((weak));
enum { NUMBER, FUNCTION };

typedef enum { UNKNOWN, OTHERS, OCAMLS } origin_of_thread;
static BXR_THREAD_LOCAL origin_of_thread origin;
static BXR_THREAD_LOCAL bool over;

/* Where OCaml code called this thread's C code, when it was last found alive. */
static BXR_THREAD_LOCAL struct { char *stack; uintptr_t address; } caller;

static bool has_signal_stack(void)
{
  stack_t s;
  return sigaltstack(NULL, &s) == 0 && (s.ss_flags & SS_DISABLE) == 0;
}

/* The end of the youngest frames of OCaml code, in native code or bytecode; NULL: there are none. */
static char *frames(void)
{
  char *p = Caml_state->bottom_of_stack;
  return p != NULL ? p : (char *)Caml_state->external_raise;
}

static bool there_are_threads(void) { return caml_thread_self != NULL && caml_channel_mutex_lock != NULL; }

void bxr_runtime_origin_note(void)
{
  if (origin != UNKNOWN || !there_are_threads()) return;
  value self = caml_thread_self(Val_unit);
  if (!Is_block(self) || Field(self, NUMBER) == Val_int(0)) origin = OTHERS; /* no block: being registered */
  else if (Is_block(Field(self, FUNCTION))) origin = OCAMLS;
  else if (frames() != NULL && has_signal_stack()) origin = OCAMLS; /* or one of C's that has such a stack */
}

bool bxr_runtime_origin_is_ocaml(void)
{
  if (BXR_LIKELY(origin != UNKNOWN)) return origin == OCAMLS;
  if (!there_are_threads() || bxr_thread_is_first() || !has_signal_stack()) origin = OTHERS;
  else bxr_runtime_origin_note(); /* not a thread that has ended: what is read of systhreads is there */
  return origin == OCAMLS;
}

bool bxr_runtime_origin_has_ended(void)
{
  if (BXR_LIKELY(origin == OTHERS) || !bxr_runtime_origin_is_ocaml()) return false;
  if (over) return true;
  char *stack = frames();
  uintptr_t address = Caml_state->last_return_address;
  if (stack != NULL && stack == caller.stack && address == caller.address) return false;
  /* There are no frames either before OCaml code has called a function of C that may allocate. */
#if defined(HAS_STACK_OVERFLOW_DETECTION)
  over = Caml_state->external_raise == NULL && !has_signal_stack();
#else
  over = stack == NULL && caller.stack != NULL;
#endif
  if (over || stack == NULL) return over;
  char *here = __builtin_frame_address(0);
  if (bxr_thread_stack_has(here) == BXR_THREAD_YES) { /* not a coroutine's */
    if (bxr_thread_stack_has(stack) == BXR_THREAD_NO) return true; /* another thread has the lock */
    /* Bytecode: what the interpreter calls is further down the stack, and Thread.exit leaves its address. (In native
       code this is where OCaml code has last called a function that may allocate, perhaps from a deeper frame.) */
    over = Caml_state->external_raise != NULL && here > stack;
    if (over) return true;
  }
  caller.stack = stack;
  caller.address = address;
  return false;
}
#endif

/* SPDX-License-Identifier: MIT */
/* Exceptions: those of the runtime, backtraces, raising. */
#include "obx.h"
#include <caml/alloc.h>
#include <caml/backtrace.h>
#include <caml/backtrace_prim.h>
#include <caml/fail.h>
#include <caml/intext.h>
#include <caml/memory.h>
#if OCAML5
#include <caml/fiber.h>
#endif

/* Native programs have these; a bytecode program has caml_global_data, which holds the same in the order of the numbers
   in caml/fail.h. */
typedef struct { value pad; } constant;
#define EXCEPTIONS(X) \
  X(OUT_OF_MEMORY_EXN, Out_of_memory) X(SYS_ERROR_EXN, Sys_error) X(FAILURE_EXN, Failure) \
  X(INVALID_EXN, Invalid_argument) X(END_OF_FILE_EXN, End_of_file) X(ZERO_DIVIDE_EXN, Division_by_zero) \
  X(NOT_FOUND_EXN, Not_found) X(STACK_OVERFLOW_EXN, Stack_overflow)
#define DECLARE(number, name) extern constant caml_exn_##name __attribute__((weak));
EXCEPTIONS(DECLARE)
extern value caml_global_data __attribute__((weak));

bool obx_is_native(void) { return &caml_exn_Out_of_memory != NULL; }

/* One of the runtime's own exceptions, or the constructor of one. */
value obx_builtin(int which)
{
  if (!obx_is_native()) return Field(caml_global_data, which);
  switch (which) {
#define CASE(number, name) case number: return (value)&caml_exn_##name;
    EXCEPTIONS(CASE)
  default: return (value)&caml_exn_Out_of_memory;
  }
}

/* An exception with its backtrace is a block with this tag: the exception, and what OCaml calls a raw_backtrace. No
   exception has it. As in src/exception/mod.rs. */
enum { TRACED = 1 };

/* For an exception that OCaml has just raised: with its backtrace if there is one and memory for it, else as it is. May
   run the collector. */
value obx_traced(value exn)
{
  CAMLparam1(exn);
  CAMLlocal1(slots);
  value traced;
  intnat length = Caml_state->backtrace_pos;
  if (!Caml_state->backtrace_active || length <= 0 || Caml_state->backtrace_last_exn != exn) CAMLreturn(exn);
  slots = length <= Max_young_wosize ? caml_alloc_small(length, 0) : obx_alloc_major(length, 0);
  if (slots == 0) CAMLreturn(exn);
  /* Immediates for OCaml. */
  for (intnat i = 0; i < length; i++) Field(slots, i) = Val_backtrace_slot(Caml_state->backtrace_buffer[i]);
  traced = caml_alloc_small(2, TRACED);
  Field(traced, 0) = exn;
  Field(traced, 1) = slots;
  CAMLreturn(traced);
}

extern value caml_restore_raw_backtrace(value exn, value backtrace);

/* What an exception does with the local roots of the C frames that it leaves. In bytecode of OCaml 4 only the
   interpreter knows them. */
static void leave_local_roots(void)
{
  caml_domain_state *state = Caml_state;
  if (!obx_is_native()) {
#if OCAML5
    if (state->external_raise != NULL) state->local_roots = state->external_raise->local_roots;
#endif
    return;
  }
#if OCAML5
  char *handler = (char *)state->c_stack;
#else
  char *handler = state->exception_pointer;
#endif
  while (state->local_roots != NULL && (char *)state->local_roots < handler)
    state->local_roots = state->local_roots->next;
}

/* OCaml 5's caml_raise forgets the backtrace that the exception has. What OCaml code calls to raise one again does not:
   it wants OCaml's stack and registers, as caml_raise sets them. */
#if OCAML5 && defined(__x86_64__) && defined(__linux__) && !defined(WITH_FRAME_POINTERS)
extern void caml_reraise_exn(void) __attribute__((weak));
extern char const with_tsan __asm__("caml_tsan_exit_on_raise") __attribute__((weak));
static bool can_go_on(void) { return caml_reraise_exn != NULL && &with_tsan == NULL; }
static _Noreturn void go_on(value exn)
{
  caml_domain_state *state = Caml_state;
  leave_local_roots();
  __asm__ volatile("movq %[state], %%r14\n\t"
                   "movq %[young], %%r15\n\t"
                   "movq %[stack], %%rsp\n\t"
                   "jmp *%[raise]"
                   :
                   : [state] "r"(state), [young] "r"(state->young_ptr), [stack] "r"(state->current_stack->sp),
                     [raise] "r"(caml_reraise_exn), "a"(exn)
                   : "r14", "r15", "memory");
  __builtin_unreachable();
}
#else
static bool can_go_on(void) { return false; }
static _Noreturn void go_on(value exn) { caml_raise(exn); }
#endif

/* Jumps to OCaml's handler, with an exception or one and its backtrace. Only this function and the next one raise: for
   a function that OCaml has called, as its last act, with nothing to drop in its frame. */
_Noreturn void obx_raise(value exn)
{
  if (Tag_val(exn) == TRACED) {
    value backtrace = Field(exn, 1);
    exn = Field(exn, 0);
    if (Caml_state->backtrace_active) {
      caml_restore_raw_backtrace(exn, backtrace);
      if (can_go_on()) go_on(exn);
    }
  }
  caml_raise(exn);
}

/* For a function that reads a custom block: input_value fails, with Failure. Before 5.4 its result so far, with fields
   that are not read yet, is a local root while the runtime allocates the exception; so a collection would follow what
   lies in them. */
_Noreturn void obx_refuse_data(char const *message)
{
  leave_local_roots();
  caml_deserialize_error((char *)message);
}

/* SPDX-License-Identifier: MIT */
/* C code that OCaml calls, and that calls Rust in a blocking section of its own. Signals and their stacks. */
#define CAML_NAME_SPACE
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <signal.h>
#include <stddef.h>

intnat testing_unlocked(intnat n);

value testing_in_blocking_section(value n)
{
  intnat result;
  caml_enter_blocking_section();
  result = testing_unlocked(Long_val(n));
  caml_leave_blocking_section();
  return Val_long(result);
}

void testing_signal(void) { raise(SIGUSR1); }

/* This thread's signal stack, NULL if it has none that will do. */
void *testing_signal_stack(void)
{
  stack_t stack;
  sigaltstack(NULL, &stack);
  return (stack.ss_flags & SS_DISABLE) || stack.ss_size < (size_t)MINSIGSTKSZ ? NULL : stack.ss_sp;
}

void testing_no_signal_stack(void)
{
  stack_t none = {.ss_flags = SS_DISABLE, .ss_size = SIGSTKSZ};
  sigaltstack(&none, NULL);
}

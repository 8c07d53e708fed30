/* SPDX-License-Identifier: MIT */
/* Signal stacks. OCaml 5 runs OCaml code on stacks that are too small for a signal handler, and OCaml 4 finds overflows
   by one that cannot run on the stack that is full: so a thread that may run OCaml code has a signal stack. Rust gives
   one to each thread of its own programs, to tell of overflows; the runtime takes it away in its start-up, and when it
   registers and unregisters a thread. Here it is put back. */
#include "obx.h"
#include <caml/signals.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* How large a signal stack is. Less than `least` is refused by the system for some processors' registers. */
static size_t least(void)
{
#ifdef _SC_MINSIGSTKSZ
  long size = sysconf(_SC_MINSIGSTKSZ);
  if (size > MINSIGSTKSZ) return (size_t)size;
#endif
  return MINSIGSTKSZ;
}
static size_t usual(void) { return (size_t)SIGSTKSZ > 2 * least() ? (size_t)SIGSTKSZ : 2 * least(); }

static stack_t current(void)
{
  stack_t stack;
  sigaltstack(NULL, &stack);
  if (stack.ss_flags & SS_DISABLE) stack.ss_size = usual(); /* macOS looks at it */
  return stack;
}

static bool is_enough(stack_t const *stack) { return !(stack->ss_flags & SS_DISABLE) && stack->ss_size >= least(); }

/* What this thread had before it was registered, and a stack that is ours. */
static _Thread_local stack_t before;
static _Thread_local void *own;

/* Around caml_c_thread_register. */
void obx_stack_remember(void) { before = current(); }
void obx_stack_keep(void)
{
  stack_t now = current();
  if (is_enough(&before)) sigaltstack(&before, NULL);
  else if (!is_enough(&now)) {
    now = (stack_t){.ss_size = usual()};
    now.ss_sp = own = malloc(now.ss_size);
    if (own != NULL) sigaltstack(&now, NULL);
  }
}

/* After caml_c_thread_unregister, which frees the runtime's. */
void obx_stack_restore(void)
{
  sigaltstack(&before, NULL);
  free(own);
  own = NULL;
}

#if !OCAML5
static struct sigaction rusts, ocamls;

/* OCaml 4's handler makes an overflow in OCaml code the exception, and leaves other faults to the system. They are for
   Rust's handler, which is called when the instruction faults again. */
static void on_fault(int number, siginfo_t *info, void *context)
{
  struct sigaction now;
  ocamls.sa_sigaction(number, info, context);
  sigaction(number, NULL, &now);
  if (now.sa_handler == SIG_DFL) sigaction(number, &rusts, NULL);
}

static void chain(void)
{
  struct sigaction chained;
  sigaction(SIGSEGV, NULL, &ocamls);
  if (!(ocamls.sa_flags & rusts.sa_flags & SA_SIGINFO) || ocamls.sa_sigaction == rusts.sa_sigaction) return;
  chained = ocamls;
  chained.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &chained, NULL);
}
#endif

/* Around OCaml's start-up, which ends by taking the signal stack away, and OCaml 4's handler of faults, too. */
void obx_stack_starting(void)
{
  obx_stack_remember();
#if !OCAML5
  sigaction(SIGSEGV, NULL, &rusts);
#endif
}
void obx_stack_started(void)
{
  caml_init_signals();
  if (is_enough(&before)) sigaltstack(&before, NULL);
#if !OCAML5
  chain();
#endif
}

/* SPDX-License-Identifier: MIT */
/* For WebAssembly: what signal.h there lacks. No handler can be installed. */
#ifndef WASM_SIGNAL_H
#define WASM_SIGNAL_H

#include_next <signal.h>
#include <__typedef_sigset_t.h>

#ifndef SIG_SETMASK
#define SIG_SETMASK 2
#endif
#define SA_RESTART 1
#define SA_ONSTACK 2
#define SA_SIGINFO 4
#define SA_NODEFER 8
typedef struct { int si_signo; void *si_addr; } siginfo_t;
struct sigaction {
  void (*sa_handler)(int);
  void (*sa_sigaction)(int, siginfo_t *, void *);
  int sa_flags;
  sigset_t sa_mask;
};
static inline int sigaction(int number, struct sigaction const *new, struct sigaction *old)
{
  return (void)number, (void)new, (void)old, -1;
}
static inline int sigemptyset(sigset_t *set) { return *set = 0; }
static inline int sigfillset(sigset_t *set) { return *set = 0xff, 0; }

#endif

/* SPDX-License-Identifier: MIT */
/* For WebAssembly without threads: locks that nobody else can have, threads that cannot be had. */
#ifndef WASM_PTHREAD_H
#define WASM_PTHREAD_H

#include <errno.h>
#include <sys/types.h>
#include <time.h>

/* The C library has types of these names, and nothing that uses them. */
#define pthread_t wasm_word
#define pthread_mutex_t wasm_word
#define pthread_cond_t wasm_word
#define pthread_once_t wasm_word
#define pthread_attr_t wasm_word
#define pthread_condattr_t wasm_word
typedef int wasm_word;
#define PTHREAD_MUTEX_INITIALIZER 0
#define PTHREAD_COND_INITIALIZER 0
#define PTHREAD_ONCE_INIT 0
#ifndef PTHREAD_STACK_MIN
#define PTHREAD_STACK_MIN 2048
#endif
#define PTHREAD_CREATE_DETACHED 1

static inline int pthread_mutex_init(pthread_mutex_t *m, void const *a) { return (void)a, *m = 0; }
static inline int pthread_mutex_trylock(pthread_mutex_t *m) { return *m != 0 ? EBUSY : (*m = 1, 0); }
static inline int pthread_mutex_lock(pthread_mutex_t *m)
{
  if (pthread_mutex_trylock(m) != 0) __builtin_trap(); /* it would wait for ever */
  return 0;
}
static inline int pthread_mutex_unlock(pthread_mutex_t *m) { return *m = 0; }
static inline int pthread_once(pthread_once_t *once, void (*f)(void))
{
  if (*once == 0) *once = 1, f();
  return 0;
}
static inline int pthread_create(pthread_t *t, pthread_attr_t const *a, void *(*f)(void *), void *x)
{
  (void)t, (void)a, (void)f, (void)x;
  return EAGAIN;
}
static inline int pthread_join(pthread_t t, void **result) { return (void)t, (void)result, EINVAL; }
static inline int pthread_timedjoin_np(pthread_t t, void **result, struct timespec const *until)
{
  return (void)t, (void)result, (void)until, EINVAL;
}
static inline pthread_t pthread_self(void) { return 1; }
static inline int pthread_atfork(void (*a)(void), void (*b)(void), void (*c)(void))
{
  return (void)a, (void)b, (void)c, 0;
}
static inline int pthread_attr_init(pthread_attr_t *a) { return (void)a, EAGAIN; }
static inline int pthread_attr_setstacksize(pthread_attr_t *a, unsigned long n) { return (void)a, (void)n, 0; }
static inline int pthread_attr_setdetachstate(pthread_attr_t *a, int d) { return (void)a, (void)d, 0; }
static inline int pthread_attr_destroy(pthread_attr_t *a) { return (void)a, 0; }
static inline int pthread_condattr_init(pthread_condattr_t *a) { return (void)a, 0; }
static inline int pthread_condattr_setclock(pthread_condattr_t *a, clockid_t c) { return (void)a, (void)c, 0; }
static inline int pthread_condattr_destroy(pthread_condattr_t *a) { return (void)a, 0; }
static inline int pthread_cond_init(pthread_cond_t *c, pthread_condattr_t const *a) { return (void)c, (void)a, 0; }
static inline int pthread_cond_signal(pthread_cond_t *c) { return (void)c, 0; }
static inline int pthread_cond_broadcast(pthread_cond_t *c) { return (void)c, 0; }
static inline int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) { return (void)c, (void)m, 0; }
static inline int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, struct timespec const *t)
{
  return (void)c, (void)m, (void)t, ETIMEDOUT;
}
static inline int pthread_sigmask(int how, void const *new, void *old) { return (void)how, (void)new, (void)old, 0; }

#endif

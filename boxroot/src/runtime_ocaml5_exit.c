/* SPDX-License-Identifier: MIT */
#include "runtime_ocaml5_exit.h"
#if BXR_OCAML5
#include "runtime_end.h"
#include <pthread.h>

/* With glibc, destructors registered by __cxa_thread_atexit_impl (as those of C++ and Rust are) run before those of
   POSIX keys, and the last registered first. Elsewhere a POSIX key is used, whose destructor usually runs before those
   of keys that are made later; and slow paths find out by themselves (bxr_runtime_self). */
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));
static pthread_key_t end_of_thread;
static bool have_key;
BXR_INTERNAL_DATA_HERE BXR_THREAD_LOCAL bool bxr_runtime_terminating BXR_TLS_MODEL;
static BXR_THREAD_LOCAL int terminating_id BXR_TLS_MODEL; /* its unique_id */

static void reset_caml_state(void *unused)
{
  (void)unused;
#if defined(HAS_FULL_THREAD_VARIABLES)
  caml_state = NULL;
#endif
}

static void forget_domain_at_exit(void)
{
  if (__cxa_thread_atexit_impl != NULL && __cxa_thread_atexit_impl(reset_caml_state, NULL, &__dso_handle) == 0) return;
  if (have_key) (void)pthread_setspecific(end_of_thread, &bxr_runtime_terminating);
}

/* The thread still has the lock as long as it is the same domain, and has not ended. */
static __attribute__((noinline)) void *self_if_current(void *self)
{
  return ((caml_domain_state *)self)->unique_id == terminating_id && caml_domain_is_terminating()
           ? self
           : NULL;
}

void *bxr_runtime_self(void)
{
  void *self = bxr_self();
  if (self == NULL) return NULL;
  if (BXR_UNLIKELY(bxr_runtime_end_reached())) {
    reset_caml_state(NULL);
#if BOXROOT_THREAD_UNSAFE
    bxr_only_domain = NULL;
#endif
    return NULL;
  }
  return BXR_LIKELY(!bxr_runtime_terminating) ? self : self_if_current(self);
}

void bxr_runtime_exit_prepare(void)
{
  if (!have_key) have_key = pthread_key_create(&end_of_thread, reset_caml_state) == 0;
}

void bxr_runtime_exit_begin(void)
{
  terminating_id = bxr_runtime_state()->unique_id;
  bxr_runtime_terminating = true;
  forget_domain_at_exit();
}

void bxr_runtime_exit_again(void)
{
  if (bxr_runtime_terminating) forget_domain_at_exit();
}
#endif

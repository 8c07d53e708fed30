/* SPDX-License-Identifier: MIT */
#include "setup.h"
#include "leaks.h"
#include "object.h"
#include "runtime.h"
#include "scan.h"
#include "status.h"
#include "thread.h"

/* One thread installs the hooks; others that need them at this moment wait for it. It does not run OCaml code
   meanwhile. */
static bool start_library(void)
{
  for (;;) {
    int s = bxr_load_acquire(&bxr_status_word);
    if (s == BOXROOT_RUNNING) return true;
    if (s == BXR_STATUS_STARTING) bxr_thread_yield();
    else if (bxr_cas_seq_cst(&bxr_status_word, &s, BXR_STATUS_STARTING)) {
      bxr_object_prepare();
      bxr_runtime_attach(&bxr_scan_callbacks);
      bxr_leaks_setup();
      bxr_store_release(&bxr_status_word, BOXROOT_RUNNING);
      return true;
    }
  }
}

/* Within the library no public function is called through its name where it matters which copy of the library it
   belongs to: another shared object may provide its own for it. */
static bool set_up(void)
{
#if BOXROOT_THREAD_UNSAFE
  bxr_only_domain = Caml_state;
#endif
  bxr_runtime_check_lock();
  if (bxr_runtime_self() == NULL) return bxr_status_fail(BXR_STATUS_NO_LOCK);
  return start_library();
}

bool boxroot_setup(void) { return set_up(); }

bool bxr_setup_ready(void)
{
  int s = bxr_load_acquire(&bxr_status_word);
  if (BXR_LIKELY(s == BOXROOT_RUNNING)) {
    bxr_runtime_check_lock();
    return bxr_runtime_self() != NULL || bxr_status_fail(BXR_STATUS_NO_LOCK);
  }
  return s == BOXROOT_TORE_DOWN ? bxr_status_fail(BXR_STATUS_TORE_DOWN) : set_up();
}

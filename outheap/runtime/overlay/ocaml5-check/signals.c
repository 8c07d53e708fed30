/* SPDX-License-Identifier: MIT */
/* The domain lock and pending actions. The texts of five functions are changed by signals.edits.

   Stock   collects in other threads while a thread has released the lock, and in signal handlers.
   Here    the release of the lock, and a poll that finds nothing to do, may collect. */
#define _GNU_SOURCE /* as the unit does, which would be too late */
#include "prelude.h"
#include "trap.h"
#include <errno.h>
#include <signal.h>

/* A poll that finds something runs it, and that collects; in bytecode it comes at each branch. */
#define trap_poll() ((void)(oh_trap_on && !caml_check_pending_actions() ? (oh_trap_event(OH_TRAP_POLL), 0) : 0))

#include <signals.c>

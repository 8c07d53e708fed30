/* SPDX-License-Identifier: MIT */
#include "report.h"
#include "check.h"
#include "lock.h"
#include "outheap.h"
#include "settings.h"
#include "table.h"
#include <pthread.h>
#include <sched.h>

/* What the markers read. A new one is written for each call and never changes, so they see the function with its own data; at most two have been
   obtained and not given back: the current one, and the one before, which nobody uses any more when the call returns. */
struct report { void (*sample)(void const *, void const *); void const *data; };

bool oh_report_on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct report slots[2];
static struct report *current; /* NULL: none */
static unsigned turn;
static bool swept; /* is the table as oh_ask(true) leaves it? */
static size_t met, period;
static size_t inside;                     /* threads that look at a report */
static _Thread_local size_t inside_here __attribute__((tls_model("initial-exec")));  /* of these, this one, and how deeply */

void oh_report_met(uintptr_t address)
{
  size_t n = oh_fetch_add_relaxed(&met, 1) + 1, every = oh_load_relaxed(&period);
  if (every == 0 || n % every != 0) return;
  oh_fetch_add_seq_cst(&inside, 1);
  inside_here++;
  struct report *r = oh_load_seq_cst(&current);
  if (r != NULL && r->sample != NULL) r->sample((void const *)address, r->data);
  inside_here--;
  oh_fetch_add_seq_cst(&inside, (size_t)-1);
}

size_t oh_report_count(void) { return oh_load_relaxed(&met); }

static size_t change(size_t every, void (*sample)(void const *, void const *), void const *data)
{
  bool locked = inside_here == 0;
  if (locked) pthread_mutex_lock(&lock);
  else if (pthread_mutex_trylock(&lock) != 0) return oh_report_count(); /* called by a sampler, while another thread waits for it */
  struct report *next = NULL;
  if (every != 0) {
    next = &slots[turn ^= 1];
    *next = (struct report){ sample, data };
    if (!swept) oh_store_relaxed(&met, 0);
  }
  size_t count = oh_report_count();
  if (next == NULL) oh_store_seq_cst(&oh_report_on, false);
  oh_store_relaxed(&period, every);
  oh_store_seq_cst(&current, next);
  /* No thread may still be at the one before when its slot is written again, or when the caller's data go away. */
  while (oh_load_seq_cst(&inside) != inside_here) sched_yield();
  if (next != NULL) oh_store_seq_cst(&oh_report_on, true);
  if ((next != NULL) != swept) oh_ask(swept = next != NULL);
  pthread_mutex_unlock(&lock);
  return count;
}

static void print(void const *pointer, void const *data) { (void)data, oh_say("pointer to foreign memory: %p", pointer); }
void oh_report_print(size_t every) { change(every, print, NULL); }

size_t outheap_report(size_t every, void (*sample)(void const *pointer, void const *data), void const *data)
{
  oh_start();
  return change(every, sample, data);
}

void oh_report_lock(void) { pthread_mutex_lock(&lock); }
void oh_report_unlock(void) { pthread_mutex_unlock(&lock); }
void oh_report_forked(void) { oh_store_seq_cst(&inside, inside_here); }

/* SPDX-License-Identifier: MIT */
#include "checked_root.h"
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <pthread.h>
#include <sched.h>

enum { CAPACITY = 4096, MOST_QUEUES = 256 };

/* One sender, one receiver. Sent and received are on lines of their own. */
typedef struct {
  _Alignas(64) long sent;
  _Alignas(64) long received;
  _Alignas(64) boxroot roots[CAPACITY];
} queue;

static queue queues[MOST_QUEUES];
static pthread_t thread;
static long roots_per_queue, at_once;

value exchange_setup(value number, value roots, value least)
{
  boxroot_setup();
  roots_per_queue = Long_val(roots);
  at_once = Long_val(least);
  if (Long_val(number) > MOST_QUEUES) abort();
  for (long i = 0; i < Long_val(number); i++) queues[i].sent = queues[i].received = 0;
  return Val_unit;
}

value exchange_send(value number, value v)
{
  queue *q = &queues[Long_val(number)];
  long sent = q->sent;
  if (sent - __atomic_load_n(&q->received, __ATOMIC_ACQUIRE) == CAPACITY) return Val_false;
  q->roots[sent % CAPACITY] = checked_create(v);
  __atomic_store_n(&q->sent, sent + 1, __ATOMIC_RELEASE);
  return Val_true;
}

/* Takes up to `most` roots and deletes them, if `at_once` or all that are left are there; with the lock it also reads
   them. */
static long receive(queue *q, long most, int locked)
{
  long first = q->received;
  long count = __atomic_load_n(&q->sent, __ATOMIC_ACQUIRE) - first;
  if (count < at_once && first + count < roots_per_queue) return 0;
  if (count > most) count = most;
  for (long i = first; i < first + count; i++) {
    boxroot root = q->roots[i % CAPACITY];
    if (locked && Long_val(Field(boxroot_get(root), 0)) != i) abort();
    boxroot_delete(root);
  }
  __atomic_store_n(&q->received, first + count, __ATOMIC_RELEASE);
  return count;
}

value exchange_receive(value number, value most)
{
  return Val_long(receive(&queues[Long_val(number)], Long_val(most), 1));
}

static void *receiving_thread(void *arg)
{
  queue *q = arg;
  for (long n = 0; n < roots_per_queue;) {
    long received = receive(q, 256, 0);
    if (received == 0) sched_yield();
    n += received;
  }
  return NULL;
}

value exchange_start_thread(value number)
{
  if (pthread_create(&thread, NULL, receiving_thread, &queues[Long_val(number)]) != 0) abort();
  return Val_unit;
}

value exchange_join_threads(value unit)
{
  caml_enter_blocking_section();
  pthread_join(thread, NULL);
  caml_leave_blocking_section();
  return unit;
}

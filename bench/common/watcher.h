/* SPDX-License-Identifier: MIT */
/* The stubs of watcher.ml, for a file that has defined
     observer                                 what is kept
     NO_OBSERVER                              nothing
     void prepare(long count)
     observer observe(long place, value v)
     bool look(observer o, value *v)          the value, if it is there
     void drop(observer o) */
#include "checked_root.h"
#include "timed_thread.h"
#include <stdbool.h>

static observer *observers;
static long count;

value watcher_make(value number)
{
  if (!boxroot_setup()) root_failure();
  count = Long_val(number);
  observers = malloc((size_t)(count + 1) * sizeof *observers);
  if (observers == NULL) root_failure();
  for (long i = 0; i < count; i++) observers[i] = NO_OBSERVER;
  prepare(count);
  return Val_unit;
}

value watcher_fill(value first, value values)
{
  long n = (long)Wosize_val(values);
  for (long i = 0; i < n; i++) observers[Long_val(first) + i] = observe(Long_val(first) + i, Field(values, i));
  return Val_unit;
}

value watcher_turn(value rounds, value values)
{
  long n = (long)Wosize_val(values);
  for (long r = 0; r < Long_val(rounds); r++) {
    for (long i = 0; i < n; i++) observers[i] = observe(i, Field(values, i));
    for (long i = 0; i < n; i++) {
      drop(observers[i]);
      observers[i] = NO_OBSERVER;
    }
  }
  return Val_unit;
}

value watcher_alive(value unit)
{
  (void)unit;
  long alive = 0;
  value v;
  for (long i = 0; i < count; i++)
    if (look(observers[i], &v)) {
      alive++;
      __asm__ volatile("" ::"r"(v)); /* the value is used */
    }
  return Val_long(alive);
}

value watcher_root_each(value unit)
{
  (void)unit;
  long alive = 0;
  value v;
  for (long i = 0; i < count; i++)
    if (look(observers[i], &v)) {
      boxroot_delete(checked_create(v));
      alive++;
    }
  return Val_long(alive);
}

static void delete_all(void)
{
  for (long i = 0; i < count; i++) {
    if (observers[i] != NO_OBSERVER) drop(observers[i]);
    observers[i] = NO_OBSERVER;
  }
}

value watcher_delete_all(value unit)
{
  delete_all();
  return unit;
}

value watcher_delete_by_thread(value unit)
{
  (void)unit;
  return seconds_of_thread(delete_all);
}

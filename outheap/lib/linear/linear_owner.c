/* SPDX-License-Identifier: MIT */
/* Owners: who may use a container. One thread changes an owner at a time, or several read. While its cells move,
   nothing else runs in that domain, and others wait. */
#include "linear_lock.h"
#include "linear_move.h"
#include <caml/alloc.h>
#include <sched.h>

enum { VALID, CONSUMED, IN_USE };

#define MOVING Val_long(-2)

static value *busy_of(value owner) { return (value *)owner + 1; }
static value *version_of(value owner) { return (value *)owner + 2; }

static value refused(value owner, value version)
{
  return Val_long(__atomic_load_n(version_of(owner), __ATOMIC_RELAXED) == version ? IN_USE : CONSUMED);
}

/* Goes from `from` borrows to `to`. Acquire: what the last one who changed it wrote is seen; release: see below. Where
   one domain runs, nobody comes in between. */
static value begin(value owner, value version, value from, value to)
{
  if (outheap_linear_alone()) {
    if (*busy_of(owner) != from || *version_of(owner) != version) return refused(owner, version);
    *busy_of(owner) = to;
    return Val_long(VALID);
  }
  value seen = from;
  while (!__atomic_compare_exchange_n(busy_of(owner), &seen, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    if (seen != MOVING) return refused(owner, version);
    sched_yield();
    seen = from;
  }
  if (__atomic_load_n(version_of(owner), __ATOMIC_RELAXED) == version) return Val_long(VALID);
  __atomic_fetch_sub(busy_of(owner), to - from, __ATOMIC_RELEASE);
  return Val_long(CONSUMED);
}

value outheap_linear_ml_begin_change(value owner, value version)
{
  return begin(owner, version, Val_long(0), Val_long(-1));
}

static void end(value owner)
{
  __atomic_store_n(busy_of(owner), Val_long(0), __ATOMIC_RELEASE); /* what was changed is seen by the next one */
}

static void consume(value owner)
{
  value version = __atomic_load_n(version_of(owner), __ATOMIC_RELAXED);
  __atomic_store_n(version_of(owner), version + 2, __ATOMIC_RELAXED);
  end(owner);
}

value outheap_linear_ml_kept(value owner)
{
  end(owner);
  return Val_unit;
}

value outheap_linear_ml_consume(value owner)
{
  consume(owner);
  return Val_unit;
}

value outheap_linear_ml_done(value owner, value next)
{
  consume(owner);
  return next;
}

value outheap_linear_ml_begin_reading(value owner, value version)
{
  for (;;) {
    value busy = __atomic_load_n(busy_of(owner), __ATOMIC_RELAXED);
    if (busy < Val_long(0) && busy != MOVING) return refused(owner, version);
    if (busy == MOVING) busy = Val_long(0); /* when that is over */
    value why = begin(owner, version, busy, busy + 2);
    if (why != Val_long(IN_USE)) return why; /* otherwise others began or ended */
  }
}

value outheap_linear_ml_end_reading(value owner)
{
  if (outheap_linear_alone()) *busy_of(owner) -= 2;
  else __atomic_fetch_sub(busy_of(owner), 2, __ATOMIC_RELEASE); /* what was read is not read later */
  return Val_unit;
}

/* See outheap_linear_move. A container that is in use is passed over. */
value outheap_linear_ml_move(value owner, value kind, value from)
{
  value free = Val_long(0);
  if (outheap_linear_alone()) {
    if (*busy_of(owner) != free) return Val_long(-1);
    *busy_of(owner) = MOVING;
  }
  else if (!__atomic_compare_exchange_n(busy_of(owner), &free, MOVING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return Val_long(-1);
  intnat next = outheap_linear_move((struct outheap_linear_owner *)owner, (enum outheap_linear_kind)Long_val(kind),
                                    Long_val(from));
  end(owner);
  return Val_long(next);
}

/* A block that cannot be marshalled or copied. */
value outheap_linear_ml_mark(value unit)
{
  (void)unit;
  value v = caml_alloc(1, Abstract_tag);
  Field(v, 0) = Val_unit;
  return v;
}

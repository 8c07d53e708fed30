/* SPDX-License-Identifier: MIT */
/* The primitives of the module Outheap_linear. Those for which it says [@@noalloc] there do not run the collector. A
   pool is an address that is passed as an immediate: its lowest bit is set. */
#include "linear_move.h"
#include "region_addresses.h"
#include "region_runtime.h"
#include <caml/alloc.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/signals.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

typedef struct outheap_linear_pool pool;

static pool *pool_of(value v) { return (pool *)(v & ~(value)1); }
static value immediate_of(void const *p) { return (value)p | 1; }

value outheap_linear_ml_start(value unit)
{
  static bool started;
  if (!started) outheap_linear_lock_start();
  started = true;
  return unit;
}

/* `within`: the links of free cells lie in the cells. */
value outheap_linear_ml_pool(value fields, value within)
{
  pool *p = outheap_linear_pool_new((uint32_t)Long_val(fields),
                                    Bool_val(within) ? OUTHEAP_LINEAR_WITHIN : OUTHEAP_LINEAR_BESIDE);
  if (p == NULL) caml_raise_out_of_memory();
  return immediate_of(p);
}

/* `shape`: fields * 256 + tag. Returns 0 (an immediate) if there is no memory. */
value outheap_linear_ml_new(value p, value shape)
{
  value cell = outheap_linear_cell_new(pool_of(p), (mlsize_t)Long_val(shape) >> 8, (tag_t)(Long_val(shape) & 255));
  return cell == 0 ? Val_long(0) : cell;
}

value outheap_linear_ml_free(value p, value cell)
{
  outheap_linear_cell_free(pool_of(p), cell);
  return Val_unit;
}

value outheap_linear_ml_free_chain(value p, value cell, value link)
{
  outheap_linear_cell_free_chain(pool_of(p), cell, (mlsize_t)Long_val(link));
  return Val_unit;
}

value outheap_linear_ml_free_tree(value p, value cell, value left, value right)
{
  outheap_linear_cell_free_tree(pool_of(p), cell, (mlsize_t)Long_val(left), (mlsize_t)Long_val(right));
  return Val_unit;
}

/* Reverses the chain `l` in front of `acc`. */
value outheap_linear_ml_reverse(value l, value acc)
{
  while (Is_block(l)) {
    value next = Field(l, 1);
    Field(l, 1) = acc;
    acc = l;
    l = next;
  }
  return acc;
}

/* The last cell of a chain that has one. */
value outheap_linear_ml_last(value l)
{
  while (Is_block(Field(l, 1))) l = Field(l, 1);
  return l;
}

/* The regions whose values may be in cells; OCaml code keeps them alive. Grows only. */
static struct { void const **owner; size_t count, room; } held;

static bool is_held(uintptr_t address)
{
  void const *owner = outheap_region_addresses_owner(address);
  bool found = false;
  if (owner == NULL) return false;
  outheap_linear_lock_take();
  for (size_t i = 0; i < held.count && !found; i++) found = held.owner[i] == owner;
  outheap_linear_lock_give();
  return found;
}

/* Returns false if `v` does not lead to a region. */
value outheap_linear_ml_hold(value v)
{
  bool room = true;
  void const *owner = Is_block(v) ? outheap_region_addresses_owner((uintptr_t)v) : NULL;
  if (owner == NULL) return Val_false;
  if (is_held((uintptr_t)v)) return Val_true;
  outheap_linear_lock_take();
  if (held.count == held.room) {
    void const **new = realloc(held.owner, (2 * held.room + 8) * sizeof *new);
    room = new != NULL;
    if (room) {
      held.owner = new;
      held.room = 2 * held.room + 8;
    }
  }
  if (room) held.owner[held.count++] = owner;
  outheap_linear_lock_give();
  if (!room) caml_raise_out_of_memory();
  return Val_true;
}

/* Contents of a chain, one after the other, to and from an array, of what is not in the heap: to one as long as the
   chain, and the first `count` from one. */
value outheap_linear_ml_read_out(value l, value array)
{
  for (mlsize_t i = 0; i < Wosize_val(array); i++, l = Field(l, 1)) Field(array, i) = Field(l, 0);
  return Val_unit;
}

value outheap_linear_ml_write_back(value l, value array, value count)
{
  for (intnat i = 0; i < Long_val(count); i++, l = Field(l, 1)) Field(l, 0) = Field(array, i);
  return Val_unit;
}

/* Does `v` need no collector: is it an immediate, static data, or in a region that is held? */
value outheap_linear_ml_is_plain(value v)
{
  if (!Is_block(v)) return Val_true;
  if (outheap_region_addresses_has((uintptr_t)v)) return Val_bool(is_held((uintptr_t)v));
  if (!outheap_region_marker_is_value((uintptr_t)v)) return Val_false;
  if (Tag_val(v) == Infix_tag) v -= Infix_offset_val(v); /* one of several functions in a block */
  return Val_bool(outheap_region_marker_is_static((uintptr_t)v, Hd_val(v)));
}

value outheap_linear_ml_used(value p) { return Val_long(outheap_linear_pool_used(pool_of(p))); }
value outheap_linear_ml_bytes(value p) { return Val_long(outheap_linear_pool_bytes(pool_of(p))); }
value outheap_linear_ml_thin(value p) { return Val_bool(outheap_linear_pool_thin(pool_of(p))); }
value outheap_linear_ml_trim(value p) { return Val_long(outheap_linear_pool_trim(pool_of(p))); }

value outheap_linear_ml_poison(value on)
{
  outheap_linear_poison_set(Bool_val(on));
  return Val_unit;
}

value outheap_linear_ml_check(value p)
{
  char const *wrong = outheap_linear_pool_check(pool_of(p));
  return caml_copy_string(wrong == NULL ? "" : wrong);
}

/* --- owners ----------------------------------------------------------------------------------------------------------
   The second and third field of an owner: borrows, or -1, and the version. One thread changes an owner at a time, or
   several read. While its cells move, nothing else runs in that domain, and others wait. */

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

value outheap_linear_ml_end_change(value owner, value consumed)
{
  value version = __atomic_load_n(version_of(owner), __ATOMIC_RELAXED);
  __atomic_store_n(version_of(owner), version + 2 * Long_val(consumed), __ATOMIC_RELAXED);
  __atomic_store_n(busy_of(owner), Val_long(0), __ATOMIC_RELEASE); /* what was changed is seen by the next one */
  return Val_unit;
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
  __atomic_store_n(busy_of(owner), Val_long(0), __ATOMIC_RELEASE); /* what was moved is seen by the next one */
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

/* --- locks -----------------------------------------------------------------------------------------------------------
   For tables that several threads use at once. A block of OCaml has the address of the lock, which does not move, and
   has cache lines of its own.

   `owner` is the thread that has the mutex, or 0: each thread compares it with itself alone, so relaxed loads and
   stores are enough. A process that was forked by the owner has the lock, too, and gives it: pthread_self is the same
   there, and a plain mutex does not ask who gives it (one that checks has the kernel's number of the thread, which
   changes). */

#define LINES ((size_t)128)
#define TRIES 60 /* before a thread sleeps */

typedef struct { pthread_mutex_t mutex; pthread_t owner; } linear_lock;

static linear_lock *lock_of(value lock) { return *(linear_lock **)Data_custom_val(lock); }

static void lock_end(value lock)
{
  linear_lock *l = lock_of(lock);
  if (l == NULL) return;
  (void)pthread_mutex_destroy(&l->mutex);
  free(l);
}

static struct custom_operations lock_operations = {
  "outheap_linear.lock",      lock_end,
  custom_compare_default,     custom_hash_default,
  custom_serialize_default, /* it cannot be marshalled */
  custom_deserialize_default, custom_compare_ext_default,
  custom_fixed_length_default};

value outheap_linear_ml_lock_new(value unit)
{
  (void)unit;
  value lock = caml_alloc_custom(&lock_operations, sizeof(linear_lock *), 0, 1);
  linear_lock *l = aligned_alloc(LINES, OUTHEAP_REGION_ROUND(sizeof *l, LINES));
  *(linear_lock **)Data_custom_val(lock) = NULL;
  if (l == NULL || pthread_mutex_init(&l->mutex, NULL) != 0) {
    free(l);
    caml_raise_out_of_memory();
  }
  __atomic_store_n(&l->owner, (pthread_t)0, __ATOMIC_RELAXED);
  *(linear_lock **)Data_custom_val(lock) = l;
  return lock;
}

static int try(linear_lock *l)
{
  int why = pthread_mutex_trylock(&l->mutex);
  if (why == 0) __atomic_store_n(&l->owner, pthread_self(), __ATOMIC_RELAXED);
  return why;
}

value outheap_linear_ml_lock_try(value lock) { return Val_long(try(lock_of(lock))); }

value outheap_linear_ml_lock_wait(value lock)
{
  CAMLparam1(lock);
  linear_lock *l = lock_of(lock);
  int why = EBUSY;
  if (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) == pthread_self()) CAMLreturn(Val_long(EDEADLK));
  /* Whoever has it gives it soon, as a rule; sleeping, and giving the domain away, costs more than some tries. */
  for (int i = 0; i < TRIES && why != 0; i++) {
    if (i % 10 == 9) sched_yield();
    why = try(l);
  }
  if (why != 0) {
    caml_enter_blocking_section();
    why = pthread_mutex_lock(&l->mutex);
    if (why == 0) __atomic_store_n(&l->owner, pthread_self(), __ATOMIC_RELAXED);
    caml_leave_blocking_section();
  }
  CAMLreturn(Val_long(why));
}

value outheap_linear_ml_lock_give(value lock)
{
  linear_lock *l = lock_of(lock);
  __atomic_store_n(&l->owner, (pthread_t)0, __ATOMIC_RELAXED);
  (void)pthread_mutex_unlock(&l->mutex);
  return Val_unit;
}

/* Has this thread the lock? */
value outheap_linear_ml_lock_is_ours(value lock)
{
  return Val_bool(__atomic_load_n(&lock_of(lock)->owner, __ATOMIC_RELAXED) == pthread_self());
}

/* Gives the first `count` of these. In C, so that no signal is handled in between. */
value outheap_linear_ml_locks_give(value locks, value count)
{
  for (intnat i = 0; i < Long_val(count); i++) (void)outheap_linear_ml_lock_give(Field(locks, i));
  return Val_unit;
}

/* --- cells of a program's own types ------------------------------------------------------------------------------- */

typedef struct outheap_linear_group group;

enum { DONE, NOT_A_CELL, MOVED, NO_MEMORY, NOT_A_BLOCK, OTHER_SHAPE, NOT_PLAIN /* + the field */ };

static group *group_of(value v) { return (group *)(v & ~(value)1); }

value outheap_linear_ml_group(value unit)
{
  group *g = calloc(1, sizeof *g);
  (void)unit;
  if (g == NULL) caml_raise_out_of_memory();
  return immediate_of(g);
}

/* The pool after `p`, the first one after 0; 0: there is none. */
value outheap_linear_ml_next(value g, value p)
{
  pool *next = p == Val_long(0) ? __atomic_load_n(&group_of(g)->pools, __ATOMIC_ACQUIRE) : pool_of(p)->next;
  return next == NULL ? Val_long(0) : immediate_of(next);
}

/* An extensible type, such as exn: its blocks begin with their constructor, a block of this tag. */
static bool is_extensible(value v)
{
  value f = Field(v, 0);
  return Tag_val(v) == 0 && Is_block(f) && outheap_region_marker_is_value((uintptr_t)f) && Tag_val(f) == Object_tag;
}

/* Is this a block that a polymorphic variant or an extensible type cannot have? The first has the hash of its
   constructor, a number of 31 bits, and one argument. */
value outheap_linear_ml_is_ordinary(value v)
{
  intnat most = (intnat)1 << 30;
  if (!Is_block(v) || Wosize_val(v) == 0 || Tag_val(v) >= OUTHEAP_REGION_SPECIAL || is_extensible(v)) return Val_false;
  return Val_bool(Tag_val(v) != 0 || Wosize_val(v) != 2 || Is_block(Field(v, 0)) || Long_val(Field(v, 0)) < -most ||
                  Long_val(Field(v, 0)) >= most);
}

/* Can this block be copied into a cell? Blocks of ordinary constructors, tuples and records, whose fields are plain, or
   cells of this group that are in use. */
static intnat refusal(group *g, value v)
{
  if (!Is_block(v) || !outheap_region_marker_is_value((uintptr_t)v) || Tag_val(v) >= OUTHEAP_REGION_SPECIAL ||
      Wosize_val(v) == 0 || Wosize_val(v) > OUTHEAP_LINEAR_MOST)
    return NOT_A_BLOCK;
  for (mlsize_t i = 0; i < Wosize_val(v); i++) {
    value f = Field(v, i);
    uint32_t *state;
    if (!Is_block(f)) continue;
    state = outheap_linear_cell_state(g, f);
    if (state == NULL && outheap_linear_ml_is_plain(f) == Val_false) return NOT_PLAIN + (intnat)i;
    if (state != NULL && __atomic_load_n(state, __ATOMIC_RELAXED) != OUTHEAP_LINEAR_LIVE) return MOVED;
  }
  return DONE;
}

/* From one state to another. Acquire: what the last one who changed it wrote is seen. Where one domain runs, nobody
   comes in between. */
static bool change(uint32_t *state, uint32_t from, uint32_t to)
{
  if (state != NULL && outheap_linear_alone()) {
    bool done = *state == from;
    if (done) *state = to;
    return done;
  }
  return state != NULL && __atomic_compare_exchange_n(state, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void fill(value cell, value v)
{
  for (mlsize_t i = 0; i < Wosize_val(v); i++) Field(cell, i) = Field(v, i);
}

/* Copies the block `v` into a new cell: that, or a reason as an immediate. */
value outheap_linear_ml_make(value g, value v)
{
  intnat why = refusal(group_of(g), v);
  if (why != DONE) return Val_long(why);
  pool *p = outheap_linear_group_pool(group_of(g), Wosize_val(v), Tag_val(v));
  value cell = p == NULL ? 0 : outheap_linear_cell_new(p, Wosize_val(v), Tag_val(v));
  if (cell == 0) return Val_long(NO_MEMORY);
  fill(cell, v);
  return cell;
}

/* A token is the address of a cell, in words, and the number of the taking; it is not negative. */
#define ADDRESS_BITS (OUTHEAP_REGION_ADDRESS_BITS - 3)
_Static_assert(((uint64_t)OUTHEAP_LINEAR_TAKINGS - 1) << ADDRESS_BITS >> 62 == 0, "a token is a number of OCaml's");

static value token_of(value cell, uint32_t taking)
{
  return Val_long((uintptr_t)cell >> 3 | (uintptr_t)taking << ADDRESS_BITS);
}
static value cell_of(value token)
{
  return (value)(((uintptr_t)Long_val(token) & (((uintptr_t)1 << ADDRESS_BITS) - 1)) << 3);
}
static uint32_t taken_by(value token)
{
  return OUTHEAP_LINEAR_TAKEN + (uint32_t)((uintptr_t)Long_val(token) >> ADDRESS_BITS);
}

/* Takes a cell: its token, or a reason, negative. */
value outheap_linear_ml_take(value g, value v)
{
  uint32_t *state = outheap_linear_cell_state(group_of(g), v);
  if (state == NULL) return Val_long(-NOT_A_CELL);
  value token = token_of(v, outheap_linear_cell_taking(v));
  return change(state, OUTHEAP_LINEAR_LIVE, taken_by(token)) ? token : Val_long(-MOVED);
}

/* A cell that was taken just now, and not changed, is one that can be taken again. */
value outheap_linear_ml_untake(value token)
{
  __atomic_store_n(outheap_linear_cell_state_known(cell_of(token)), OUTHEAP_LINEAR_LIVE, __ATOMIC_RELEASE);
  return Val_unit;
}

/* Copies the block `v` into a cell that was taken: that, or a reason. */
value outheap_linear_ml_put(value g, value token, value v)
{
  value cell = cell_of(token);
  uint32_t *state = outheap_linear_cell_state(group_of(g), cell); /* NULL: the token came from another process */
  if (!change(state, taken_by(token), OUTHEAP_LINEAR_BUSY)) return Val_long(MOVED);
  intnat why = refusal(group_of(g), v);
  if (why == DONE && outheap_linear_cell_pool(cell)->shape != (Wosize_val(v) << 8 | Tag_val(v))) why = OTHER_SHAPE;
  if (why == DONE) fill(cell, v);
  /* Release: who takes the cell sees what is in it. */
  __atomic_store_n(state, why == DONE ? OUTHEAP_LINEAR_LIVE : taken_by(token), __ATOMIC_RELEASE);
  return why == DONE ? cell : Val_long(why);
}

value outheap_linear_ml_drop(value g, value token)
{
  value cell = cell_of(token);
  uint32_t *state = outheap_linear_cell_state(group_of(g), cell);
  if (!change(state, taken_by(token), OUTHEAP_LINEAR_BUSY)) return Val_long(MOVED);
  outheap_linear_cell_free(outheap_linear_cell_pool(cell), cell);
  return Val_long(DONE);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

value outheap_linear_ml_texts(value unit)
{
  (void)unit;
  return immediate_of(&outheap_linear_texts);
}

/* Returns 0 (an immediate) if there is no memory. */
value outheap_linear_ml_text_new(value string)
{
  value cell = outheap_linear_text_new(string);
  return cell == 0 ? Val_long(0) : cell;
}

value outheap_linear_ml_text_free(value cell)
{
  outheap_linear_cell_free(outheap_linear_cell_pool(cell), cell);
  return Val_unit;
}

/* A copy in the heap. The cell does not move, nor is it freed meanwhile: its owner is in use. */
value outheap_linear_ml_text_copy(value cell)
{
  return caml_alloc_initialized_string(caml_string_length(cell), (char const *)cell);
}

/* --- buckets ---------------------------------------------------------------------------------------------------------
   Arrays of words outside the heap, for tables. The word in front says how many there are. */

/* The words of the first segments of all tables, and how many of them the collector's pace knows. A table that was
   large and has few elements still has its first segment, so the number of its elements does not tell the pace what a
   forgotten table holds. Invariant: paced <= used. With the common lock. */
static struct { size_t used, paced; } first_words;

enum { TOLD = 1 << 18 /* at a time */, FOR_NOTHING = 1 << 20 };

static void count_words(size_t words)
{
  size_t made = 0, most = 0;
  outheap_linear_lock_take();
  first_words.used += words;
  if (first_words.used - first_words.paced >= TOLD) {
    made = first_words.used - first_words.paced;
    most = FOR_NOTHING + first_words.used / 4;
    first_words.paced = first_words.used;
  }
  outheap_linear_lock_give();
  if (made != 0) outheap_region_pace(made, most);
}

static void discount_words(size_t words)
{
  outheap_linear_lock_take();
  first_words.used -= words;
  if (first_words.used < first_words.paced) first_words.paced = first_words.used;
  outheap_linear_lock_give();
}

static size_t *in_front(value buckets) { return (size_t *)(buckets & ~(value)1) - 1; }

/* These buckets, or none (0), with more words or fewer, elsewhere: the address as an immediate. 0: there is no memory,
   and they are what they were. `first`: of a table. */
value outheap_linear_ml_buckets_resize(value buckets, value words, value first)
{
  size_t *old = buckets == Val_long(0) ? NULL : in_front(buckets);
  size_t had = old == NULL ? 0 : *old, n = (size_t)Long_val(words);
  size_t *new = realloc(old, (n + 1) * sizeof *new);
  if (new == NULL) return Val_long(0);
  *new = n;
  for (size_t i = had; i < n; i++) ((value *)new)[1 + i] = Val_long(0); /* for the barrier, in bytecode */
  if (Bool_val(first) && n > had) count_words(n - had);
  else if (Bool_val(first)) discount_words(had - n);
  return immediate_of(new + 1);
}

value outheap_linear_ml_buckets_free(value buckets, value first)
{
  if (buckets == Val_long(0)) return Val_unit;
  if (Bool_val(first)) discount_words(*in_front(buckets));
  free(in_front(buckets));
  return Val_unit;
}

/* Moves the cells of one bucket whose hash, of which `mask` is kept, is `n`, to another. */
value outheap_linear_ml_divide(value from, value into, value mask, value n)
{
  value stay = Val_long(0), go = Val_long(0);
  value *place = (value *)(from & ~(value)1);
  for (value c = *place, next; Is_block(c); c = next) {
    value *list = (Long_val(Field(c, 3)) & Long_val(mask)) == Long_val(n) ? &go : &stay;
    next = Field(c, 2);
    Field(c, 2) = *list;
    *list = c;
  }
  *place = stay;
  *(value *)(into & ~(value)1) = go;
  return Val_unit;
}

/* The last bucket goes into the one that it was divided from, and what no bucket is in any more is freed. */
static void unite_last(struct outheap_linear_buckets *b)
{
  intnat last = Long_val(b->count) - 1, half = Long_val(b->half);
  if (last < half) half /= 2;
  value *from = outheap_linear_bucket(b, last), *into = outheap_linear_bucket(b, last - half);
  while (Is_block(*into)) into = (value *)*into + 2;
  *into = *from;
  *from = Val_long(0);
  b->count = Val_long(last);
  b->half = Val_long(half);
  value *segment = (value *)b->segments + last / OUTHEAP_LINEAR_SEGMENT;
  if (last % OUTHEAP_LINEAR_SEGMENT == 0) {
    outheap_linear_ml_buckets_free(*segment, Val_false);
    *segment = Val_long(0);
  }
  else if (last < OUTHEAP_LINEAR_SEGMENT && (last & (last - 1)) == 0) {
    value fewer = outheap_linear_ml_buckets_resize(*segment, Val_long(last), Val_true);
    if (fewer != Val_long(0)) *segment = fewer;
  }
}

/* Makes the buckets fewer, by `most` at most, while there are more than four for each of `size` elements, and more than
   `least`. */
value outheap_linear_ml_buckets_shrink(value buckets, value size, value least, value most)
{
  struct outheap_linear_buckets *b = (struct outheap_linear_buckets *)buckets;
  for (intnat i = Long_val(most); i > 0 && Long_val(b->count) > 4 * Long_val(size) && b->count > least; i--)
    unite_last(b);
  return Val_unit;
}

/* Takes a cell out of the chain of its bucket. */
value outheap_linear_ml_unchain(value bucket, value cell)
{
  value *place = (value *)(bucket & ~(value)1);
  while (*place != cell) place = (value *)*place + 2;
  *place = Field(cell, 2);
  return Val_unit;
}

/* --- slots -------------------------------------------------------------------------------------------------------- */

value outheap_linear_ml_slots(value unit)
{
  struct outheap_linear_slots *s = outheap_linear_slots_new();
  (void)unit;
  if (s == NULL) caml_raise_out_of_memory();
  return immediate_of(s);
}

value outheap_linear_ml_slot_take(value s)
{
  return Val_long(outheap_linear_slots_take((struct outheap_linear_slots *)(s & ~(value)1)));
}

value outheap_linear_ml_slot_give(value s, value number)
{
  outheap_linear_slots_give((struct outheap_linear_slots *)(s & ~(value)1), (uint32_t)Long_val(number));
  return Val_unit;
}

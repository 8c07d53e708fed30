/* SPDX-License-Identifier: MIT */
/* What the safe layer needs of the OCaml runtime beyond plain calls: macros, versions, and words of the domain's state.
   No function here raises, and none that the Rust side calls with `&Runtime` runs the collector. */
#define CAML_NAME_SPACE
#define CAML_INTERNALS
#include <caml/version.h>
#include <caml/mlvalues.h>
#include <caml/alloc.h>
#include <caml/bigarray.h>
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/gc.h>
#include <caml/major_gc.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/signals.h>
#if OCAML_VERSION >= 50000
#include <caml/fiber.h>
#else
#include <caml/compact.h>
#endif
#include <boxroot.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OCAML5 (OCAML_VERSION >= 50000)

/* Native programs have these; a bytecode program has caml_global_data, which holds the same in an order of its own. */
typedef struct { value pad; } constant;
extern constant caml_exn_Out_of_memory __attribute__((weak)), caml_exn_Failure __attribute__((weak)),
  caml_exn_Invalid_argument __attribute__((weak)), caml_exn_Stack_overflow __attribute__((weak));
extern value caml_global_data __attribute__((weak));
static inline bool native(void) { return &caml_exn_Out_of_memory != NULL; }

/* --- the lock ----------------------------------------------------------------------------------------------------- */

/* Absent in programs without systhreads. */
extern int caml_c_thread_register(void) __attribute__((weak));
extern int caml_c_thread_unregister(void) __attribute__((weak));
extern void caml_enter_blocking_section_no_pending(void);

/* As in attach_error.rs. */
enum { ATTACHED, ATTACHED_REGISTERED, NESTED, NOT_STARTED, SHUT_DOWN, NO_THREADS, NOT_REGISTERED, OUT_OF_MEMORY };

/* What this thread did last with the lock by way of the safe layer. Rust code that OCaml calls without telling, such as
   a finaliser, finds the state of the frames above it. */
enum { UNKNOWN, HELD, RELEASED };
static _Thread_local int state;
static atomic_bool closed;          /* the door: no attach any more */
static atomic_bool threads_running; /* systhreads are initialised */

/* Whether it is certain that this thread holds the lock. (With OCaml 4 it may hold it otherwise: see
   runtime_ocaml4_token.h of the C library.) */
bool obx_lock_held(void) { return bxr_self() != NULL; }

/* Whether OCaml was started, as far as this thread can tell. */
bool obx_running(void)
{
#if OCAML5
  return Caml_state_opt != NULL || boxroot_status() != BOXROOT_NOT_SETUP;
#else
  return Caml_state != NULL;
#endif
}

void obx_close(void) { atomic_store(&closed, true); }

/* With the lock. The Thread module registers this name when it is initialised. */
static void look_for_threads(void)
{
  if (!atomic_load_explicit(&threads_running, memory_order_relaxed) && caml_c_thread_register != NULL &&
      caml_named_value("Thread.at_shutdown") != NULL)
    atomic_store(&threads_running, true);
}

#if !OCAML5
#include <caml/roots.h>
/* OCaml 4's systhreads scan the local roots of a thread that waits only if native OCaml code is active on it. So those
   of other threads are scanned by us: a thread is in this list while it does not hold the lock. The list belongs to who
   holds the lock. */
typedef struct parked {
  struct parked *next, **before; /* NULL: not in the list */
  struct caml__roots_block *roots;
} parked;
static _Thread_local parked me;
static parked *all_parked;
static void (*earlier_scan)(scanning_action);

static void scan_parked(scanning_action action)
{
  if (earlier_scan != NULL) earlier_scan(action);
  for (parked *p = all_parked; p != NULL; p = p->next)
    for (struct caml__roots_block *block = p->roots; block != NULL; block = block->next)
      for (intnat i = 0; i < block->ntables; i++)
        for (intnat j = 0; j < block->nitems; j++) action(block->tables[i][j], &block->tables[i][j]);
}

static void park(void)
{
  static bool hooked;
  if (!native() || Caml_state->local_roots == NULL || Caml_state->bottom_of_stack != NULL) return;
  if (!hooked) {
    hooked = true;
    earlier_scan = caml_scan_roots_hook;
    caml_scan_roots_hook = scan_parked;
  }
  me.roots = Caml_state->local_roots;
  me.before = &all_parked;
  me.next = all_parked;
  if (me.next != NULL) me.next->before = &me.next;
  all_parked = &me;
}

static void unpark(void)
{
  if (me.before == NULL) return;
  *me.before = me.next;
  if (me.next != NULL) me.next->before = me.before;
  me.before = NULL;
}
#else
static void park(void) {}
static void unpark(void) {}
#endif

static void give_up_lock(void)
{
  park();
  caml_enter_blocking_section_no_pending();
}

static void take_lock_back(void)
{
  caml_leave_blocking_section();
  unpark();
}

/* For a thread that holds the lock, in a function that OCaml calls: its domain's record, or NULL when memory is short.
   *before goes to obx_leave. */
boxroot_domain obx_enter(int *before)
{
  *before = state;
  state = HELD;
  /* So that threads can attach in a program whose calls never release the lock. */
  look_for_threads();
  return boxroot_domain_here();
}

void obx_leave(int before) { state = before; }

/* Whether looking for threads again would find nothing new. */
bool obx_threads_settled(void) { return caml_c_thread_register == NULL || atomic_load(&threads_running); }

/* Gives the lock up. The result goes to obx_reacquire. */
int obx_release(void)
{
  int before = state;
  look_for_threads();
  state = RELEASED;
  give_up_lock();
  return before;
}

void obx_reacquire(int before)
{
  take_lock_back();
  state = before;
}

void obx_detach(int how)
{
  give_up_lock();
  state = how == ATTACHED ? RELEASED : UNKNOWN;
  if (how == ATTACHED_REGISTERED) caml_c_thread_unregister();
}

/* Takes the lock; *domain is then set. The result goes to obx_detach if it is one of the first two. */
int obx_attach(boxroot_domain *domain)
{
  int how = ATTACHED;
  if (state == HELD || obx_lock_held()) return NESTED;
  switch (boxroot_status()) {
  case BOXROOT_RUNNING: break;
  case BOXROOT_TORE_DOWN: return SHUT_DOWN;
  default: return NOT_STARTED;
  }
  if (atomic_load(&closed)) return SHUT_DOWN;
  if (state != RELEASED) {
    if (!atomic_load(&threads_running)) return NO_THREADS;
    /* 0 for a thread that OCaml knows already, too: it holds the lock, or it is in a blocking section that somebody
       else has opened, and how to close that one is not known. */
    if (!caml_c_thread_register()) return NOT_REGISTERED;
    how = ATTACHED_REGISTERED;
  }
  take_lock_back();
  state = HELD;
  *domain = atomic_load(&closed) ? NULL : boxroot_domain_here();
  if (*domain != NULL) return how;
  obx_detach(how);
  return atomic_load(&closed) ? SHUT_DOWN : OUT_OF_MEMORY;
}

/* After OCaml's start-up, with the lock: sets the roots up. Then obx_release gives the lock up for the first time. */
bool obx_started(void)
{
  state = HELD;
  return boxroot_setup();
}

/* --- collections -------------------------------------------------------------------------------------------------- */

/* Those that return a value return an encoded exception, or unit. */

value obx_poll(void) { return caml_process_pending_actions_exn(); }

void obx_minor(void) { caml_minor_collection(); }

static void finish_cycle(bool compact)
{
  caml_minor_collection();
#if OCAML_VERSION >= 50200
  caml_finish_major_cycle(compact);
#else
  caml_finish_major_cycle();
#if !OCAML5
  if (compact) caml_compact_heap(-1);
#endif
  (void)compact;
#endif
}

/* Finalisers run after each cycle; what they let go may need up to two more. */
static value full(bool compact)
{
  for (int i = 0; i < 3; i++) {
    finish_cycle(compact && i == 2);
    value result = caml_process_pending_actions_exn();
    if (Is_exception_result(result)) return result;
  }
  return Val_unit;
}

value obx_full_major(void) { return full(false); }
value obx_compact(void) { return full(true); }

/* As kind.rs reads headers. */
_Static_assert(Wosize_hd(UINTPTR_MAX) == UINTPTR_MAX >> 10 && Tag_hd(UINTPTR_MAX) == 255,
               "an OCaml without reserved bits in headers");

/* --- allocation --------------------------------------------------------------------------------------------------- */

/* Words in the minor heap, in pieces of PIECE words (the last may be smaller): each is one block for the runtime until
   blocks are carved from it. Memprof may have noted such a block, so no carved block reaches over the border of a
   piece. */
typedef struct {
  uintptr_t *at, *piece_end, *end;
  uintptr_t color;
} obx_reserve_result;
enum { PIECE = Max_young_wosize + 1 };

/* At most three quarters of the minor heap: the rest is for the program, and a collection in between is no loss. */
void obx_reserve(size_t words, obx_reserve_result *out)
{
  size_t limit = Caml_state->minor_heap_wsz / 4 * 3;
  uintptr_t *low, *high;
  if (words > limit) words = limit;
  if (words < 2) words = 2;
  if (words <= PIECE) {
    low = (uintptr_t *)Hp_val(caml_alloc_small(words - 1, Abstract_tag));
    high = low + words;
  } else {
    /* The minor heap grows downwards. A collection moves the place: then what was reserved before is lost, and the rest
       is taken from the emptied heap. */
    size_t pieces = (words + PIECE - 1) / PIECE, tries = 2 * pieces;
    low = high = NULL;
    while (tries-- > 0 && (size_t)(high - low) < pieces * PIECE) {
      uintptr_t *piece = (uintptr_t *)Hp_val(caml_alloc_small(PIECE - 1, Abstract_tag));
      if (piece + PIECE != low) high = piece + PIECE;
      low = piece;
    }
  }
  out->at = low;
  out->end = high;
  out->piece_end = (size_t)(high - low) < PIECE ? high : low + PIECE;
  out->color = Color_hd(*(header_t *)low);
}

#if BOXROOT_DEBUG
/* The checked build can be told to refuse a block in the major heap: so many are allocated on this thread first. */
static _Thread_local long until_refused = -1;
void obx_refuse_after(long blocks) { until_refused = blocks; }
static bool refused(void) { return until_refused >= 0 && until_refused-- == 0; }
#else
static inline bool refused(void) { return false; }
#endif

/* A block in the major heap, or 0. The fields of one that is scanned hold units. Never runs the collector. */
value obx_alloc_major(size_t size, unsigned tag)
{
  value block;
  if (size == 0 || size > Max_wosize || refused()) return 0;
#if OCAML5
  block = caml_alloc_shr_noexc(size, tag);
#else
  block = caml_alloc_shr_no_track_noexc(size, tag);
#endif
  if (block != 0 && tag < No_scan_tag)
    for (size_t i = 0; i < size; i++) Field(block, i) = Val_unit;
  return block;
}

/* A string of `length` unspecified bytes, 0 when the heap refuses. May run the collector. */
value obx_alloc_string(size_t length)
{
  size_t size = length / sizeof(value) + 1;
  value s;
  if (size <= Max_young_wosize) s = caml_alloc_small(size, String_tag);
  else if ((s = obx_alloc_major(size, String_tag)) == 0) return 0;
  else s = caml_check_urgent_gc(s);
  Field(s, size - 1) = 0;
  ((unsigned char *)s)[size * sizeof(value) - 1] = (unsigned char)(size * sizeof(value) - 1 - length);
  return s;
}

value obx_alloc_float(double x)
{
  value v = caml_alloc_small(sizeof(double) / sizeof(value), Double_tag);
  memcpy((void *)v, &x, sizeof x);
  return v;
}

/* How much outside memory a block of the minor heap may be charged with; a larger one is allocated in the major heap,
   by a function that may raise. */
extern uintnat volatile caml_custom_minor_max_bsz;

/* A custom block of `size` bytes, at most 2000, to which `bytes` of outside memory belong. The data are not
   initialised. May run the collector, before. */
value obx_alloc_custom(struct custom_operations const *ops, size_t size, size_t bytes)
{
#if OCAML_VERSION >= 50300
  uintnat most = caml_custom_minor_max_bsz;
  value v = caml_alloc_custom_mem(ops, size, bytes < most ? bytes : most);
  if (bytes > most) caml_adjust_gc_speed(bytes - most, caml_custom_get_max_major());
  return v;
#else
  return caml_alloc_custom_mem((void *)ops, size, bytes);
#endif
}

/* False when memory is short. The operations are never freed. */
bool obx_register_operations(struct custom_operations const *ops)
{
  /* The runtime's function raises when this much cannot be had. */
  void *probe = malloc(256);
  free(probe);
  if (probe == NULL) return false;
  caml_register_custom_operations((void *)ops);
  return true;
}

/* --- bigarrays ---------------------------------------------------------------------------------------------------- */

/* As in bigarray.rs. */
_Static_assert(sizeof(struct caml_ba_array) == 4 * sizeof(value) &&
                 offsetof(struct caml_ba_array, num_dims) == sizeof(value) &&
                 offsetof(struct caml_ba_array, flags) == 2 * sizeof(value) && CAML_BA_NATIVE_INT == 9 &&
                 CAML_BA_CHAR == 12 && CAML_BA_KIND_MASK == 0xFF && CAML_BA_FORTRAN_LAYOUT == 0x100,
               "the layout of bigarrays");

bool obx_bigarray_kind_exists(uint8_t kind) { return kind <= CAML_BA_CHAR + (OCAML_VERSION >= 50200); }

/* The memory of a bigarray that Rust allocated, from the beginning, so that all bigarrays over it share it. */
typedef struct {
  struct caml_ba_proxy proxy;
  void (*free)(void *, size_t);
  size_t capacity;
} rust_memory;

#if OCAML5
static void count_up(struct caml_ba_proxy *proxy) { atomic_fetch_add(&proxy->refcount, 1); }
static bool count_down(struct caml_ba_proxy *proxy) { return atomic_fetch_sub(&proxy->refcount, 1) == 1; }
#else
static void count_up(struct caml_ba_proxy *proxy) { proxy->refcount++; }
static bool count_down(struct caml_ba_proxy *proxy) { return --proxy->refcount == 0; }
#endif

static void finalize_over_rust(value v)
{
  rust_memory *memory = (rust_memory *)Caml_ba_array_val(v)->proxy;
  if (!count_down(&memory->proxy)) return;
  memory->free(memory->proxy.data, memory->capacity);
  free(memory);
}

/* Those of all bigarrays, but for the finaliser. The runtime hands them on to bigarrays over parts. */
static struct custom_operations const over_rust = {"_bigarr02",        finalize_over_rust,   caml_ba_compare,
                                                   caml_ba_hash,       caml_ba_serialize,    caml_ba_deserialize,
                                                   NULL,               NULL};

static value new_bigarray(struct custom_operations const *ops, intnat flags, intnat count, intnat const *dims,
                          void *data, struct caml_ba_proxy *proxy, size_t bytes)
{
  value v = obx_alloc_custom(ops, sizeof(struct caml_ba_array) + count * sizeof(intnat), bytes);
  struct caml_ba_array *b = Caml_ba_array_val(v);
  b->data = data;
  b->num_dims = count;
  b->flags = flags;
  b->proxy = proxy;
  memcpy(b->dim, dims, count * sizeof(intnat));
  return v;
}

/* A bigarray over `data`, which take up `bytes`; free(data, capacity) is called when the last one over them is dead. 0
   when memory is short. */
value obx_bigarray_over(intnat flags, intnat count, intnat const *dims, void *data, size_t capacity, size_t bytes,
                        void (*free_data)(void *, size_t))
{
  rust_memory *memory = malloc(sizeof *memory);
  if (memory == NULL) return 0;
  *memory = (rust_memory){.proxy = {.refcount = 1, .data = data}, .free = free_data, .capacity = capacity};
  return new_bigarray(&over_rust, flags | CAML_BA_MANAGED, count, dims, data, &memory->proxy, bytes);
}

/* The proxy by which bigarrays share the memory of this one, NULL in *proxy when the runtime does not manage it. False
   when memory is short. */
static bool find_proxy(struct caml_ba_array *b, struct caml_ba_proxy **proxy)
{
  struct caml_ba_proxy *new;
  *proxy = b->proxy;
  if (*proxy != NULL || (b->flags & CAML_BA_MANAGED_MASK) == CAML_BA_EXTERNAL) return true;
  new = malloc(sizeof *new);
  if (new == NULL) return false;
  *new = (struct caml_ba_proxy){.refcount = 1, .data = b->data};
  if (b->flags & CAML_BA_MAPPED_FILE) new->size = caml_ba_byte_size(b);
  /* Another domain may do the same. */
  if (!__atomic_compare_exchange_n(&b->proxy, proxy, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) free(new);
  else *proxy = new;
  return true;
}

/* A bigarray over a part of another one. 0 when memory is short. */
value obx_bigarray_part(value of, intnat count, intnat const *dims, void *data)
{
  struct caml_ba_array *whole = Caml_ba_array_val(of);
  struct custom_operations const *ops = Custom_ops_val(of);
  intnat flags = whole->flags & (CAML_BA_KIND_MASK | CAML_BA_LAYOUT_MASK | CAML_BA_MANAGED_MASK);
  struct caml_ba_proxy *proxy;
  if (!find_proxy(whole, &proxy)) return 0;
  if (proxy != NULL) count_up(proxy); /* before the whole can be collected */
#if OCAML_VERSION >= 50300
  flags |= CAML_BA_SUBARRAY;
#endif
  return new_bigarray(ops, flags, count, dims, data, proxy, 0);
}

value obx_atom(unsigned tag) { return Atom(tag); }

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* One of the runtime's own exceptions, or the constructor of one. */
value obx_builtin(int which)
{
  if (!native()) return Field(caml_global_data, which);
  switch (which) {
  case FAILURE_EXN: return (value)&caml_exn_Failure;
  case INVALID_EXN: return (value)&caml_exn_Invalid_argument;
  case STACK_OVERFLOW_EXN: return (value)&caml_exn_Stack_overflow;
  default: return (value)&caml_exn_Out_of_memory;
  }
}

/* Jumps to OCaml's handler. The only function here that raises: for a function that OCaml has called, as its last act,
   with nothing to drop in its frame. */
_Noreturn void obx_raise(value exn) { caml_raise(exn); }

#if OCAML5
/* The call itself would raise when OCaml's stack has no room, and jump over the frames of its caller. (The bytecode
   interpreter keeps the room that a call takes.) */
static inline bool no_room(void)
{
  struct stack_info *stack = Caml_state->current_stack;
  uintnat needed = Stack_threshold_words + 8;
  return (uintnat)((value *)stack->sp - Stack_base(stack)) < needed && native() && !caml_try_realloc_stack(needed);
}
#define STACK_OVERFLOW Make_exception_result(obx_builtin(STACK_OVERFLOW_EXN))
#else
#define no_room() false
#define STACK_OVERFLOW Val_unit
#endif

value obx_call1(value closure, value a) { return no_room() ? STACK_OVERFLOW : caml_callback_exn(closure, a); }
value obx_call2(value closure, value a, value b)
{
  return no_room() ? STACK_OVERFLOW : caml_callback2_exn(closure, a, b);
}
value obx_call3(value closure, value a, value b, value c)
{
  return no_room() ? STACK_OVERFLOW : caml_callback3_exn(closure, a, b, c);
}
value obx_call_more(value closure, size_t count, value *arguments)
{
  return no_room() ? STACK_OVERFLOW : caml_callbackN_exn(closure, (int)count, arguments);
}

/* The value registered under a name (caml_named_value reads it under a lock of its own), or 0. */
value obx_named(char const *name)
{
  value const *place = caml_named_value(name);
  return place == NULL ? 0 : *place;
}

/* --- local roots -------------------------------------------------------------------------------------------------- */

/* As in frame.rs. */
_Static_assert(sizeof(struct caml__roots_block) == 8 * sizeof(value) &&
                 offsetof(struct caml__roots_block, ntables) == sizeof(value) &&
                 offsetof(struct caml__roots_block, nitems) == 2 * sizeof(value) &&
                 offsetof(struct caml__roots_block, tables) == 3 * sizeof(value),
               "the layout of local roots");

/* Where the list of local roots of the thread that runs begins; the same word as long as this thread lives. */
#if OCAML5
/* Where the list of local roots is in a domain's state. */
size_t const obx_local_roots = offsetof(caml_domain_state, local_roots);
#else
struct caml__roots_block **obx_local_roots(void) { return &Caml_state->local_roots; }
#endif

/* --- values ------------------------------------------------------------------------------------------------------- */

void obx_modify(value *field, value v) { caml_modify(field, v); }
void obx_initialize(value *field, value v) { caml_initialize(field, v); }

#if OCAML5
extern value caml_atomic_load(value), caml_atomic_exchange(value, value), caml_atomic_cas(value, value, value),
  caml_atomic_fetch_add(value, value);
value obx_atomic_get(value *field) { return caml_atomic_load((value)field); }
value obx_atomic_exchange(value *field, value v) { return caml_atomic_exchange((value)field, v); }
bool obx_atomic_cas(value *field, value old, value v) { return caml_atomic_cas((value)field, old, v) == Val_true; }
value obx_atomic_add(value *field, value n) { return caml_atomic_fetch_add((value)field, n); }
#else
/* OCaml 4's atomics are plain fields: nothing else runs as long as the lock is held. */
value obx_atomic_get(value *field) { return *field; }
value obx_atomic_exchange(value *field, value v)
{
  value old = *field;
  caml_modify(field, v);
  return old;
}
bool obx_atomic_cas(value *field, value old, value v)
{
  if (*field != old) return false;
  caml_modify(field, v);
  return true;
}
value obx_atomic_add(value *field, value n)
{
  value old = *field;
  *field = (value)((uintptr_t)old + (uintptr_t)n - 1);
  return old;
}
#endif

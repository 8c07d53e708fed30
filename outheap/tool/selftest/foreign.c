/* SPDX-License-Identifier: MIT */
/* Patterns that are no values: pointers to memory that is not OCaml's, and other words with a clear low bit. A pattern
   has a number in a table that only grows; OCaml code knows which number it put where, and asks whether the pattern is
   still the same.

   Memory that can be read is full of words that look like headers of every tag and colour, and must stay as it is: the
   runtime has no business there. Memory that cannot be read stops the program when the runtime looks. All of it is held
   until the end, so that no heap can come to lie there; memory that is given back (kinds from FREED on) is for runtimes
   that were told to reserve address space. */
#define _GNU_SOURCE
#define CAML_INTERNALS
#include <outheap.h>
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/printexc.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum outheap_kind outheap_classify(void const *address) __attribute__((weak));

/* From OCaml 5.5 on marking begins in a minor collection, some time after the cycle: in the next one, after this. */
extern uintnat mark_phase_requested __asm__("caml_gc_mark_phase_requested") __attribute__((weak));
value torture_begin_marking(value unit)
{
  if (&mark_phase_requested != NULL)
    __atomic_store_n(&mark_phase_requested, 1, __ATOMIC_RELEASE);
  return unit;
}

static void die(char const *what)
{
  fprintf(stderr, "torture: %s: %s\n", what, strerror(errno));
  exit(2);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

enum { REGION = 1 << 20, GUARD = 1 << 16, LIVE = 64, PATTERNS = 1 << 16 };

static char *prot_none;         /* REGION bytes that cannot be read */
static uintptr_t *headers;      /* REGION bytes of words like headers, between two guards that cannot be read */
static uintptr_t *copy;         /* what `headers` must hold */
static uintptr_t *live[LIVE];   /* blocks of malloc, the first of its sizes in `live_size` words */
static size_t live_size[LIVE];
static char static_data[4096] = {1}, static_zeroes[4096];
static char const static_constant[4096] = {2};
static uintptr_t on_stack; /* an address in the main stack */
static _Thread_local char of_thread[64];

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void)
{
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return random_state * 2685821657736338717u;
}

/* A word like a header: a small block of any tag, in any colour, now and then a very large one. */
static uintptr_t like_header(void)
{
  static unsigned char const tags[] = {0, 1, 200, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255};
  uint64_t r = next_random(), words = (r >> 8) % 64 == 0 ? (r >> 20) % 100000 : (r >> 20) % 6;
  return words << 10 | (r >> 4 & 3) << 8 | tags[(r >> 40) % sizeof tags];
}

static void *map(size_t bytes, int protection)
{
  void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) die("mmap");
  return p;
}

static void prepare(void)
{
  prot_none = map(REGION, PROT_NONE);
  char *guarded = map(REGION + 2 * GUARD, PROT_NONE);
  headers = (uintptr_t *)(guarded + GUARD);
  copy = map(REGION, PROT_READ | PROT_WRITE);
  if (mprotect(headers, REGION, PROT_READ | PROT_WRITE)) die("mprotect");
  for (size_t i = 0; i < REGION / sizeof *headers; i++) headers[i] = copy[i] = like_header();
  for (int i = 0; i < LIVE; i++) {
    live_size[i] = 2 + next_random() % (i % 8 ? 60 : 60000);
    live[i] = malloc(live_size[i] * sizeof(uintptr_t));
    if (!live[i]) die("malloc");
    for (size_t k = 0; k < live_size[i]; k++) live[i][k] = 250 | 1 << 10; /* Forward to something */
  }
  on_stack = (uintptr_t)__builtin_frame_address(0);
}

/* For processes that may not map anything once `main` runs. */
__attribute__((constructor)) static void begin(void)
{
  if (getenv("TORTURE_EARLY") != NULL) prepare();
}

/* Is the memory that can be written still as it was? */
value torture_intact(value unit)
{
  if (memcmp(headers, copy, REGION)) return Val_false;
  for (int i = 0; i < LIVE; i++)
    for (size_t k = 0; k < live_size[i]; k++)
      if (live[i][k] != (250 | 1 << 10)) return Val_false;
  for (size_t i = 0; i < sizeof static_zeroes; i++)
    if (static_zeroes[i] || (i && static_data[i])) return Val_false;
  return Val_true;
}

/* --- patterns ----------------------------------------------------------------------------------------------------- */

static uintptr_t patterns[PATTERNS];
static _Atomic int number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* In the order of Foreign.kind. */
enum kind {
  NULL_POINTER,
  LOW,
  UNREADABLE,
  READABLE,
  UNALIGNED,
  MALLOC,
  C_CODE,
  OCAML_CODE,
  STATIC,
  STACK,
  EDGE,
  WILD,
  NON_CANONICAL,
  ALIAS,
  FREED,
  UNMAPPED,
  NEAR_MAPS,
  USER_WILD
};

/* Does the pattern belong to OCaml? Then it is none of ours. Without the variant nobody can say. */
static int is_ours(uintptr_t p)
{
  if (!outheap_classify) return 0;
  enum outheap_kind k = outheap_classify((void *)p);
  return k == OUTHEAP_MAJOR || k == OUTHEAP_YOUNG || k == OUTHEAP_VALUES;
}

static uintptr_t near_a_map(uint64_t r)
{
  FILE *f = fopen("/proc/self/maps", "r");
  uintptr_t begin, end, chosen = 0;
  unsigned long seen = 0;
  char line[1024];
  if (!f) return 0;
  while (fgets(line, sizeof line, f))
    if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && (r >> 8) % ++seen == 0)
      switch (r & 3) {
      case 0: chosen = begin - 8; break;
      case 1: chosen = end; break;
      case 2: chosen = end + 8; break;
      case 3: chosen = begin - 2; break;
      }
  fclose(f);
  return chosen;
}

static uintptr_t make(enum kind kind, value block)
{
  uint64_t r = next_random(), word = r % (REGION / 8);
  static void *const code[] = {(void *)make, (void *)malloc, (void *)caml_callback, (void *)caml_alloc, (void *)write};
  static char *const places[] = {static_data, static_zeroes, (char *)static_constant};
  switch (kind) {
  case NULL_POINTER: return 0;
  case LOW: return r % 65536;
  case UNREADABLE: return (uintptr_t)prot_none + word * 8;
  case READABLE: return (uintptr_t)(headers + word);
  case UNALIGNED: return (uintptr_t)(r >> 40 & 1 ? prot_none : (char *)headers) + 8 + r % (REGION - 8);
  case MALLOC: return (uintptr_t)(live[r % LIVE] + (r >> 40) % 2);
  case C_CODE: return (uintptr_t)code[r % 5] + (r >> 32) % 8;
  case OCAML_CODE: return (uintptr_t)Code_val(block);
  case STATIC:
    switch (r % 5) {
    case 0: return (uintptr_t)&environ;
    case 1: return (uintptr_t)stdout;
    default: return (uintptr_t)places[r % 5 - 2] + 64 + (r >> 16) % 2048 / 8 * 8;
    }
  case STACK: return r % 8 ? on_stack - 4096 + (r >> 8) % 4352 : (uintptr_t)of_thread;
  case EDGE: { /* the first and last words, and those next to them, of memory that we hold on both sides */
    uintptr_t end = r & 1 ? (uintptr_t)headers : (uintptr_t)headers + REGION;
    return end + ((r >> 8) % 5 - 2) * 8;
  }
  case WILD: /* any pattern, but outside of the user's half of the address space, where heap could come to be */
    return r >> 47 ? r : r | (uintptr_t)1 << 63;
  case NON_CANONICAL: return ((uintptr_t)prot_none + word * 8) | (uintptr_t)(1 + (r >> 32) % 0xfffe) << 48;
  case ALIAS: /* a block's address, but for the high bits */
    return (uintptr_t)block ^ (uintptr_t)1 << (47 + (r >> 8) % 17);
  case FREED: {
    size_t bytes = (r & 7 ? r >> 8 & 2047 : r >> 8 & ((1 << 22) - 1)) + 16;
    uintptr_t *p = malloc(bytes);
    if (!p) die("malloc");
    for (size_t i = 0; i < bytes / sizeof *p; i++) p[i] = like_header();
    uintptr_t v = (uintptr_t)(p + 1);
    __asm__ volatile("" : : "r"(p) : "memory");
    free(p);
    return v;
  }
  case UNMAPPED: {
    size_t bytes = (size_t)4096 << (r >> 8) % 14;
    char *p = map(bytes, PROT_READ | PROT_WRITE);
    munmap(p, bytes);
    return (uintptr_t)p + (r >> 16) % bytes / 8 * 8;
  }
  case NEAR_MAPS: return near_a_map(r);
  case USER_WILD: return r >> 17;
  }
  return 0;
}

/* A new pattern of a kind; its number. `block`: a closure, or a block anywhere, for the kinds that need one. */
value torture_make(value kind, value block)
{
  pthread_mutex_lock(&lock);
  int n = atomic_load(&number);
  uintptr_t p;
  for (int tries = 0;; tries++) {
    p = make(Int_val(kind), block) & ~(uintptr_t)1;
    if (!is_ours(p)) break;
    if (tries == 100) { /* such as code that lies in one piece with OCaml's */
      pthread_mutex_unlock(&lock);
      fprintf(stderr, "torture: %p, of kind %d, is said to be OCaml's\n", (void *)p, Int_val(kind));
      caml_failwith("outheap_classify");
    }
  }
  if (n == PATTERNS) n = (int)(next_random() % PATTERNS); /* enough */
  else {
    patterns[n] = p;
    atomic_store(&number, n + 1);
  }
  pthread_mutex_unlock(&lock);
  return Val_int(n);
}

value torture_seed(value seed)
{
  random_state = 88172645463325252u ^ (uint64_t)Long_val(seed) << 1;
  for (int i = 0; i < 10; i++) next_random();
  if (!headers) prepare();
  return Val_unit;
}

value torture_number(value unit) { return Val_int(atomic_load(&number)); }
value torture_foreign(value n) { return (value)patterns[Int_val(n)]; }
value torture_same(value v, value n) { return Val_bool((uintptr_t)v == patterns[Int_val(n)]); }
value torture_unaligned(value n) { return Val_bool(patterns[Int_val(n)] & 7); }
value torture_show(value n)
{
  char text[32];
  snprintf(text, sizeof text, "0x%lx", (unsigned long)patterns[Int_val(n)]);
  return caml_copy_string(text);
}
value torture_has_variant(value unit) { return Val_bool(outheap_classify != NULL); }

/* The number of a pattern that has come to be OCaml's, or -1. */
value torture_taken(value unit)
{
  for (int i = 0, n = atomic_load(&number); i < n; i++)
    if (is_ours(patterns[i])) return Val_int(i);
  return Val_int(-1);
}

/* --- what only C can do ------------------------------------------------------------------------------------------- */

/* Roots: cells outside the heap, generational or not. */
typedef struct { value v; int generational; } root;

value torture_root(value generational, value v)
{
  root *r = malloc(sizeof *r);
  if (!r) die("malloc");
  *r = (root){v, Bool_val(generational)};
  if (r->generational) caml_register_generational_global_root(&r->v);
  else caml_register_global_root(&r->v);
  return caml_copy_nativeint((intnat)r);
}
static root *root_of(value v) { return *(root **)Data_custom_val(v); }
value torture_root_get(value r) { return root_of(r)->v; }
value torture_root_set(value r, value v)
{
  if (root_of(r)->generational) caml_modify_generational_global_root(&root_of(r)->v, v);
  else root_of(r)->v = v;
  return Val_unit;
}
value torture_root_free(value r)
{
  if (root_of(r)->generational) caml_remove_generational_global_root(&root_of(r)->v);
  else caml_remove_global_root(&root_of(r)->v);
  free(root_of(r));
  return Val_unit;
}

/* Local roots, and arguments, while OCaml code runs. */
value torture_locals(value f, value a, value b, value n)
{
  CAMLparam4(f, a, b, n);
  CAMLlocal3(x, y, z);
  CAMLlocalN(many, 10);
  x = b, y = a, z = f;
  for (int i = 0; i < 10; i++) many[i] = i & 1 ? a : b;
  caml_callback(f, n);
  int ok = x == b && y == a && z == f;
  for (int i = 0; i < 10; i++) ok &= many[i] == (i & 1 ? a : b);
  CAMLreturn(Val_bool(ok));
}

/* caml_alloc, caml_alloc_shr with caml_initialize, caml_alloc_small. */
value torture_tuple(value how, value a, value b)
{
  CAMLparam2(a, b);
  CAMLlocal1(t);
  switch (Int_val(how)) {
  case 0: t = caml_alloc(2, 0); Store_field(t, 0, a); Store_field(t, 1, b); break;
  case 1: t = caml_alloc_small(2, 0); Field(t, 0) = a; Field(t, 1) = b; break;
  case 2: t = caml_alloc_shr(2, 0); caml_initialize(&Field(t, 0), a); caml_initialize(&Field(t, 1), b); break;
  default: t = caml_alloc_tuple(2); caml_modify(&Field(t, 0), a); caml_modify(&Field(t, 1), b); break;
  }
  CAMLreturn(t);
}

/* Custom and abstract blocks: what is in them is not the collector's business. */
static int compare_custom(value a, value b)
{
  uintptr_t x = *(uintptr_t *)Data_custom_val(a), y = *(uintptr_t *)Data_custom_val(b);
  return (x > y) - (x < y);
}
static intnat hash_custom(value a) { return *(intnat *)Data_custom_val(a) >> 3; }
static struct custom_operations operations = {"torture.custom", custom_finalize_default, compare_custom, hash_custom,
  custom_serialize_default, custom_deserialize_default, custom_compare_ext_default, custom_fixed_length_default};
value torture_custom(value v, value abstract)
{
  CAMLparam1(v);
  CAMLlocal1(c);
  if (Bool_val(abstract)) {
    c = caml_alloc(2, Abstract_tag);
    Field(c, 0) = Field(c, 1) = v;
  } else {
    c = caml_alloc_custom_mem(&operations, sizeof v, 1000);
    *(value *)Data_custom_val(c) = v;
  }
  CAMLreturn(c);
}
value torture_custom_get(value c) { return Tag_val(c) == Abstract_tag ? Field(c, 0) : *(value *)Data_custom_val(c); }

/* What an uncaught exception would print. */
value torture_format(value exception)
{
  char *text = caml_format_exception(exception);
  value v = caml_copy_string(text ? text : "");
  caml_stat_free(text);
  return v;
}

/* What was done last, for a debugger. */
char const *volatile torture_last;
char torture_last_text[256];
value torture_note(value text)
{
  strncpy(torture_last_text, String_val(text), sizeof torture_last_text - 1);
  torture_last = torture_last_text;
  return Val_unit;
}

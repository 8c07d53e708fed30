/* SPDX-License-Identifier: MIT */
#include "region_copy.h"
#include "region_alone.h"
#include "region_custom.h"
#include "region_marker.h"
#include "region_path.h"
#include <caml/bigarray.h>
#include <caml/signals.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

typedef struct outheap_region_copy copy;
#define WORD OUTHEAP_REGION_WORD
#define MOST ((size_t)1 << 40) /* of one region */
#define STEP ((size_t)1 << 20)
#define LARGE ((size_t)4 << 20) /* bytes that are not copied while others wait, if it can be helped */

/* For how long others wait before a second process is started, at least (nanoseconds). */
#ifndef OUTHEAP_REGION_COPY_PATIENCE
#define OUTHEAP_REGION_COPY_PATIENCE 2000000
#endif

/* --- the source's headers --------------------------------------------------------------------------------------------
   A header that says where the copy is: no block of the heap has that colour with that tag. On OCaml 5 black blocks are
   not the collector's, and continuations are never among them; on 4.14 blue blocks are free. */

#if OUTHEAP_REGION_OCAML5
#define FORWARD (OUTHEAP_REGION_BLACK | (header_t)Cont_tag)
#define FORWARD_MASK (OUTHEAP_REGION_BLACK | (header_t)0xff)
#else
#define FORWARD ((header_t)2 << 8)
#define FORWARD_MASK OUTHEAP_REGION_BLACK
#endif
static inline bool is_forwarded(header_t h) { return (h & FORWARD_MASK) == FORWARD; }
static inline header_t forward_to(size_t offset) { return offset / WORD << 10 | FORWARD; }
static inline size_t offset_of(header_t h) { return (h >> 10) * WORD; }

/* A header that says so is not instrumented by ThreadSanitizer's idea of who may write it: all others stand still. */
static inline header_t header(value v) { return __atomic_load_n((header_t *)v - 1, __ATOMIC_RELAXED); }
static inline void set_header(value v, header_t h) { __atomic_store_n((header_t *)v - 1, h, __ATOMIC_RELAXED); }

/* --- memory ------------------------------------------------------------------------------------------------------- */

static uint64_t now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Have the others waited for so long that this should go on in a second process? */
static bool is_time_to_leave(copy *c, size_t bytes)
{
  if (c->until == 0 || (bytes < LARGE && now() < c->until)) return false;
  c->left = outheap_region_second_helps();
  if (!c->left) c->until = 0; /* there is nobody else */
  return c->left;
}

/* Maps more of the copy's memory, behind what is mapped. */
static bool map_more(copy *c, size_t bytes)
{
  if (c->file < 0)
    return outheap_region_addresses_map(c->base + c->mapped, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1, 0);
  if (outheap_region_second_is_left(&c->second)) _exit(1);
  return ftruncate(c->file, (off_t)(c->mapped + bytes)) == 0 &&
         outheap_region_addresses_map(c->base + c->mapped, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->file,
                                      c->mapped);
}

/* Room for `bytes` more. */
static bool make_room(copy *c, size_t bytes)
{
  if (bytes <= c->mapped - c->used) return true;
  if (is_time_to_leave(c, bytes)) return false;
  size_t page = outheap_region_addresses_page(), more = c->mapped / 4;
  if (more < STEP) more = STEP;
  if (more > ((size_t)256 << 20)) more = (size_t)256 << 20;
  if (more < bytes) more = bytes;
  more = OUTHEAP_REGION_ROUND(more, page);
  if (more > c->extent.bytes - c->mapped) more = OUTHEAP_REGION_ROUND(bytes, page);
  if (bytes > MOST || more > c->extent.bytes - c->mapped)
    return outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
  if (!map_more(c, more)) {
    if (errno == EEXIST) c->obstacle = c->base + c->mapped + more - 1;
    return outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
  }
  c->mapped += more;
  return true;
}

/* Appends a block without contents. Result: its address; 0: no memory. */
static inline value append(copy *c, header_t h, uintptr_t source)
{
  size_t bytes = WORD + Wosize_hd(h) * WORD;
  if (__builtin_expect(bytes > c->mapped - c->used, 0) && !make_room(c, bytes)) return 0;
  if (!outheap_region_vector_push(&c->log, source)) {
    outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
    return 0;
  }
  *(header_t *)(c->base + c->used) = h;
  value new = (value)(c->base + c->used + WORD);
  c->used += bytes;
  return new;
}

static inline void fill(value to, value from, mlsize_t words)
{
  if (words > 16) memcpy((void *)to, (void const *)from, words * WORD);
  else
    for (mlsize_t i = 0; i < words; i++) Field(to, i) = Field(from, i);
}

/* --- single blocks ---------------------------------------------------------------------------------------------------
   Results: the copy, or 0 if there is an error. */

static value refuse(copy *c, char const *kind, char const *identifier)
{
  outheap_region_error_is(&c->error, OUTHEAP_REGION_REFUSED, kind);
  outheap_region_error_name(&c->error, identifier);
  return 0;
}

/* A block whose header is to stay as it is. */
static value copy_by_table(copy *c, value v, header_t h)
{
  struct outheap_region_table_slot *s = outheap_region_table_find(&c->table, (uintptr_t)v);
  if (s == NULL) {
    outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
    return 0;
  }
  if (s->key != 0) return (value)(c->base + s->word);
  value new = append(c, outheap_region_config_header(Wosize_hd(h), Tag_hd(h)), 0);
  if (new == 0) return 0;
  *s = (struct outheap_region_table_slot){ (uintptr_t)v, (size_t)((char *)new - c->base) };
  c->table.count++;
  fill(new, v, Wosize_hd(h));
  return new;
}

static inline value copy_block(copy *c, value v, header_t h)
{
  if (outheap_region_config_is_black(h) || Wosize_hd(h) == 0) return copy_by_table(c, v, h);
  value new = append(c, h, (uintptr_t)v);
  if (new == 0) return 0;
  fill(new, v, Wosize_hd(h));
  set_header(v, forward_to((size_t)((char *)new - c->base)));
  return new;
}

/* What a bigarray holds goes behind it, as a block that nobody looks into, at a multiple of 16. */
static value copy_bigarray(copy *c, value v, header_t h)
{
  struct caml_ba_array const *old = Caml_ba_array_val(v);
  size_t bytes = caml_ba_byte_size((struct caml_ba_array *)old), words = (bytes + WORD - 1) / WORD;
  bool others_write = c->file >= 0 && (old->flags & CAML_BA_MANAGED_MASK) != CAML_BA_MANAGED; /* a file, for one */
  if (bytes > MOST || others_write) {
    outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
    return 0;
  }
  value new = copy_block(c, v, h);
  if (new == 0) return 0;
  bool aligned = ((uintptr_t)c->base + c->used + WORD) % 16 == 0;
  if (!aligned && append(c, outheap_region_config_header(0, Abstract_tag), 0) == 0) return 0;
  value data = append(c, outheap_region_config_header(words, Abstract_tag), 0);
  if (data == 0) return 0;
  if (words != 0) Field(data, words - 1) = 0;
  memcpy((void *)data, old->data, bytes);
  struct caml_ba_array *b = Caml_ba_array_val(new);
  if (strcmp(Custom_ops_val(v)->identifier, caml_ba_ops.identifier) != 0) /* it is no file any more */
    Custom_ops_val(new) = (void *)&caml_ba_ops;
  b->data = (void *)data;
  b->proxy = c->proxy != NULL ? c->proxy : (void *)(c->base + c->proxy_at);
  b->flags = (b->flags & ~(intnat)CAML_BA_MANAGED_MASK) | CAML_BA_MANAGED;
  return new;
}

static value copy_custom(copy *c, value v, header_t h)
{
  struct custom_operations const *o = Custom_ops_val(v);
  switch (outheap_region_custom_kind(o)) {
    case OUTHEAP_REGION_CUSTOM_PLAIN: return copy_block(c, v, h);
    case OUTHEAP_REGION_CUSTOM_BIGARRAY: return copy_bigarray(c, v, h);
    default: return refuse(c, "custom", o->identifier);
  }
}

/* The tag of a block that may have been copied already. */
static tag_t tag_of(copy *c, value v)
{
  header_t h = header(v);
  return is_forwarded(h) ? Tag_hd(*(header_t *)(c->base + offset_of(h) - WORD)) : Tag_hd(h);
}

/* The name, if it is an extension constructor; NULL: an object. */
static char const *name_of_constructor(copy *c, value v, header_t h)
{
  value name = Wosize_hd(h) == 2 ? Field(v, 0) : Val_unit;
  if (!Is_block(name) || !outheap_region_marker_is_value((uintptr_t)name) || tag_of(c, name) != String_tag) return NULL;
  header_t n = header(name);
  return is_forwarded(n) ? c->base + offset_of(n) : String_val(name);
}

/* Constructors are compared by address: those of predefined exceptions are static, and stay. Those of the program are
   in the heap, where they may move. */
static value copy_object(copy *c, value v, header_t h)
{
  char const *name = name_of_constructor(c, v, h);
  if (name != NULL) {
    if (!c->for_image && outheap_region_marker_is_static((uintptr_t)v, h)) return v;
    return refuse(c, "extension constructor", name);
  }
  if (!c->closures || c->for_image) return refuse(c, "object", "");
  return copy_block(c, v, h);
}

static value copy_special(copy *c, value v, header_t h);

static inline bool stays(copy *c, uintptr_t v)
{
  for (size_t i = 0; i < c->stay_count; i++)
    if (v - c->stay[2 * i] < c->stay[2 * i + 1] - c->stay[2 * i]) return true;
  return false;
}

/* A pointer to what was copied before, or is copied now. */
static inline __attribute__((always_inline)) value move(copy *c, value v)
{
  size_t chunk = (uintptr_t)v / OUTHEAP_REGION_CHUNK;
  if (__builtin_expect(chunk != c->chunk, 0)) {
    if (c->stay_count != 0 && stays(c, (uintptr_t)v)) return v;
    if (!outheap_region_marker_is_value((uintptr_t)v)) return refuse(c, "foreign pointer", "");
    header_t h = header(v); /* chunks of black blocks are asked about each time: they may be foreign in part */
    if (!outheap_region_config_is_black(h) || is_forwarded(h)) c->chunk = chunk;
  }
  header_t h = header(v);
  if (is_forwarded(h)) return (value)(c->base + offset_of(h));
  tag_t t = Tag_hd(h);
  bool plain = t < OUTHEAP_REGION_SPECIAL || (t > Abstract_tag && t < Custom_tag);
  if (__builtin_expect(plain, 1)) return copy_block(c, v, h);
  return copy_special(c, v, h);
}
_Static_assert(Abstract_tag < String_tag && String_tag < Custom_tag && Double_array_tag < Custom_tag, "tags");
_Static_assert(Lazy_tag < Abstract_tag && Closure_tag < Abstract_tag && Forward_tag < Abstract_tag, "tags");

static __attribute__((noinline)) value copy_special(copy *c, value v, header_t h)
{
  switch (Tag_hd(h)) {
    case Infix_tag: {
      value whole = v - (value)Infix_offset_hd(h), new = move(c, whole);
      return new == 0 ? 0 : new + (value)Infix_offset_hd(h);
    }
    case Closure_tag:
      if (!c->closures || c->for_image) return refuse(c, "closure", "");
      return outheap_region_marker_is_static((uintptr_t)v, h) ? v : copy_block(c, v, h);
    case Object_tag: return copy_object(c, v, h);
    case Forward_tag: {
      value f = Forward_val(v);
      if (!Is_block(f)) return f;
      if (!outheap_region_marker_is_value((uintptr_t)f)) return refuse(c, "foreign pointer", "");
      tag_t t = tag_of(c, f);
      if (t == Forward_tag || t == Lazy_tag || t == Forcing_tag || t == Double_tag) return copy_block(c, v, h);
      return move(c, f);
    }
    case Lazy_tag: return c->lazies ? copy_block(c, v, h) : refuse(c, "lazy", "");
    case Abstract_tag: return refuse(c, "abstract", "");
    case Custom_tag: return copy_custom(c, v, h);
    default:
      if (Tag_hd(h) == Forcing_tag) return refuse(c, "lazy", "");
      if (Tag_hd(h) == Cont_tag) return refuse(c, "continuation", "");
      return copy_block(c, v, h);
  }
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* The field at which it stopped, or the number of fields. */
static bool scan_all(copy *c, mlsize_t *field)
{
  while (c->scan < c->used) {
    header_t h = *(header_t *)(c->base + c->scan);
    value b = (value)(c->base + c->scan + WORD);
    mlsize_t words = Wosize_hd(h), i = 0;
    tag_t t = Tag_hd(h);
    if (t < No_scan_tag) {
      if (t == Closure_tag) i = Start_env_closinfo(Closinfo_val(b));
      for (; i < words; i++) {
        value f = Field(b, i);
        if (!Is_block(f)) continue;
        value new = move(c, f);
        if (__builtin_expect(new == 0, 0)) {
          *field = i;
          return false;
        }
        Field(b, i) = new;
      }
    }
    c->scan += WORD + words * WORD;
  }
  return true;
}

/* Puts the source's headers back, and gives the copies theirs. The second process leaves its source as it is. */
static void restore(copy *c)
{
  size_t at = c->start;
  for (size_t i = 0; i < c->log.count; i++) {
    header_t h = *(header_t *)(c->base + at);
    if (c->log.word[i] != 0 && c->file < 0) set_header((value)c->log.word[i], h);
    *(header_t *)(c->base + at) = outheap_region_config_header(Wosize_hd(h), Tag_hd(h));
    at += WORD + Wosize_hd(h) * WORD;
  }
}

/* The beginning, at c->base, where nothing is mapped yet. */
static bool begin(copy *c)
{
  size_t page = outheap_region_addresses_page(), first = OUTHEAP_REGION_ROUND(c->start + WORD, page);
  c->error = (struct outheap_region_error){ .kind = OUTHEAP_REGION_OK };
  c->used = c->scan = c->start;
  c->mapped = c->log.count = 0;
  c->chunk = SIZE_MAX;
  c->obstacle = NULL;
  if (map_more(c, first)) {
    c->mapped = first;
    return true;
  }
  if (errno == EEXIST) c->obstacle = c->base;
  return outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
}

static void drop_memory(copy *c)
{
  outheap_region_addresses_unmap(c->base, c->mapped);
  c->mapped = 0;
}

static void run(copy *c)
{
  value root = *c->root;
  mlsize_t field = 0;
  if (!begin(c)) return;
  bool done = make_room(c, WORD), at_root = true;
  c->copied = root;
  if (done && Is_block(root)) {
    done = (c->copied = move(c, root)) != 0;
    if (done) {
      at_root = false;
      done = scan_all(c, &field);
    }
  }
  c->blocks = c->log.count;
  done = done && append(c, outheap_region_config_header(0, Abstract_tag), 0) != 0;
  if (!done && !at_root && c->error.kind == OUTHEAP_REGION_REFUSED)
    outheap_region_path(c->base, c->start, c->scan, field, c->log.count, c->error.path, sizeof c->error.path);
  restore(c);
  outheap_region_table_free(&c->table);
}

/* --- in a second process ---------------------------------------------------------------------------------------------
   What takes long is done by a second process (region_second.h), for which all domains are stopped only until it is
   there. It has the source to itself, so it does what is done here otherwise, headers and all; but the copy's memory is
   a file without a name, from which this process reads it. If anything goes wrong the copy is made here, alone. */

struct result { struct outheap_region_error error; size_t used, blocks; value copied; };
_Static_assert(sizeof(struct result) < OUTHEAP_REGION_SECOND_SHARED, "one page");

static uint64_t last_start; /* nanoseconds that it took to start a second process; by whoever was the last */
static struct outheap_region_copy_counts counts;

static void note_wait(uint64_t waited)
{
  uint64_t longest = __atomic_load_n(&counts.longest, __ATOMIC_RELAXED); /* a statistic */
  while (longest < waited && !__atomic_compare_exchange_n(&counts.longest, &longest, waited, false, __ATOMIC_RELAXED,
                                                          __ATOMIC_RELAXED)) {}
}

struct outheap_region_copy_counts outheap_region_copy_count(void)
{
  return (struct outheap_region_copy_counts){ __atomic_load_n(&counts.second, __ATOMIC_RELAXED),
                                              __atomic_load_n(&counts.longest, __ATOMIC_RELAXED) };
}

static int open_memory(void)
{
#ifdef SYS_memfd_create
  int file = (int)syscall(SYS_memfd_create, "outheap-copy", 1u /* close on exec */ | 8u /* not to be executed */);
  if (file < 0 && errno == EINVAL) file = (int)syscall(SYS_memfd_create, "outheap-copy", 1u); /* before Linux 6.3 */
  return file;
#else
  return -1;
#endif
}

static void run_in_second(void *data)
{
  copy *c = data;
  c->until = 0;
  run(c);
  *(struct result *)c->second.shared = (struct result){ c->error, c->used, c->blocks, c->copied };
}

/* While all domains are stopped. */
static void stopped(void *data)
{
  copy *c = data;
  /* What takes little longer than to start a process is done here; a quarter is what this can cost. */
  uint64_t from = now(), patience = __atomic_load_n(&last_start, __ATOMIC_RELAXED) / 4;
  if (patience < OUTHEAP_REGION_COPY_PATIENCE) patience = OUTHEAP_REGION_COPY_PATIENCE;
  c->left = OUTHEAP_REGION_COPY_PATIENCE == 0 && !c->exclusive; /* for tests */
  c->until = c->exclusive ? 0 : from + patience;
  if (!c->left) run(c);
  if (!c->left) return;
  drop_memory(c);
  from = now();
  c->file = open_memory();
  if (c->file >= 0 && outheap_region_second_start(&c->second, run_in_second, c)) {
    __atomic_store_n(&last_start, now() - from, __ATOMIC_RELAXED);
    return;
  }
  if (c->file >= 0) close(c->file);
  c->file = -1;
  c->left = false;
  c->until = 0;
  run(c);
}

/* The copy that the second process has left in the file, which gets smaller as it is read. */
static bool read_memory(copy *c)
{
  size_t end = OUTHEAP_REGION_ROUND(c->used, outheap_region_addresses_page());
  int file = c->file;
  c->file = -1;
  c->mapped = 0;
  if (!map_more(c, end)) {
    if (errno == EEXIST) c->obstacle = c->base;
    return false;
  }
  c->mapped = end;
#ifdef MADV_HUGEPAGE
  (void)madvise(c->base, end, MADV_HUGEPAGE); /* so that it costs later processes little */
#endif
  for (size_t at = 0; at < c->used;) {
    size_t most = c->used - at < LARGE ? c->used - at : LARGE;
    ssize_t n = pread(file, c->base + at, most, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, n);
    at += (size_t)n;
  }
  return true;
}

/* After `stopped`: true: everything is decided. False: it did not work, and is to be tried here. */
static bool take_over(copy *c)
{
  if (!c->left) return true;
  int file = c->file;
  caml_enter_blocking_section();
  bool done = outheap_region_second_wait(&c->second);
  struct result r = *(struct result *)c->second.shared;
  outheap_region_second_end(&c->second);
  c->obstacle = NULL;
  c->error = r.error;
  if (done && r.error.kind == OUTHEAP_REGION_OK) {
    c->used = r.used;
    c->blocks = r.blocks;
    c->copied = r.copied;
    done = read_memory(c);
    if (!done) {
      drop_memory(c);
      outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
    }
  }
  else done = done && r.error.kind == OUTHEAP_REGION_REFUSED;
  c->file = -1;
  close(file);
  if (done) __atomic_add_fetch(&counts.second, 1, __ATOMIC_RELAXED);
  caml_leave_blocking_section();
  return done;
}

/* How many copies have a place whose end is not known yet, or look for one. */
static int unfinished;

/* No copy is larger than the memory of the system: so much is taken, and what was too much given back. Where others
   have taken all that there is, their copies are waited for. */
static bool take_place(copy *c)
{
  struct sysinfo s;
  size_t most = MOST;
  if (sysinfo(&s) == 0 && s.totalram + s.totalswap < most / s.mem_unit)
    most = (size_t)(s.totalram + s.totalswap) * s.mem_unit;
  for (;;) {
    struct timespec little = { 0, 1000000 };
    __atomic_add_fetch(&unfinished, 1, __ATOMIC_SEQ_CST); /* before it has one: who fails then knows of this */
    if (outheap_region_addresses_take(&c->extent, OUTHEAP_REGION_CHUNK, most)) return true;
    if (__atomic_sub_fetch(&unfinished, 1, __ATOMIC_SEQ_CST) == 0)
      return outheap_region_error_is(&c->error, OUTHEAP_REGION_TOO_MANY, NULL);
    caml_enter_blocking_section();
    nanosleep(&little, NULL);
    caml_leave_blocking_section();
  }
}

static void leave_place(void) { __atomic_sub_fetch(&unfinished, 1, __ATOMIC_SEQ_CST); }

/* Copies to one place. False: an error, and nothing is left; `obstacle` says that another place may do. */
static bool copy_to(copy *c, uint64_t *waited)
{
  bool exclusive = c->exclusive;
  if (!take_place(c)) return false;
  c->base = c->extent.base;
  c->file = -1;
  c->mapped = 0;
  for (bool done = false; !done; c->exclusive = true) {
    c->log = (struct outheap_region_vector){ NULL, 0, 0 };
    c->table = (struct outheap_region_table){ NULL, 0, 0 };
    c->left = false;
    if (outheap_region_alone(stopped, NULL, c, waited)) note_wait(*waited);
    else outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
    outheap_region_vector_free(&c->log);
    outheap_region_table_free(&c->table);
    done = take_over(c) || c->obstacle != NULL || c->exclusive;
  }
  c->exclusive = exclusive;
  if (c->error.kind == OUTHEAP_REGION_OK) return true;
  drop_memory(c);
  if (c->obstacle != NULL) outheap_region_addresses_avoid(&c->extent, c->obstacle);
  else outheap_region_addresses_give(&c->extent);
  leave_place();
  return false;
}

bool outheap_region_copy_make(copy *c, uint64_t *waited)
{
  *waited = 0;
  for (int i = 0; !copy_to(c, waited); i++)
    if (c->obstacle == NULL || i == OUTHEAP_REGION_ADDRESSES_ATTEMPTS) return false;
  size_t end = OUTHEAP_REGION_ROUND(c->used, outheap_region_addresses_page());
  outheap_region_addresses_unmap(c->base + end, c->mapped - end);
  c->mapped = end;
  outheap_region_addresses_cut(&c->extent, end);
  leave_place();
  return true;
}

void outheap_region_copy_drop(copy *c)
{
  drop_memory(c);
  outheap_region_addresses_give(&c->extent);
}

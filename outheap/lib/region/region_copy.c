/* SPDX-License-Identifier: MIT */
#include "region_copy.h"
#include <caml/bigarray.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct outheap_region_copy copy;
#define WORD OUTHEAP_REGION_WORD
#define MAX_BYTES OUTHEAP_REGION_COPY_MAX
#define MIN_GROWTH ((size_t)1 << 20)
#define MAX_GROWTH ((size_t)256 << 20)
#define LARGE_BLOCK ((size_t)4 << 20) /* from so many bytes on a block is copied by a second process, if there is one */

/* --- forwarding headers ----------------------------------------------------------------------------------------------
   The header of a block that was copied is replaced by one that says where the copy is. No block of the heap has its
   colour with its tag: on OCaml 5 black blocks are not the collector's, and continuations are never among them; on 4.14
   blue blocks are free. */

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

/* Relaxed: all others are stopped. The accesses are atomic only for ThreadSanitizer, which does not know that. */
static inline header_t header(value v) { return __atomic_load_n((header_t *)v - 1, __ATOMIC_RELAXED); }
static inline void set_header(value v, header_t h) { __atomic_store_n((header_t *)v - 1, h, __ATOMIC_RELAXED); }

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Have the others waited for so long that this should go on in a second process? */
static bool should_hand_over(copy *c, size_t bytes)
{
  if (c->deadline == 0 || (bytes < LARGE_BLOCK && outheap_region_now() < c->deadline)) return false;
  c->handed_over = outheap_region_second_helps();
  if (!c->handed_over) c->deadline = 0; /* there is nobody else */
  return c->handed_over;
}

bool outheap_region_copy_map_more(copy *c, size_t bytes)
{
  if (c->file < 0)
    return outheap_region_addresses_map(c->base + c->mapped, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1, 0);
  if (outheap_region_second_is_orphan(&c->second)) _exit(1);
  return ftruncate(c->file, (off_t)(c->mapped + bytes)) == 0 &&
         outheap_region_addresses_map(c->base + c->mapped, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->file,
                                      c->mapped);
}

/* Ensures that there is room for `bytes` more. Returns false if there is an error, or the copy is handed over. */
static bool make_room(copy *c, size_t bytes)
{
  if (bytes <= c->mapped - c->used) return true;
  if (should_hand_over(c, bytes)) return false;
  size_t page = outheap_region_addresses_page(), more = c->mapped / 4;
  if (more < MIN_GROWTH) more = MIN_GROWTH;
  if (more > MAX_GROWTH) more = MAX_GROWTH;
  if (more < bytes) more = bytes;
  more = OUTHEAP_REGION_ROUND(more, page);
  if (more > c->extent.bytes - c->mapped) more = OUTHEAP_REGION_ROUND(bytes, page);
  if (bytes > MAX_BYTES || more > c->extent.bytes - c->mapped)
    return outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
  if (!outheap_region_copy_map_more(c, more)) {
    if (errno == EEXIST) c->obstacle = c->base + c->mapped + more - 1;
    return outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
  }
  c->mapped += more;
  return true;
}

/* Appends a block without contents. Returns its address; 0 if there is no memory. */
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
   These functions return the copy, or 0 if there is an error. */

static value refuse(copy *c, char const *kind, char const *identifier)
{
  outheap_region_error_is(&c->error, OUTHEAP_REGION_REFUSED, kind);
  outheap_region_error_name(&c->error, identifier);
  return 0;
}

/* Copies a block whose header must stay as it is. */
static value copy_by_table(copy *c, value v, header_t h)
{
  struct outheap_region_table_slot *s = outheap_region_table_find(&c->table, (uintptr_t)v);
  if (s == NULL) {
    outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
    return 0;
  }
  if (s->key != 0) return (value)(c->base + s->word);
  value new = append(c, outheap_region_block_header(Wosize_hd(h), Tag_hd(h)), 0);
  if (new == 0) return 0;
  *s = (struct outheap_region_table_slot){ (uintptr_t)v, (size_t)((char *)new - c->base) };
  c->table.count++;
  fill(new, v, Wosize_hd(h));
  return new;
}

static inline value copy_block(copy *c, value v, header_t h)
{
  if (outheap_region_block_is_black(h) || Wosize_hd(h) == 0) return copy_by_table(c, v, h);
  value new = append(c, h, (uintptr_t)v);
  if (new == 0) return 0;
  fill(new, v, Wosize_hd(h));
  set_header(v, forward_to((size_t)((char *)new - c->base)));
  return new;
}

/* What a bigarray holds is copied behind it, into a block that nobody looks into, at a multiple of 16. */
static value copy_bigarray(copy *c, value v, header_t h)
{
  struct caml_ba_array const *old = Caml_ba_array_val(v);
  size_t bytes = caml_ba_byte_size((struct caml_ba_array *)old), words = (bytes + WORD - 1) / WORD;
  /* Others may write to memory that is not OCaml's, such as that of a file: no second process sees a moment of it. */
  bool others_write = c->file >= 0 && (old->flags & CAML_BA_MANAGED_MASK) != CAML_BA_MANAGED;
  if (bytes > MAX_BYTES || others_write) {
    outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
    return 0;
  }
  value new = copy_block(c, v, h);
  if (new == 0) return 0;
  bool aligned = ((uintptr_t)c->base + c->used + WORD) % 16 == 0;
  if (!aligned && append(c, outheap_region_block_header(0, Abstract_tag), 0) == 0) return 0;
  value data = append(c, outheap_region_block_header(words, Abstract_tag), 0);
  if (data == 0) return 0;
  if (words != 0) Field(data, words - 1) = 0;
  memcpy((void *)data, old->data, bytes);
  struct caml_ba_array *b = Caml_ba_array_val(new);
  if (strcmp(Custom_ops_val(v)->identifier, caml_ba_ops.identifier) != 0) /* the copy is not that of a file */
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

/* Finds the tag of a block that may have been copied already. */
static tag_t tag_of(copy *c, value v)
{
  header_t h = header(v);
  return is_forwarded(h) ? Tag_hd(*(header_t *)(c->base + offset_of(h) - WORD)) : Tag_hd(h);
}

/* Returns the name, if the block is an extension constructor; NULL: it is an object. */
static char const *name_of_constructor(copy *c, value v, header_t h)
{
  value name = Wosize_hd(h) == 2 ? Field(v, 0) : Val_unit;
  if (!Is_block(name) || !outheap_region_marker_is_value((uintptr_t)name) || tag_of(c, name) != String_tag) return NULL;
  header_t n = header(name);
  return is_forwarded(n) ? c->base + offset_of(n) : String_val(name);
}

/* Copies an object. Extension constructors, which have the same tag, are compared by address: those of predefined
   exceptions are static, and stay. Those of the program are in the heap, where they may move. */
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

/* Returns what becomes of a pointer: it leads to a block that was copied before, or is copied now, or stays. */
static inline __attribute__((always_inline)) value move(copy *c, value v)
{
  size_t chunk = (uintptr_t)v / OUTHEAP_REGION_CHUNK;
  if (__builtin_expect(chunk != c->chunk, 0)) {
    if (c->stay_count != 0 && stays(c, (uintptr_t)v)) return v;
    if (!outheap_region_marker_is_value((uintptr_t)v)) return refuse(c, "foreign pointer", "");
    header_t h = header(v); /* a chunk with black blocks may be foreign in part: it is asked about each time */
    if (!outheap_region_block_is_black(h) || is_forwarded(h)) c->chunk = chunk;
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

/* --- where a block is that cannot be copied ----------------------------------------------------------------------- */

enum { SHOWN_AT_EACH_END = 6 }; /* steps of a long path */

static size_t append_step(char *text, size_t size, size_t length, size_t field, bool large)
{
  int n = snprintf(text + length, size - length, large ? "[%zu]" : ".%zu", field);
  return n < 0 || (size_t)n >= size - length ? length : length + (size_t)n;
}

/* Writes the path from the root to a field as text: `.2.0[17]` is field 17 of field 0 of field 2 of the root. Fields of
   blocks with more than 16 fields have brackets. A long path is shortened in the middle. The field is number `field` of
   the block whose header is at base + at; blocks lie from base + start, in the order in which they were copied, `count`
   of them at most. If there is no memory the text is empty. */
static __attribute__((noinline)) void describe_path(char const *base, size_t start, size_t at, mlsize_t field,
                                                    size_t count, char *text, size_t size)
{
  struct outheap_region_vector parents = { NULL, 0, 0 }, fields = { NULL, 0, 0 }, sizes = { NULL, 0, 0 };
  text[0] = 0;
  header_t root = *(header_t const *)(base + start);
  /* The parent of a block is the first block that refers to it. Blocks were appended in the order of their parents, so
     these are found in one pass, in which `next` is the first block that has none yet. */
  size_t next = start + WORD + Wosize_hd(root) * WORD, number = 0, last = 0;
  bool known = outheap_region_vector_push(&parents, 0) && outheap_region_vector_push(&fields, 0);
  for (size_t b = start; known && b <= at; number++) {
    header_t h = *(header_t const *)(base + b);
    value v = (value)(base + b + WORD);
    mlsize_t words = Wosize_hd(h), until = b == at ? field : words;
    known = outheap_region_vector_push(&sizes, words);
    last = number;
    if (Tag_hd(h) < No_scan_tag)
      for (mlsize_t i = Tag_hd(h) == Closure_tag ? Start_env_closinfo(Closinfo_val(v)) : 0; known && i < until; i++) {
        uintptr_t f = (uintptr_t)Field(v, i);
        if ((f & 1) != 0 || f < (uintptr_t)base + next) continue;
        /* A new block; those without a parent in between belong to bigarrays. */
        while (known && parents.count < count) {
          size_t end = next + WORD + Wosize_hd(*(header_t const *)(base + next)) * WORD;
          bool here = f <= (uintptr_t)base + end;
          known = outheap_region_vector_push(&parents, number) && outheap_region_vector_push(&fields, i);
          next = end;
          if (here) break;
        }
      }
    b += WORD + words * WORD;
  }
  if (known && parents.count > last) {
    /* The path is collected from the field to the root, and written the other way round. */
    struct outheap_region_vector path = { NULL, 0, 0 };
    for (size_t b = last; known && b != 0; b = parents.word[b]) known = outheap_region_vector_push(&path, b);
    size_t length = 0, n = path.count;
    for (size_t i = 0; known && i < n; i++) {
      if (n > 2 * SHOWN_AT_EACH_END + 1 && i == SHOWN_AT_EACH_END) {
        int more = snprintf(text + length, size - length, "…(%zu)…", n - 2 * SHOWN_AT_EACH_END);
        if (more > 0 && (size_t)more < size - length) length += (size_t)more;
        i = n - SHOWN_AT_EACH_END;
      }
      size_t b = path.word[n - 1 - i];
      length = append_step(text, size, length, fields.word[b], sizes.word[parents.word[b]] > 16);
    }
    length = append_step(text, size, length, field, sizes.word[last] > 16);
    outheap_region_vector_free(&path);
  }
  outheap_region_vector_free(&parents);
  outheap_region_vector_free(&fields);
  outheap_region_vector_free(&sizes);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* Copies what the fields of all blocks lead to. Returns false at a field that cannot be followed: *field. */
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

/* Puts the source's headers back, and gives the copies theirs. A second process leaves its source as it is. */
static void restore(copy *c)
{
  size_t at = c->start;
  for (size_t i = 0; i < c->log.count; i++) {
    header_t h = *(header_t *)(c->base + at);
    if (c->log.word[i] != 0 && c->file < 0) set_header((value)c->log.word[i], h);
    *(header_t *)(c->base + at) = outheap_region_block_header(Wosize_hd(h), Tag_hd(h));
    at += WORD + Wosize_hd(h) * WORD;
  }
}

/* Maps the first memory at c->base, where nothing is mapped yet. */
static bool begin(copy *c)
{
  size_t page = outheap_region_addresses_page(), first = OUTHEAP_REGION_ROUND(c->start + WORD, page);
  c->error = (struct outheap_region_error){ .kind = OUTHEAP_REGION_OK };
  c->used = c->scan = c->start;
  c->mapped = c->log.count = 0;
  c->chunk = SIZE_MAX;
  c->obstacle = NULL;
  if (outheap_region_copy_map_more(c, first)) {
    c->mapped = first;
    return true;
  }
  if (errno == EEXIST) c->obstacle = c->base;
  return outheap_region_error_is(&c->error, OUTHEAP_REGION_NO_MEMORY, NULL);
}

void outheap_region_copy_unmap(copy *c)
{
  outheap_region_addresses_unmap(c->base, c->mapped);
  c->mapped = 0;
}

void outheap_region_copy_run(copy *c)
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
  done = done && append(c, outheap_region_block_header(0, Abstract_tag), 0) != 0;
  if (!done && !at_root && c->error.kind == OUTHEAP_REGION_REFUSED)
    describe_path(c->base, c->start, c->scan, field, c->log.count, c->error.path, sizeof c->error.path);
  restore(c);
  outheap_region_table_free(&c->table);
}

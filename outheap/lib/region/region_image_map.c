/* SPDX-License-Identifier: MIT */
#include "region_image_map.h"
#include "region_custom.h"
#include "region_file.h"
#include "region_image_check.h"
#include "region_marker.h"
#include <caml/bigarray.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef struct outheap_region_image_header header;
typedef struct outheap_region_record record;
typedef struct outheap_region_error error;
#define WORD OUTHEAP_REGION_WORD
#define START OUTHEAP_REGION_IMAGE_START
#define TABLE OUTHEAP_REGION_IMAGE_TABLE
#define NAME OUTHEAP_REGION_IMAGE_NAME

static inline bool bit(unsigned char const *tail, size_t i) { return tail[i / 8] >> i % 8 & 1; }

struct reading {
  int file;
  uint64_t offset; /* where the image begins in the file */
  bool part;       /* something else may follow it there */
  header head;
  unsigned char *tail; /* NULL: not read */
  struct outheap_region_record r;
  struct outheap_region_image_need *needed; /* in the tail */
  char *at; /* where it is mapped now; NULL: not yet */
  bool here; /* at the place that it was written for */
  bool declared; /* to the runtime */
  error *e;
};

static bool damaged(struct reading *x, char const *what)
{
  return outheap_region_error_is(x->e, OUTHEAP_REGION_DAMAGED, what);
}

static bool read_header(struct reading *x, char const *path, struct outheap_region_image_schema const *schema)
{
  struct stat s;
  unsigned char page[START], digest[16];
  header *h = &x->head;
  x->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (x->file < 0 || fstat(x->file, &s) != 0) return outheap_region_error_system(x->e, "open", errno);
  if (!S_ISREG(s.st_mode) || s.st_size < START) return damaged(x, "not an image: no file of at least 4096 bytes");
  int e = outheap_region_file_read(x->file, page, sizeof page, x->offset);
  if (e != 0) return outheap_region_error_system(x->e, "read", e);
  memcpy(h, page, sizeof *h);
  if (memcmp(h->magic, outheap_region_image_magic, sizeof h->magic) != 0)
    return damaged(x, "not an image: it begins with something else");
  if (h->order != OUTHEAP_REGION_IMAGE_ORDER || h->word != WORD)
    return outheap_region_error_is(x->e, OUTHEAP_REGION_OTHER_PROGRAM, "byte order or word size");
  if (h->format != OUTHEAP_REGION_IMAGE_FORMAT)
    return outheap_region_error_is(x->e, OUTHEAP_REGION_OTHER_PROGRAM, "format of images");
  outheap_region_image_digest_header(h, digest);
  for (size_t i = sizeof *h; i < sizeof page; i++)
    if (page[i] != 0) return damaged(x, "the header");
  if (memcmp(digest, h->header_digest, sizeof digest) != 0) return damaged(x, "the header");
  if (h->ocaml != outheap_region_image_ocaml()) {
    uint32_t here = outheap_region_image_ocaml();
    snprintf(x->e->identifier, sizeof x->e->identifier, "%u.%u", h->ocaml / 100, h->ocaml % 100);
    snprintf(x->e->wanted, sizeof x->e->wanted, "%u.%u", here / 100, here % 100);
    return outheap_region_error_is(x->e, OUTHEAP_REGION_OTHER_PROGRAM, "version of OCaml");
  }
  uint64_t most = OUTHEAP_REGION_ADDRESSES_CHUNKS * OUTHEAP_REGION_CHUNK;
  if (h->start != START || h->used <= START || h->used % WORD != 0 || h->used > most ||
      h->customs > OUTHEAP_REGION_IMAGE_CUSTOMS || h->needs > OUTHEAP_REGION_RECORD_MOST ||
      h->tail != OUTHEAP_REGION_ROUND(h->used, (uint64_t)START) || h->file != h->tail + outheap_region_image_tail(h) ||
      h->base != outheap_region_image_place(h->digest, h->used) || memchr(h->schema, 0, sizeof h->schema) == NULL)
    return damaged(x, "the header");
  uint64_t room = (uint64_t)s.st_size < x->offset ? 0 : (uint64_t)s.st_size - x->offset;
  if (x->part ? room < h->file : room != h->file) return damaged(x, "its length: truncated, or something was added");
  if (strcmp(h->schema, schema->name) != 0 || h->version != schema->version) {
    outheap_region_error_is(x->e, OUTHEAP_REGION_OTHER_SCHEMA, NULL);
    outheap_region_error_name(x->e, h->schema);
    x->e->number = h->version;
    return false;
  }
  return true;
}

static bool read_tail(struct reading *x)
{
  if (x->tail != NULL) return true;
  size_t bytes = outheap_region_image_tail(&x->head);
  unsigned char digest[16];
  x->tail = malloc(bytes + 1);
  if (x->tail == NULL) return outheap_region_error_is(x->e, OUTHEAP_REGION_NO_MEMORY, NULL);
  int e = outheap_region_file_read(x->file, x->tail, bytes, x->offset + x->head.tail);
  if (e != 0) return outheap_region_error_system(x->e, "read", e);
  struct MD5Context m;
  caml_MD5Init(&m);
  outheap_region_file_digest(&m, x->tail, bytes);
  caml_MD5Final(digest, &m);
  if (memcmp(digest, x->head.tail_digest, sizeof digest) != 0) return damaged(x, "the table of addresses");
  x->needed = (void *)(x->tail + outheap_region_image_bitmap(x->head.used) + x->head.customs * NAME);
  return true;
}

static bool find_needs(struct reading *x)
{
  if (x->head.needs == 0) return true;
  if (!read_tail(x)) return false;
  x->r.needs = calloc(x->head.needs, sizeof *x->r.needs);
  if (x->r.needs == NULL) return outheap_region_error_is(x->e, OUTHEAP_REGION_NO_MEMORY, NULL);
  for (size_t i = 0; i < x->head.needs; i++) {
    x->r.needs[i] = outheap_region_record_image(x->needed[i].digest);
    if (x->r.needs[i] == NULL) {
      outheap_region_error_is(x->e, OUTHEAP_REGION_MISSING, NULL);
      for (size_t j = 0; j < 16; j++) sprintf(x->e->identifier + 2 * j, "%02x", x->needed[i].digest[j]);
      return false;
    }
    x->r.need_count++;
    if (x->r.needs[i]->used != x->needed[i].used || x->r.needs[i]->canonical != x->needed[i].base)
      return damaged(x, "the list of images that it needs");
  }
  return true;
}

static bool map_at(struct reading *x, bool writable)
{
  struct outheap_region_addresses *a = &x->r.extent;
  size_t page = outheap_region_addresses_page();
  x->r.bytes = OUTHEAP_REGION_ROUND((size_t)x->head.used, page);
  int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  x->here = outheap_region_addresses_take_at(a, x->head.base, x->r.bytes);
  if (x->here && outheap_region_addresses_map(a->base, x->r.bytes, protection, MAP_PRIVATE, x->file, x->offset))
    return true;
  if (x->here) { /* something else lies there; the chunks stay taken */
    x->here = false;
    if (errno != EEXIST) {
      outheap_region_addresses_give(a);
      return outheap_region_error_system(x->e, "mmap", errno);
    }
    a->bytes = 0;
  }
  int e = EEXIST;
  for (int i = 0; e == EEXIST && i < OUTHEAP_REGION_ADDRESSES_ATTEMPTS; i++) {
    if (!outheap_region_addresses_take(a, x->r.bytes, x->r.bytes))
      return outheap_region_error_is(x->e, OUTHEAP_REGION_TOO_MANY, NULL);
    if (outheap_region_addresses_map(a->base, x->r.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, x->file, x->offset))
      return true;
    e = errno;
    if (e == EEXIST) outheap_region_addresses_avoid(a, a->base);
    else outheap_region_addresses_give(a);
  }
  return e == ENOMEM ? outheap_region_error_is(x->e, OUTHEAP_REGION_NO_MEMORY, NULL)
                     : outheap_region_error_system(x->e, "mmap", e);
}

/* Addresses become those of this process. */
static void relocate(struct reading *x)
{
  uintptr_t *word = (uintptr_t *)(x->at + START), mine = (uintptr_t)x->at - x->head.base;
  uint64_t const *bits = (uint64_t const *)x->tail;
  for (size_t i = 0; i < outheap_region_image_bitmap(x->head.used) / 8; i++)
    for (uint64_t b = bits[i]; b != 0; b &= b - 1) {
      uintptr_t *w = word + 64 * i + (unsigned)__builtin_ctzll(b);
      if (*w - x->head.base < x->head.used) *w += mine;
      else
        for (size_t n = 0; n < x->head.needs; n++)
          if (*w - x->needed[n].base < x->needed[n].used)
            *w += (uintptr_t)x->r.needs[n]->base - x->needed[n].base;
    }
}

static bool fill_table(struct reading *x)
{
  struct custom_operations *table = (void *)(x->at + TABLE);
  for (size_t i = 0; i < x->head.customs; i++) {
    char const *name = (char *)x->tail + outheap_region_image_bitmap(x->head.used) + i * NAME;
    struct custom_operations const *o = memchr(name, 0, NAME) == NULL ? NULL : outheap_region_custom_find(name);
    if (o == NULL) {
      outheap_region_error_is(x->e, OUTHEAP_REGION_OTHER_PROGRAM, "a type of custom blocks is not known here");
      outheap_region_error_name(x->e, memchr(name, 0, NAME) == NULL ? "" : name);
      return false;
    }
    table[i] = *o;
  }
  outheap_region_custom_start((void *)(x->at + OUTHEAP_REGION_IMAGE_PROXY));
  return true;
}

static bool check_digest(struct reading *x)
{
  struct MD5Context m;
  unsigned char digest[16];
  header h = x->head;
  if ((h.root & 1) == 0 && h.root - h.base < h.used) h.root -= h.base;
  outheap_region_image_digest_begin(&m, &h);
  uintptr_t buffer[1024], *word = (uintptr_t *)(x->at + START);
  size_t words = (h.used - START) / WORD;
  for (size_t i = 0; i < words;) {
    size_t n = words - i < 1024 ? words - i : 1024;
    for (size_t j = 0; j < n; j++) {
      uintptr_t w = word[i + j];
      buffer[j] = bit(x->tail, i + j) && w - h.base < h.used ? w - h.base : w;
    }
    outheap_region_file_digest(&m, buffer, n * WORD);
    i += n;
  }
  outheap_region_file_digest(&m, x->tail, outheap_region_image_tail(&h));
  caml_MD5Final(digest, &m);
  return memcmp(digest, h.digest, sizeof digest) == 0 || damaged(x, "the contents");
}

static bool check_all(struct reading *x)
{
  if (!check_digest(x)) return false;
  for (size_t i = x->head.used; i < x->head.tail && i < x->r.bytes; i++)
    if (x->at[i] != 0) return damaged(x, "what follows the blocks");
  struct outheap_region_image_check c = {
    .at = x->at, .base = x->head.base, .used = x->head.used, .start = START, .bits = (uint64_t *)x->tail,
    .root = x->head.root, .table = TABLE, .proxy = OUTHEAP_REGION_IMAGE_PROXY, .customs = x->head.customs,
    .need_count = x->head.needs,
    .names = (char *)x->tail + outheap_region_image_bitmap(x->head.used), .name = NAME
  };
  c.need_base = calloc(3 * x->head.needs + 1, sizeof *c.need_base);
  if (c.need_base == NULL) return outheap_region_error_is(x->e, OUTHEAP_REGION_NO_MEMORY, NULL);
  for (size_t i = 0; i < x->head.needs; i++) {
    c.need_base[3 * i] = x->needed[i].base;
    c.need_base[3 * i + 1] = x->needed[i].used;
    c.need_base[3 * i + 2] = (uintptr_t)x->r.needs[i]->base;
  }
  char const *wrong = outheap_region_image_check(&c);
  free(c.need_base);
  if (wrong == outheap_region_image_check_no_memory)
    return outheap_region_error_is(x->e, OUTHEAP_REGION_NO_MEMORY, NULL);
  return wrong == NULL || damaged(x, wrong);
}

/* The image in memory, as it is to stay. */
static bool load(struct reading *x, bool full, bool track)
{
  header const *h = &x->head;
  bool moved = false; /* a needed image */
  for (size_t i = 0; i < h->needs; i++) moved = moved || (uintptr_t)x->r.needs[i]->base != x->needed[i].base;
  bool filled = moved || h->customs != 0, writable = filled || track;
  if ((filled || full) && !read_tail(x)) return false;
  if (!map_at(x, writable)) return false;
  x->at = x->r.extent.base;
  if (full && !check_all(x)) return false;
  if (!x->here || moved) {
    if (!read_tail(x)) return false;
    relocate(x);
  }
  if (h->customs != 0 && !fill_table(x)) return false;
  /* The first page stays as it is: there is the proxy. */
  size_t first = h->customs != 0 ? outheap_region_addresses_page() : 0;
  if (h->customs != 0) x->r.proxy = (void *)(x->at + OUTHEAP_REGION_IMAGE_PROXY);
  if (!track && (writable || !x->here) && x->r.bytes > first &&
      mprotect(x->at + first, x->r.bytes - first, PROT_READ) != 0)
    return outheap_region_error_system(x->e, "mprotect", errno);
  if (!outheap_region_marker_declare(x->at, x->r.bytes))
    return outheap_region_error_is(x->e, OUTHEAP_REGION_NO_MEMORY, NULL);
  x->declared = true;
  return true;
}

/* The same checks for a file that is not to stay. */
static bool check_file(struct reading *x)
{
  bool good = find_needs(x) && read_tail(x) && map_at(x, false);
  if (good) {
    x->at = x->r.extent.base;
    good = check_all(x);
    outheap_region_addresses_unmap(x->at, x->r.bytes);
    outheap_region_addresses_give(&x->r.extent);
    x->at = NULL;
  }
  return good;
}

/* Where the root is in this process. */
static uintptr_t root_of(struct reading const *x)
{
  uintptr_t root = x->head.root;
  if (root & 1) return root;
  if (root - x->head.base < x->head.used) return root - x->head.base + (uintptr_t)x->at;
  for (size_t i = 0; i < x->head.needs; i++)
    if (root - x->needed[i].base < x->needed[i].used)
      return root - x->needed[i].base + (uintptr_t)x->r.needs[i]->base;
  return 1; /* only in a file that was not checked, and is damaged: a unit is better than a wild pointer */
}

record *outheap_region_image_map(char const *path, int64_t offset, struct outheap_region_image_schema const *schema,
                                 bool full, bool track, error *e)
{
  struct reading x = { .file = -1, .e = e, .r = { .is_image = true, .tracked = track } };
  x.offset = offset < 0 ? 0 : (uint64_t)offset;
  x.part = offset >= 0;
  record *result = NULL;
  if (read_header(&x, path, schema)) {
    result = track ? NULL : outheap_region_record_image(x.head.digest);
    if (result != NULL && full && !check_file(&x)) { /* this file is asked about, not the one that is mapped */
      outheap_region_record_unpin(result);
      result = NULL;
    }
    else if (result != NULL) { /* a handle instead of the pin */
      outheap_region_record_retain(result);
      outheap_region_record_unpin(result);
    }
    else if (result == NULL && find_needs(&x) && load(&x, full, track)) {
      memcpy(x.r.digest, x.head.digest, sizeof x.r.digest);
      memcpy(x.r.schema, x.head.schema, sizeof x.r.schema);
      x.r.version = x.head.version;
      x.r.base = x.at;
      x.r.used = x.head.used;
      x.r.blocks = x.head.blocks;
      x.r.canonical = x.head.base;
      x.r.root = root_of(&x);
      result = outheap_region_record_add(&x.r, e);
    }
    for (size_t i = 0; i < x.r.need_count; i++) outheap_region_record_unpin(x.r.needs[i]);
    if (x.at != NULL && (result == NULL || result->base != x.at)) { /* or another domain was first */
      if (x.declared) outheap_region_marker_withdraw(x.at, x.r.bytes);
      outheap_region_addresses_unmap(x.at, x.r.bytes);
      outheap_region_addresses_give(&x.r.extent);
    }
    if (result == NULL || result->needs != x.r.needs) free(x.r.needs);
  }
  if (x.file >= 0) close(x.file);
  free(x.tail);
  return result;
}

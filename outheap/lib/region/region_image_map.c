/* SPDX-License-Identifier: MIT */
#include "region_image_map.h"
#include "region_runtime.h"
#include <caml/bigarray.h>
#include <caml/custom.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct outheap_region_image_header header;
typedef struct outheap_region_record record;
typedef struct outheap_region_error error;
#define WORD OUTHEAP_REGION_WORD
#define START OUTHEAP_REGION_IMAGE_START
#define TABLE OUTHEAP_REGION_IMAGE_TABLE
#define NAME OUTHEAP_REGION_IMAGE_NAME

/* --- checking --------------------------------------------------------------------------------------------------------
   Every block of an image that was just mapped is checked, wherever it came from: afterwards no operation on its values
   can leave it. Addresses in it are still those that it was written with. */

struct check {
  char const *at; /* where the image is mapped */
  uintptr_t base; /* what its addresses count from */
  size_t used, start;
  uint64_t const *bits; /* a bit for each word from `start` on: is it an address? */
  uintptr_t root;
  size_t table, customs;   /* the table of custom operations, and the entries in use */
  size_t proxy;            /* that of bigarrays */
  char const *names;       /* their identifiers, `name` bytes each */
  size_t name;
  uintptr_t *need_base;    /* triples, one for each needed image: base, size, where it is mapped */
  size_t need_count;
};

static char const no_memory[] = "no memory";

#if OCAML_VERSION >= 50200
#define LAST_KIND CAML_BA_FLOAT16
#else
#define LAST_KIND CAML_BA_CHAR
#endif

static bool is_address(struct check const *c, size_t offset)
{
  size_t i = (offset - c->start) / WORD;
  return c->bits[i / 64] >> i % 64 & 1;
}

static uintptr_t word_at(struct check const *c, size_t offset) { return *(uintptr_t const *)(c->at + offset); }

/* Can an image have blocks with this tag? */
static bool is_allowed(tag_t t)
{
  return t != Closure_tag && t != Infix_tag && t != Object_tag && t != Lazy_tag && t != Forcing_tag && t != Cont_tag;
}

static bool leads_to_block(struct check const *c, uint64_t const *starts, uintptr_t a)
{
  if (a % WORD != 0) return false;
  uintptr_t d = a - c->base;
  if (d < c->used) return d > c->start && (starts[d / WORD / 64] >> d / WORD % 64 & 1) != 0;
  for (size_t i = 0; i < c->need_count; i++) {
    d = a - c->need_base[3 * i];
    if (d < c->need_base[3 * i + 1] && d > c->start)
      return outheap_region_block_is_black(((header_t *)(c->need_base[3 * i + 2] + d))[-1]);
  }
  return false;
}

/* These return NULL, or what is wrong. */
static char const *check_custom(struct check const *c, size_t offset, mlsize_t words, size_t *addresses)
{
  static char const wrong[] = "a custom block";
  uintptr_t o = words == 0 ? 0 : word_at(c, offset) - c->base - c->table;
  if (words == 0 || !is_address(c, offset) || o % sizeof(struct custom_operations) != 0 ||
      o / sizeof(struct custom_operations) >= c->customs)
    return wrong;
  ++*addresses;
  char const *name = c->names + o / sizeof(struct custom_operations) * c->name;
  if (strncmp(name, "_bigarr02", c->name) != 0) return words < 2 ? wrong : NULL;
  struct caml_ba_array const *b = (void const *)(c->at + offset + WORD);
  mlsize_t fixed = 1 + offsetof(struct caml_ba_array, dim) / WORD;
  if (words < fixed || b->num_dims < 0 || b->num_dims > CAML_BA_MAX_NUM_DIMS || words < fixed + (mlsize_t)b->num_dims)
    return wrong;
  int kind = (int)(b->flags & CAML_BA_KIND_MASK);
  if (kind > LAST_KIND || (b->flags & CAML_BA_MANAGED_MASK) != CAML_BA_MANAGED || !is_address(c, offset + WORD) ||
      (uintptr_t)b->proxy - c->base != c->proxy ||
      !is_address(c, offset + WORD + offsetof(struct caml_ba_array, proxy)))
    return wrong;
  *addresses += 2;
  uintptr_t data = (uintptr_t)b->data - c->base, room = c->used - data, bytes = (uintptr_t)caml_ba_element_size[kind];
  if (data >= c->used || data < c->start) return wrong;
  for (intnat i = 0; i < b->num_dims; i++)
    if (b->dim[i] < 0 || __builtin_mul_overflow(bytes, (uintptr_t)b->dim[i], &bytes)) return wrong;
  return bytes > room ? wrong : NULL;
}

static char const *check_fields(struct check const *c, uint64_t const *starts, size_t offset, mlsize_t words,
                                size_t *addresses)
{
  for (size_t at = offset; at < offset + words * WORD; at += WORD) {
    uintptr_t w = word_at(c, at);
    if ((w & 1) == 0 && (!is_address(c, at) || !leads_to_block(c, starts, w))) return "an address";
    if ((w & 1) != 0 && is_address(c, at)) return "the table of addresses";
    *addresses += (w & 1) == 0;
  }
  return NULL;
}

static char const *check_block(struct check const *c, uint64_t const *starts, size_t at, size_t *addresses)
{
  header_t h = *(header_t const *)(c->at + at);
  mlsize_t words = Wosize_hd(h);
  size_t offset = at + WORD;
  if (Tag_hd(h) < No_scan_tag) return check_fields(c, starts, offset, words, addresses);
  if (Tag_hd(h) == Custom_tag) return check_custom(c, offset, words, addresses);
  if (Tag_hd(h) == String_tag && (words == 0 || *(unsigned char const *)(c->at + offset + words * WORD - 1) >= WORD))
    return "the end of a string";
  if (Tag_hd(h) == Double_tag && words != 1) return "a float";
  return NULL;
}

static char const *check_every_block(struct check const *c)
{
  size_t groups = c->used / WORD / 64 + 1, addresses = 0, marked = 0, last = 1;
  uint64_t *starts = calloc(groups, sizeof *starts);
  char const *wrong = starts == NULL ? no_memory : NULL;
  for (size_t at = c->start; wrong == NULL && at < c->used;) {
    header_t h = *(header_t const *)(c->at + at);
    size_t v = at + WORD;
    if (!outheap_region_block_is_black(h) || !is_allowed(Tag_hd(h)) || Wosize_hd(h) > (c->used - v) / WORD ||
        is_address(c, at))
      wrong = "a header";
    else if (v < c->used) starts[v / WORD / 64] |= UINT64_C(1) << v / WORD % 64;
    last = Wosize_hd(h);
    at = v + last * WORD;
  }
  if (wrong == NULL && last != 0) wrong = "the end of the blocks";
  for (size_t at = c->start; wrong == NULL && at < c->used;) {
    wrong = check_block(c, starts, at, &addresses);
    at += WORD + WORD * Wosize_hd(*(header_t const *)(c->at + at));
  }
  for (size_t i = 0; i < ((c->used - c->start) / WORD + 63) / 64; i++)
    marked += (size_t)__builtin_popcountll(c->bits[i]);
  if (wrong == NULL && marked != addresses) wrong = "the table of addresses";
  if (wrong == NULL && (c->root & 1) == 0 && !leads_to_block(c, starts, c->root)) wrong = "the root";
  free(starts);
  return wrong;
}

/* --- mapping ------------------------------------------------------------------------------------------------------ */

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
  bool here; /* at the addresses that it was written for */
  bool declared; /* to the runtime */
  error *e;
};

static bool damaged(struct reading *x, char const *what)
{
  return outheap_region_error_is(x->e, OUTHEAP_REGION_DAMAGED, what);
}

/* Reads all of the data. Returns 0 or errno; the end of the file is EIO. */
static int read_whole(int file, void *data, size_t bytes, uint64_t from)
{
  for (char *p = data; bytes != 0;) {
    ssize_t n = pread(file, p, bytes, (off_t)from);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    p += n, bytes -= (size_t)n, from += (uint64_t)n;
  }
  return 0;
}

static bool read_header(struct reading *x, char const *path, struct outheap_region_image_schema const *schema)
{
  struct stat s;
  unsigned char page[START], digest[16];
  header *h = &x->head;
  x->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (x->file < 0 || fstat(x->file, &s) != 0) return outheap_region_error_system(x->e, "open", errno);
  if (!S_ISREG(s.st_mode) || s.st_size < START) return damaged(x, "not an image: no file of at least 4096 bytes");
  uint64_t room = (uint64_t)s.st_size < x->offset ? 0 : (uint64_t)s.st_size - x->offset;
  if (room < START)
    return damaged(x, "not an image: the file ends before the offset, or less than 4096 bytes after it");
  int e = read_whole(x->file, page, sizeof page, x->offset);
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
      h->customs > OUTHEAP_REGION_IMAGE_CUSTOMS || h->needs > OUTHEAP_REGION_RECORD_MAX ||
      h->tail != OUTHEAP_REGION_ROUND(h->used, (uint64_t)START) || h->file != h->tail + outheap_region_image_tail(h) ||
      h->base != outheap_region_image_base_of(h->digest, h->used) || memchr(h->schema, 0, sizeof h->schema) == NULL)
    return damaged(x, "the header");
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
  int e = read_whole(x->file, x->tail, bytes, x->offset + x->head.tail);
  if (e != 0) return outheap_region_error_system(x->e, "read", e);
  struct MD5Context m;
  caml_MD5Init(&m);
  outheap_region_image_digest_add(&m, x->tail, bytes);
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
  if (x->here) { /* something else is mapped there; the chunks stay taken */
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

/* Changes the addresses in the image to those of this process. */
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

/* Fills in the table of custom operations, and the proxy. */
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
    outheap_region_image_digest_add(&m, buffer, n * WORD);
    i += n;
  }
  outheap_region_image_digest_add(&m, x->tail, outheap_region_image_tail(&h));
  caml_MD5Final(digest, &m);
  return memcmp(digest, h.digest, sizeof digest) == 0 || damaged(x, "the contents");
}

static bool check_all(struct reading *x)
{
  if (!check_digest(x)) return false;
  for (size_t i = x->head.used; i < x->head.tail && i < x->r.bytes; i++)
    if (x->at[i] != 0) return damaged(x, "what follows the blocks");
  struct check c = {
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
  char const *wrong = check_every_block(&c);
  free(c.need_base);
  if (wrong == no_memory)
    return outheap_region_error_is(x->e, OUTHEAP_REGION_NO_MEMORY, NULL);
  return wrong == NULL || damaged(x, wrong);
}

/* Maps the image, and makes it what the program will read. */
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
  /* The first page stays writable: the proxy is there. */
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

/* Does the same checks for a file that is not going to stay mapped. */
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

/* Returns the root in this process. */
static uintptr_t root_of(struct reading const *x)
{
  uintptr_t root = x->head.root;
  if (root & 1) return root;
  if (root - x->head.base < x->head.used) return root - x->head.base + (uintptr_t)x->at;
  for (size_t i = 0; i < x->head.needs; i++)
    if (root - x->needed[i].base < x->needed[i].used)
      return root - x->needed[i].base + (uintptr_t)x->r.needs[i]->base;
  return 1; /* only if the file is damaged, and was not checked: () is better than a wild pointer */
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
    if (result != NULL && full && !check_file(&x)) { /* the caller asks about this file */
      outheap_region_record_unpin(result);
      result = NULL;
    }
    else if (result != NULL) { /* the pin becomes a handle */
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
    if (x.at != NULL && (result == NULL || result->base != x.at)) { /* another domain may have been first */
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

/* SPDX-License-Identifier: MIT */
#include "region_image.h"
#include "region_share.h"
#include "region_snapshot.h"
#include <caml/bigarray.h>
#include <caml/signals.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct outheap_region_image_header header;
typedef struct outheap_region_record record;
typedef struct outheap_region_error error;
#define WORD OUTHEAP_REGION_WORD
#define START OUTHEAP_REGION_IMAGE_START
#define TABLE OUTHEAP_REGION_IMAGE_TABLE
#define NAME OUTHEAP_REGION_IMAGE_NAME

/* --- the form ----------------------------------------------------------------------------------------------------- */

char const outheap_region_image_magic[8] = { 'O', 'H', 'I', 'M', 'A', 'G', 'E', '\n' };

uint32_t outheap_region_image_ocaml(void) { return OCAML_VERSION / 100; }

size_t outheap_region_image_bitmap(uint64_t used) { return ((used - START) / WORD + 63) / 64 * 8; }

size_t outheap_region_image_tail(header const *h)
{
  return outheap_region_image_bitmap(h->used) + h->customs * NAME + h->needs * sizeof(struct outheap_region_image_need);
}

uintptr_t outheap_region_image_base_of(unsigned char const digest[16], size_t bytes)
{
  uint64_t n;
  memcpy(&n, digest, sizeof n);
  size_t chunks = OUTHEAP_REGION_ROUND(bytes, OUTHEAP_REGION_CHUNK) / OUTHEAP_REGION_CHUNK;
  return OUTHEAP_REGION_ADDRESSES_BEGIN + n % (OUTHEAP_REGION_ADDRESSES_CHUNKS - chunks + 1) * OUTHEAP_REGION_CHUNK;
}

void outheap_region_image_digest_header(header const *h, unsigned char result[16])
{
  unsigned char page[START] = { 0 };
  memcpy(page, h, sizeof *h);
  memset(page + offsetof(header, header_digest), 0, 16);
  struct MD5Context m;
  caml_MD5Init(&m);
  outheap_region_image_digest_add(&m, page, sizeof page);
  caml_MD5Final(result, &m);
}

void outheap_region_image_digest_begin(struct MD5Context *m, header const *h)
{
  caml_MD5Init(m);
  uint64_t numbers[4] = { h->version, h->used, h->blocks, h->root };
  outheap_region_image_digest_add(m, h->schema, sizeof h->schema);
  outheap_region_image_digest_add(m, numbers, sizeof numbers);
}

/* --- the contents ------------------------------------------------------------------------------------------------- */

static inline bool bit(unsigned char const *tail, size_t i) { return tail[i / 8] >> i % 8 & 1; }

struct writing {
  struct outheap_region_copy copy;
  header head;
  unsigned char *tail;
  record **needs;
};

static void set_bit(struct writing *w, uintptr_t *word)
{
  size_t i = (size_t)((char *)word - w->copy.base - START) / WORD;
  w->tail[i / 8] |= (unsigned char)(1u << i % 8);
}

static bool is_own(struct writing const *w, uintptr_t a) { return a - (uintptr_t)w->copy.base < w->copy.used; }

/* Replaces an address by its offset from the base of the image; in a needed image, by its canonical address. */
static void normalise(struct writing *w, uintptr_t *word)
{
  uintptr_t a = *word;
  set_bit(w, word);
  if (is_own(w, a)) *word = a - (uintptr_t)w->copy.base;
  else
    for (size_t i = 0; i < w->head.needs; i++)
      if (a - (uintptr_t)w->needs[i]->base < w->needs[i]->used)
        *word = a - (uintptr_t)w->needs[i]->base + w->needs[i]->canonical;
}

static char *name_at(struct writing *w, size_t i)
{
  return (char *)w->tail + outheap_region_image_bitmap(w->copy.used) + i * NAME;
}

/* The same for a custom block, whose operations become an offset into the table of the header. Their identifier is
   written once. */
static bool normalise_custom(struct writing *w, value v)
{
  char const *identifier = Custom_ops_val(v)->identifier;
  size_t i = 0;
  while (i < w->head.customs && strcmp(name_at(w, i), identifier) != 0) i++;
  if (i == w->head.customs) {
    if (i == OUTHEAP_REGION_IMAGE_CUSTOMS || strlen(identifier) >= NAME)
      return outheap_region_error_is(&w->copy.error, OUTHEAP_REGION_UNSUPPORTED,
                                     "more than 40 types of custom blocks in an image, or a long identifier");
    strcpy(name_at(w, i), identifier);
    w->head.customs++;
  }
  if (outheap_region_custom_kind(Custom_ops_val(v)) == OUTHEAP_REGION_CUSTOM_BIGARRAY) {
    normalise(w, (uintptr_t *)&Caml_ba_array_val(v)->data);
    normalise(w, (uintptr_t *)&Caml_ba_array_val(v)->proxy);
  }
  set_bit(w, (uintptr_t *)v);
  *(uintptr_t *)v = TABLE + i * sizeof(struct custom_operations);
  return true;
}

/* After this the contents do not depend on where the copy lies, so a digest of them can be made. */
static bool normalise_all(struct writing *w)
{
  for (size_t at = START; at < w->copy.used;) {
    header_t h = *(header_t *)(w->copy.base + at);
    value v = (value)(w->copy.base + at + WORD);
    if (Tag_hd(h) < No_scan_tag) {
      for (mlsize_t i = 0; i < Wosize_hd(h); i++)
        if (Is_block(Field(v, i))) normalise(w, (uintptr_t *)&Field(v, i));
    }
    else if (Tag_hd(h) == Custom_tag && !normalise_custom(w, v)) return false;
    at += WORD + Wosize_hd(h) * WORD;
  }
  return true;
}

/* Turns offsets into addresses for the base that the digest has given. */
static void add_base(struct writing *w)
{
  uintptr_t *word = (uintptr_t *)(w->copy.base + START);
  for (size_t i = 0; i < (w->copy.used - START) / WORD; i++)
    if (bit(w->tail, i) && word[i] < w->copy.used) word[i] += w->head.base;
}

/* Writes all of the data. Returns 0 or errno. */
static int write_whole(int file, void const *data, size_t bytes)
{
  for (char const *p = data; bytes != 0;) {
    ssize_t n = write(file, p, bytes > (size_t)1 << 30 ? (size_t)1 << 30 : bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    p += n, bytes -= (size_t)n;
  }
  return 0;
}

/* Writes the whole image. Returns 0 or errno. */
static int write_all(struct writing *w, int file)
{
  unsigned char page[START] = { 0 };
  memcpy(page, &w->head, sizeof w->head);
  int e = write_whole(file, page, sizeof page);
  if (e == 0) e = write_whole(file, w->copy.base + START, w->copy.used - START);
  memset(page, 0, sizeof page);
  if (e == 0) e = write_whole(file, page, w->head.tail - w->copy.used);
  if (e == 0) e = write_whole(file, w->tail, outheap_region_image_tail(&w->head));
  return e != 0 ? e : fsync(file) == 0 ? 0 : errno;
}

/* --- the file --------------------------------------------------------------------------------------------------------
   The file has no name while it is written, where the file system can do that (O_TMPFILE), so that nothing is left if
   the process is killed. Elsewhere it has a temporary name in the same folder until it is complete; so it has, for a
   moment, if it replaces another file. A new file has the mode that the process creates files with; the kernel applies
   the mask, which belongs to the process: changing it, even for a moment, would be seen by other threads. A file that
   replaces another one has the mode of that one. */

enum { TRIES = 100, NOT_HERE = -1 };

struct target {
  char const *path;
  char *folder;
  char *temporary;    /* in the folder */
  bool exists;        /* a regular file is there already */
  struct stat before; /* what is known of it */
};

/* Finds out what is at the path, and allocates the names. */
static bool look_at_target(struct writing *w, struct target *t, char const *path)
{
  char const *slash = strrchr(path, '/');
  size_t length = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
  *t = (struct target){ .path = path };
  if (lstat(path, &t->before) == 0) {
    t->exists = S_ISREG(t->before.st_mode);
    if (!t->exists && !S_ISLNK(t->before.st_mode))
      return outheap_region_error_is(&w->copy.error, OUTHEAP_REGION_UNSUPPORTED,
                                     "the path is that of a folder, device, pipe or socket");
  }
  else if (errno != ENOENT) return outheap_region_error_system(&w->copy.error, "open", errno);
  t->folder = malloc(length + 1);
  t->temporary = malloc(length + 64);
  if (t->folder == NULL || t->temporary == NULL)
    return outheap_region_error_is(&w->copy.error, OUTHEAP_REGION_NO_MEMORY, NULL);
  memcpy(t->folder, slash == NULL ? "." : path, length);
  t->folder[length] = 0;
  return true;
}

/* Makes another temporary name. */
static void name_temporary(struct target *t)
{
  uint64_t n;
  struct timespec now;
  if (getrandom(&n, sizeof n, GRND_NONBLOCK) != (ssize_t)sizeof n) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    n = ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * 0x9E3779B97F4A7C15u ^ (uint64_t)getpid();
  }
  sprintf(t->temporary, "%s/.outheap-image-%016llx", t->folder, (unsigned long long)n);
}

/* Gives the file the mode of the one that it replaces, and its owner and group where the process may do that. */
static int set_mode(int file, struct target const *t)
{
  struct stat s;
  mode_t mode = t->before.st_mode & 0777;
  if (!t->exists) return 0;
  if (fstat(file, &s) != 0) return errno;
  if (s.st_uid != t->before.st_uid && fchown(file, t->before.st_uid, (gid_t)-1) != 0) {} /* then it is ours */
  if (s.st_gid != t->before.st_gid && fchown(file, (uid_t)-1, t->before.st_gid) != 0)
    mode = (mode & ~(mode_t)070) | (mode & 07) << 3; /* then the group may do what anybody may */
  return fchmod(file, mode) == 0 ? 0 : errno;
}

static mode_t first_mode(struct target const *t) { return t->exists ? 0600 : 0666; }

/* Writes a file without a name, and then gives it one. Returns 0, errno, or NOT_HERE: this is not possible here. */
static int write_unnamed(struct writing *w, struct target *t, char const **call)
{
  int file = open(t->folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, first_mode(t)), e;
  if (file < 0) return NOT_HERE;
  *call = "fchmod", e = set_mode(file, t);
  if (e == 0) *call = "write", e = write_all(w, file);
  char self[64];
  sprintf(self, "/proc/self/fd/%d", file);
  bool done = false;
  for (int i = 0; e == 0 && !done && i < TRIES; i++) {
    if (i != 0 || t->exists) name_temporary(t);
    char const *name = i == 0 && !t->exists ? t->path : t->temporary;
    if (linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) != 0) {
      if (errno != EEXIST) e = NOT_HERE;
      continue;
    }
    done = true;
    if (name == t->temporary && rename(name, t->path) != 0) {
      *call = "rename", e = errno;
      unlink(name);
    }
  }
  if (e == 0 && !done) e = NOT_HERE;
  if (close(file) != 0 && e == 0) *call = "close", e = errno;
  return e;
}

/* Writes a file with a temporary name, and renames it. Returns 0 or errno. */
static int write_named(struct writing *w, struct target *t, char const **call)
{
  int file = -1, e = EEXIST;
  *call = "open";
  for (int i = 0; file < 0 && e == EEXIST && i < TRIES; i++) {
    name_temporary(t);
    file = open(t->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, first_mode(t));
    e = file < 0 ? errno : 0;
  }
  if (file < 0) return e;
  *call = "fchmod", e = set_mode(file, t);
  if (e == 0) *call = "write", e = write_all(w, file);
  if (close(file) != 0 && e == 0) *call = "close", e = errno;
  if (e == 0 && rename(t->temporary, t->path) != 0) *call = "rename", e = errno;
  if (e != 0) unlink(t->temporary);
  return e;
}

static bool write_file(struct writing *w, char const *path)
{
  struct target t;
  char const *call = NULL;
  bool done = look_at_target(w, &t, path);
  if (done) {
    int e = write_unnamed(w, &t, &call);
    if (e == NOT_HERE) e = write_named(w, &t, &call);
    done = e == 0 || outheap_region_error_system(&w->copy.error, call, e);
  }
  if (done) { /* The entry of the folder is synchronised as well, where that is possible. */
    int folder = open(t.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      (void)fsync(folder);
      close(folder);
    }
  }
  free(t.folder);
  free(t.temporary);
  return done;
}

static bool write_image(struct writing *w, char const *path, struct outheap_region_image_schema const *schema)
{
  header *h = &w->head;
  *h = (header){ .format = OUTHEAP_REGION_IMAGE_FORMAT, .ocaml = outheap_region_image_ocaml(), .word = WORD,
                 .order = OUTHEAP_REGION_IMAGE_ORDER, .start = START,
                 .used = w->copy.used, .version = schema->version, .blocks = w->copy.blocks, .needs = h->needs };
  memcpy(h->magic, outheap_region_image_magic, sizeof h->magic);
  memcpy(h->schema, schema->name, sizeof h->schema);
  size_t room = outheap_region_image_bitmap(h->used) + OUTHEAP_REGION_IMAGE_CUSTOMS * NAME +
                h->needs * sizeof(struct outheap_region_image_need);
  w->tail = calloc(1, room);
  if (w->tail == NULL) return outheap_region_error_is(&w->copy.error, OUTHEAP_REGION_NO_MEMORY, NULL);
  uintptr_t root = (uintptr_t)w->copy.copied;
  h->root = root;
  if (Is_block(w->copy.copied)) {
    h->root = is_own(w, root) ? root - (uintptr_t)w->copy.base : 0;
    for (size_t i = 0; i < h->needs && !is_own(w, root); i++)
      if (root - (uintptr_t)w->needs[i]->base < w->needs[i]->used)
        h->root = root - (uintptr_t)w->needs[i]->base + w->needs[i]->canonical;
  }
  if (!normalise_all(w)) return false;
  for (size_t i = 0; i < h->needs; i++) {
    struct outheap_region_image_need need = { .base = w->needs[i]->canonical, .used = w->needs[i]->used };
    memcpy(need.digest, w->needs[i]->digest, sizeof need.digest);
    memcpy(w->tail + outheap_region_image_bitmap(h->used) + h->customs * NAME + i * sizeof need, &need, sizeof need);
  }
  h->tail = OUTHEAP_REGION_ROUND(h->used, (uint64_t)START);
  h->file = h->tail + outheap_region_image_tail(h);
  struct MD5Context m;
  outheap_region_image_digest_begin(&m, h);
  outheap_region_image_digest_add(&m, w->copy.base + START, h->used - START);
  outheap_region_image_digest_add(&m, w->tail, outheap_region_image_tail(h));
  caml_MD5Final(h->digest, &m);
  caml_MD5Init(&m);
  outheap_region_image_digest_add(&m, w->tail, outheap_region_image_tail(h));
  caml_MD5Final(h->tail_digest, &m);
  h->base = outheap_region_image_base_of(h->digest, h->used);
  if (Is_block(w->copy.copied) && h->root < h->used) h->root += h->base;
  add_base(w);
  outheap_region_image_digest_header(h, h->header_digest);
  return write_file(w, path);
}

static bool share_all(struct writing *w)
{
  struct outheap_region_vector others = { NULL, 0, 0 };
  bool done = true;
  for (size_t i = 0; done && i < w->head.needs; i++)
    done = outheap_region_vector_push(&others, (uintptr_t)w->needs[i]->base + START) &&
           outheap_region_vector_push(&others, (uintptr_t)w->needs[i]->base + w->needs[i]->used);
  done = done ? outheap_region_share(&w->copy, &others)
              : outheap_region_error_is(&w->copy.error, OUTHEAP_REGION_NO_MEMORY, NULL);
  outheap_region_vector_free(&others);
  return done;
}

bool outheap_region_image_save(value *root, char const *path, struct outheap_region_image_schema const *schema,
                               record **needs, size_t need_count, unsigned options, error *e,
                               uint64_t *waited)
{
  bool share = options & OUTHEAP_REGION_MAX_SHARING;
  struct writing w = { .needs = needs, .head = { .needs = need_count } };
  uintptr_t *stay = malloc((2 * need_count + 1) * sizeof *stay);
  if (stay == NULL) return outheap_region_error_is(e, OUTHEAP_REGION_NO_MEMORY, NULL);
  for (size_t i = 0; i < need_count; i++) {
    stay[2 * i] = (uintptr_t)needs[i]->base + START;
    stay[2 * i + 1] = (uintptr_t)needs[i]->base + needs[i]->used;
  }
  w.copy = (struct outheap_region_copy){ .root = root, .for_image = true, .start = START, .stay = stay,
                                         .stay_count = need_count, .proxy_at = OUTHEAP_REGION_IMAGE_PROXY,
                                         .exclusive = options & OUTHEAP_REGION_EXCLUSIVE };
  bool done = outheap_region_snapshot_make(&w.copy, waited);
  if (done) {
    caml_enter_blocking_section(); /* the copy is ours alone */
    done = (!share || share_all(&w)) && write_image(&w, path, schema);
    outheap_region_snapshot_drop(&w.copy);
    caml_leave_blocking_section();
  }
  free(stay);
  free(w.tail);
  *e = w.copy.error;
  return done;
}

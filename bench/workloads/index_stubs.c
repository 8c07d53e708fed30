/* SPDX-License-Identifier: MIT */
/* A hash table of C that maps words to OCaml values. Each entry owns one root. */
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <boxroot.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  boxroot data;               /* the OCaml value that this word maps to */
  struct entry *next, *newer; /* in the bucket; in order of insertion */
  size_t hash, length;
  char word[];
} entry;

typedef struct {
  size_t mask, size, most; /* the number of buckets - 1; entries now; entries at most */
  entry *oldest, **newest;
  entry *buckets[];
} table;

static size_t hash_word(char const *word, size_t length)
{
  size_t hash = 5381;
  while (length--) hash = hash * 33 + (unsigned char)*word++;
  return hash ^ hash >> 17;
}

/* The link to the entry of a word, or to the end of its bucket. */
static entry **find(table *t, char const *word, size_t length, size_t hash)
{
  entry **link = &t->buckets[hash & t->mask];
  while (*link && ((*link)->hash != hash || (*link)->length != length || memcmp((*link)->word, word, length)))
    link = &(*link)->next;
  return link;
}

static void evict_oldest(table *t)
{
  entry *e = t->oldest;
  *find(t, e->word, e->length, e->hash) = e->next;
  if (!(t->oldest = e->newer)) t->newest = &t->oldest;
  t->size--;
  boxroot_delete(e->data); /* the OCaml value may now be collected */
  free(e);
}

/* Maps a word to an OCaml value: a new root for a new word; otherwise the root it has gets a new value. */
static void put(table *t, char const *word, size_t length, value v)
{
  size_t hash = hash_word(word, length);
  entry **link = find(t, word, length, hash), *e = *link;
  if (e) {
    if (!boxroot_modify(&e->data, v)) abort();
    return;
  }
  e = *link = malloc(sizeof *e + length);
  if (!e) abort();
  *e = (entry){.data = boxroot_create(v), .hash = hash, .length = length};
  if (!e->data) abort();
  memcpy(e->word, word, length);
  *t->newest = e;
  t->newest = &e->newer;
  if (++t->size > t->most) evict_oldest(t);
}

/* The OCaml value that a word maps to, or 0. The table keeps it alive until it is replaced or evicted. */
static value get(table *t, char const *word, size_t length)
{
  entry *e = *find(t, word, length, hash_word(word, length));
  return e ? boxroot_get(e->data) : 0;
}

/* What OCaml sees: tables are immediates, as they are no business of the GC. */

#define Table_val(v) ((table *)((v) - 1))

value index_table_create(value buckets, value most)
{
  size_t n = Long_val(buckets);
  table *t = calloc(1, sizeof *t + n * sizeof *t->buckets);
  if (!t || !boxroot_setup()) abort();
  t->mask = n - 1;
  t->most = Long_val(most);
  t->newest = &t->oldest;
  return (value)t + 1;
}

value index_table_put(value t, value word, value v)
{
  put(Table_val(t), String_val(word), caml_string_length(word), v);
  return Val_unit;
}

value index_table_clear(value t)
{
  while (Table_val(t)->size) evict_oldest(Table_val(t));
  return Val_unit;
}

static int is_letter(unsigned char c) { return (unsigned)((c | 32) - 'a') < 26 || c >= 128; }

/* Reads a text and calls back for each of its words: `first` for one that `postings` does not know, `again` with what
   it maps to otherwise; the result is what the word maps to from now on. When `handlers` has a closure for the word,
   calls it too. */
static void scan(table *postings, table *handlers, char const *text, size_t length, value const *first,
                 value const *again)
{
  for (size_t i = 0, start; i < length;) {
    while (i < length && !is_letter(text[i])) i++;
    for (start = i; i < length && is_letter(text[i]);) i++;
    if (i == start) break;
    char const *word = text + start;
    value known = get(postings, word, i - start);
    value posting = known ? caml_callback2(*again, known, Val_long(start))
                          : caml_callback2(*first, caml_alloc_initialized_string(i - start, word), Val_long(start));
    put(postings, word, i - start, posting);
    value handler = get(handlers, word, i - start);
    if (handler) caml_callback(handler, Val_long(start));
  }
}

static char *text;
static size_t text_length;

value index_load(value bytes)
{
  text_length = caml_string_length(bytes);
  text = malloc(text_length);
  if (!text) abort();
  memcpy(text, String_val(bytes), text_length);
  return Val_unit;
}

value index_scan(value postings, value handlers, value first, value again)
{
  CAMLparam2(first, again);
  scan(Table_val(postings), Table_val(handlers), text, text_length, &first, &again);
  CAMLreturn(Val_unit);
}

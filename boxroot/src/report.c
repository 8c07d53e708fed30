/* SPDX-License-Identifier: MIT */
#include "report.h"
#include "delete.h"
#include "os.h"
#include "sample.h"
#include "status.h"
#include "symbols.h"
#include <boxroot/report.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* A row counts roots or cells that have the same key. Its name is looked up when it is printed. */
typedef enum { ROOTS_STORED, ROOTS_CREATED, CELLS_REGISTERED } section;
enum { IN_OBJECT = BXR_KIND_BLOCK + 1, NAMED }; /* kinds of cells, beside what those in allocated memory hold */
typedef struct row {
  section section;
  unsigned kind;
  uintptr_t which;
  uint64_t count, before;
  unsigned sample; /* of a row of creations: whose calls stand for all of that key */
} row;

typedef struct row_table {
  row *rows;
  size_t n, most;
  bool is_complete; /* there was memory */
} row_table;

static int by_row_key(void const *first, void const *second)
{
  row const *a = first, *b = second;
  if (a->section != b->section) return a->section < b->section ? -1 : 1;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  return (a->which > b->which) - (a->which < b->which);
}

static int by_row_count(void const *first, void const *second)
{
  row const *a = first, *b = second;
  if (a->section != b->section) return a->section < b->section ? -1 : 1;
  return a->count != b->count ? (a->count < b->count) - (a->count > b->count) : by_row_key(a, b);
}

/* Rows of one key become one. */
static void merge_rows(row_table *t)
{
  size_t n = 0;
  if (t->n > 0) qsort(t->rows, t->n, sizeof(row), by_row_key);
  for (size_t i = 0; i < t->n; i++)
    if (n > 0 && by_row_key(&t->rows[n - 1], &t->rows[i]) == 0) t->rows[n - 1].count += t->rows[i].count;
    else t->rows[n++] = t->rows[i];
  t->n = n;
}

static void count_row(row_table *t, row r)
{
  if (t->n > 0 && by_row_key(&t->rows[t->n - 1], &r) == 0) {
    t->rows[t->n - 1].count += r.count;
    return;
  }
  if (t->n == t->most) merge_rows(t);
  if (t->n >= t->most / 2 || t->n == t->most) {
    size_t most = 2 * t->most + 64;
    row *larger = realloc(t->rows, most * sizeof(row));
    if (larger != NULL) {
      t->rows = larger;
      t->most = most;
    } else if (t->n == t->most) {
      t->is_complete = false;
      return;
    }
  }
  t->rows[t->n++] = r;
}

static uint64_t total_of(row_table const *t, section s)
{
  uint64_t n = 0;
  for (size_t i = 0; i < t->n; i++) n += t->rows[i].section == s ? t->rows[i].count : 0;
  return n;
}

/* --- what is counted ---------------------------------------------------------------------------------------------- */

typedef struct report {
  FILE *out;
  row_table table;
  bxr_symbols *symbols;
  bool in_scan;
  bool has_registered;
} report;

static row_table previous; /* of the report before */
static unsigned reports;

enum { MOST_NAMED = 256 };
static bxr_named named[MOST_NAMED]; /* as they last were when the world was not stopped */
static size_t n_named;

static void see_pool(void *data, bxr_census const *c)
{
  count_row(&((report *)data)->table, (row){ ROOTS_STORED, 0, (uintptr_t)c->storage, .count = c->roots });
  bxr_sample_add(c);
}

static uintptr_t function_of(report *r, void *call)
{
  bxr_symbol s = bxr_symbols_find(r->symbols, (uintptr_t)call - 1);
  return s.name != NULL ? s.start : (uintptr_t)call;
}

/* Did the library make this call? Its function has a name of ours, or is local to our source file. */
static bool is_ours(report *r, void *call)
{
  bxr_symbol s = bxr_symbols_find(r->symbols, (uintptr_t)call - 1);
  if (s.name != NULL && (strncmp(s.name, "bxr_", 4) == 0 || strncmp(s.name, "boxroot_", 8) == 0)) return true;
  char const *us = bxr_symbols_find(r->symbols, (uintptr_t)&see_pool).source;
  return s.source != NULL && us != NULL && strcmp(s.source, us) == 0;
}

/* The functions of a sample's calls, from the one that called the library outwards, at most so many: each is given by
   its first call; NULL after the last one. */
enum { CALLS_SHOWN = 6 };
static void outer_calls(report *r, unsigned sample, void *calls[CALLS_SHOWN])
{
  enum { MOST_OURS = 8 };
  void *const *all = bxr_sample_calls(sample);
  int first = 0;
  for (int i = 0; i < MOST_OURS && all[i] != NULL; i++)
    if (is_ours(r, all[i])) first = i + 1;
  for (int i = 0; i < CALLS_SHOWN; i++) calls[i] = NULL;
  uintptr_t last = 0;
  for (int i = first, n = 0; i < BXR_SAMPLE_CALLS && all[i] != NULL && n < CALLS_SHOWN; i++) {
    uintptr_t function = function_of(r, all[i]);
    if (function != last) calls[n++] = all[i];
    last = function;
  }
}

/* Samples whose calls are of the same functions have one key. */
static void see_calls(void *data, unsigned sample, uint64_t roots)
{
  report *r = data;
  void *calls[CALLS_SHOWN];
  outer_calls(r, sample, calls);
  uintptr_t key = 0;
  for (int i = 0; i < CALLS_SHOWN && calls[i] != NULL; i++)
    key = (key ^ function_of(r, calls[i])) * (uintptr_t)0x9e3779b97f4a7c15u;
  count_row(&r->table, (row){ ROOTS_CREATED, 0, key, .count = roots, .sample = sample });
}

static void see_cell(void *data, value const *cell)
{
  report *r = data;
  bxr_symbol s = bxr_symbols_find(r->symbols, (uintptr_t)cell);
  bxr_kind k = { (bxr_kind_of_value)IN_OBJECT, s.start };
  if (s.object == NULL) k = bxr_runtime_kind(bxr_load_relaxed(cell), r->in_scan);
  for (size_t i = 0; i < n_named; i++)
    if (named[i].cell == cell) k = (bxr_kind){ (bxr_kind_of_value)NAMED, (uintptr_t)named[i].name };
  count_row(&r->table, (row){ CELLS_REGISTERED, k.kind, k.which, .count = 1 });
}

static void take_all(report *r)
{
  bool locked = r->in_scan;
  if (!locked && bxr_load_acquire(&bxr_status) == BOXROOT_RUNNING) {
    bxr_runtime_check_lock();
    locked = bxr_runtime_self() != NULL;
  }
  if (locked && !r->in_scan)
    for (bxr_domain *d = &bxr_domains[bxr_runtime_domain()]; d != NULL; d = d->also) bxr_remote_flush(d);
  bxr_sample_begin();
  bxr_census_take(see_pool, r);
  if (bxr_sample_interval() > 0) bxr_sample_each(see_calls, r);
  if (locked) {
    if (!r->in_scan) n_named = bxr_runtime_named_values(named, MOST_NAMED);
    r->has_registered = bxr_runtime_other_roots(see_cell, r);
  }
  merge_rows(&r->table);
  for (size_t i = 0, k = 0; i < r->table.n; i++) {
    while (k < previous.n && by_row_key(&previous.rows[k], &r->table.rows[i]) < 0) k++;
    if (k < previous.n && by_row_key(&previous.rows[k], &r->table.rows[i]) == 0)
      r->table.rows[i].before = previous.rows[k].count;
  }
}

/* --- printing ----------------------------------------------------------------------------------------------------- */

static void print_symbol(report *r, uintptr_t address)
{
  bxr_symbol s = bxr_symbols_find(r->symbols, address);
  if (s.object == NULL) fprintf(r->out, "%p", (void *)address);
  else if (s.name == NULL) fprintf(r->out, "%s+0x%zx", s.object, (size_t)s.offset);
  else fputs(s.name, r->out);
  if (s.source != NULL) fprintf(r->out, " (%s)", s.source);
  if (s.name != NULL && strcmp(s.object, BXR_SYMBOLS_PROGRAM) != 0) fprintf(r->out, " in %s", s.object);
}

static void print_stack(report *r, unsigned sample)
{
  void *calls[CALLS_SHOWN];
  outer_calls(r, sample, calls);
  if (calls[0] == NULL) fputs("other places", r->out);
  for (int i = 0; i < CALLS_SHOWN && calls[i] != NULL; i++) {
    fputs(i == 0 ? "" : " < ", r->out);
    print_symbol(r, (uintptr_t)calls[i] - 1); /* the call itself, not the instruction after it */
  }
}

static char const *name_of_tag(uintptr_t tag)
{
  switch (tag) {
  case String_tag: return "a string";
  case Double_tag: return "a float";
  case Double_array_tag: return "an array of floats";
  case Abstract_tag: return "an abstract block";
  case Object_tag: return "an object";
  case Infix_tag: return "a closure";
  default: return NULL;
  }
}

static void print_registered(report *r, row const *w)
{
  char const *name;
  if (w->kind == IN_OBJECT) {
    bxr_symbol s = bxr_symbols_find(r->symbols, w->which);
    if (s.name != NULL) print_symbol(r, w->which);
    else fprintf(r->out, "variables without names in %s", s.object);
    return;
  }
  if (w->kind == NAMED) {
    fprintf(r->out, "the value that is named %s (Callback.register)", (char const *)w->which);
    return;
  }
  fputs("allocated memory, holding ", r->out);
  switch (w->kind) {
  case BXR_KIND_IMMEDIATE: fputs("an integer or a constant", r->out); break;
  case BXR_KIND_YOUNG: fputs("a young value", r->out); break;
  case BXR_KIND_FOREIGN: fputs("a pointer that is not to a value", r->out); break;
  case BXR_KIND_CLOSURE:
    fputs("a closure of ", r->out);
    print_symbol(r, w->which);
    break;
  case BXR_KIND_CUSTOM:
    fprintf(r->out, "a custom block %s", bxr_runtime_custom_name(w->which));
    break;
  default:
    name = name_of_tag(w->which);
    if (name != NULL) fputs(name, r->out);
    else fprintf(r->out, "a block of tag %u", (unsigned)w->which);
  }
}

static void print_row(report *r, row const *w)
{
  if (w->section == ROOTS_CREATED) print_stack(r, w->sample);
  else if (w->section == CELLS_REGISTERED) print_registered(r, w);
  else if (w->which == 0) fputs("in no storage", r->out);
  else fprintf(r->out, "in storage \"%s\"", ((bxr_storage *)w->which)->text);
}

static void print_section(report *r, section s)
{
  enum { MOST_SHOWN = 40 };
  size_t shown = 0;
  uint64_t rest = 0;
  for (size_t i = 0; i < r->table.n; i++) {
    row const *w = &r->table.rows[i];
    if (w->section != s) continue;
    if (shown++ >= MOST_SHOWN) {
      rest += w->count;
      continue;
    }
    fprintf(r->out, "boxroot: %9llu ", (unsigned long long)w->count);
    if (reports > 0) fprintf(r->out, "%+9lld ", (long long)(w->count - w->before));
    print_row(r, w);
    fputc('\n', r->out);
  }
  if (rest > 0)
    fprintf(r->out, "boxroot: %9llu %sat %zu other places\n", (unsigned long long)rest, reports > 0 ? "          " : "",
            shown - MOST_SHOWN);
}

static void print_total(report *r, section s, char const *what)
{
  uint64_t now = total_of(&r->table, s), before = total_of(&previous, s);
  fprintf(r->out, "boxroot: %llu", (unsigned long long)now);
  if (reports > 0) fprintf(r->out, " (%+lld)", (long long)(now - before));
  fprintf(r->out, " %s\n", what);
}

static void print_all(report *r, char const *when)
{
  fprintf(r->out, "boxroot: --- report %u%s%s\n", reports + 1, when,
          reports > 0 ? "; with changes since the one before" : "");
  print_total(r, ROOTS_STORED, "live roots of Boxroot");
  print_section(r, ROOTS_STORED);
  if (bxr_sample_interval() > 0) {
    fprintf(r->out, "boxroot: created by, as one creation in %u shows\n", bxr_sample_interval());
    print_section(r, ROOTS_CREATED);
  } else fputs("boxroot: who created them is not known: sample=N in BOXROOT_REPORT records it\n", r->out);
  if (r->has_registered) {
    print_total(r, CELLS_REGISTERED, "cells that are registered with OCaml's runtime");
    print_section(r, CELLS_REGISTERED);
  } else fputs("boxroot: registered cells are left out: the library is not set up, or no lock held\n", r->out);
  if (!r->table.is_complete) fputs("boxroot: some are missing: no memory\n", r->out);
}

/* --- asking for one ----------------------------------------------------------------------------------------------- */

static bool report_lock;

static bool make_report(char const *file, char const *when, bool in_scan)
{
  FILE *out = file == NULL ? stderr : fopen(file, "ae");
  if (out == NULL) return false;
  bxr_thread_lock(&report_lock);
  report r = { .out = out, .table = { .is_complete = true }, .symbols = bxr_symbols_open(), .in_scan = in_scan };
  take_all(&r);
  if (r.table.n > 0) qsort(r.table.rows, r.table.n, sizeof(row), by_row_count);
  print_all(&r, when);
  free(previous.rows);
  merge_rows(&r.table);
  previous = r.table;
  reports++;
  bxr_symbols_close(r.symbols);
  bxr_thread_unlock(&report_lock);
  bool is_written = file == NULL || fclose(out) == 0;
  return is_written && r.table.is_complete;
}

bool boxroot_report(char const *file) { return make_report(file, "", false); }

bool boxroot_sample(uint32_t n) { return bxr_sample_start(n); }

void boxroot_cap(uint64_t roots, void (*reached)(uint64_t live, void *data), void *data)
{
  bxr_census_set_cap(roots, reached, data);
}

/* --- the environment ---------------------------------------------------------------------------------------------- */

static char *to_file;    /* NULL: the standard error output */
static bool signal_came; /* (atomic) */

/* A report that the environment asked for: a file that cannot be opened does not lose it. */
static void report_as_asked(char const *when, bool in_scan)
{
  if (!make_report(to_file, when, in_scan) && to_file != NULL) (void)make_report(NULL, when, in_scan);
}

void bxr_report_in_scan(void)
{
  bool came = true;
  if (BXR_LIKELY(!bxr_load_relaxed(&signal_came))) return;
  if (bxr_cas_acq_rel(&signal_came, &came, false)) report_as_asked(", by a signal", true);
}

static void when_exiting(void) { report_as_asked(", at exit", false); }

static void on_signal(int number)
{
  (void)number;
  bxr_store_relaxed(&signal_came, true);
}

static bool is_word(char const *text, size_t length, char const *word)
{
  return strlen(word) == length && strncmp(text, word, length) == 0;
}

static int signal_of(char const *word, size_t length)
{
  static struct { char const *name; int number; } const known[] = { { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
                                                                     { "HUP", SIGHUP } };
  for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
    if (is_word(word, length, known[i].name)) return known[i].number;
  char *end;
  long number = strtol(word, &end, 10);
  return end == word + length && number > 0 && number < 65 ? (int)number : 0;
}

/* The handler runs on the alternative stack: OCaml 5's own stacks are small. The object stays, as the handler does. */
static bool handle_signal(int number)
{
  struct sigaction there, ours = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };
  n_named = bxr_runtime_named_values(named, MOST_NAMED);
  if (number == 0 || sigaction(number, NULL, &there) != 0) return false;
  if ((there.sa_flags & SA_SIGINFO) != 0 || there.sa_handler != SIG_DFL) return false;
  bxr_object_pin();
  return sigaction(number, &ours, NULL) == 0;
}

static bool obey_word(char const *word, size_t length)
{
  if (is_word(word, length, "exit")) bxr_object_at_exit(when_exiting);
  else if (strncmp(word, "sample=", 7) == 0) {
    char *end;
    unsigned long n = strtoul(word + 7, &end, 10);
    return end == word + length && end > word + 7 && n <= UINT32_MAX && bxr_sample_start((uint32_t)n);
  } else return handle_signal(signal_of(word, length));
  return true;
}

void bxr_report_setup(void)
{
  static bool done; /* a teardown may have come between */
  char const *words = getenv("BOXROOT_REPORT");
  if (words == NULL || done || getuid() != geteuid() || getgid() != getegid()) return;
  done = true;
  while (*words != '\0') {
    size_t length = strcspn(words, ",");
    if (strncmp(words, "to=", 3) == 0) {
      to_file = strdup(words + 3);
      break;
    }
    if (length > 0 && !obey_word(words, length))
      fprintf(stderr, "boxroot: BOXROOT_REPORT: \"%.*s\" cannot be done: exit, USR1, USR2, HUP or a number of a signal "
                      "without a handler, sample=N, to=FILE\n", (int)length, words);
    words += length + (words[length] == ',');
  }
}

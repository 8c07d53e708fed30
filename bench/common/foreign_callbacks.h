/* SPDX-License-Identifier: MIT */
/* A small binding as somebody writes it who needs callbacks: a table of C whose entries keep an OCaml closure alive
   each. An entry is malloc'ed and stays where it is, since a C library would be given its address as `void *data`. Who
   includes this defines `element` and, for it,
     element_begin(&e, v)   makes it hold v
     element_set(&e, v)     makes it hold v instead
     element_get(&e)        what it holds
     element_end(&e)        ends it. */
#ifndef BENCH_FOREIGN_CALLBACKS_H
#define BENCH_FOREIGN_CALLBACKS_H

#include <caml/callback.h>
#include <caml/mlvalues.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  long calls; /* what a binding keeps beside the closure */
  element closure;
} entry;

static entry **table; /* by number; NULL: removed */
static long used, room;

static void *checked_block(void *block)
{
  if (!block) {
    fputs("no more memory for callbacks\n", stderr);
    abort();
  }
  return block;
}

value callbacks_add(value closure)
{
  if (used == room) {
    room = room ? 2 * room : 64;
    table = checked_block(realloc(table, (size_t)room * sizeof *table));
  }
  entry *e = checked_block(malloc(sizeof *e));
  e->calls = 0;
  element_begin(&e->closure, closure);
  table[used] = e;
  return Val_long(used++);
}

value callbacks_replace(value number, value closure)
{
  element_set(&table[Long_val(number)]->closure, closure);
  return Val_unit;
}

value callbacks_call(value number, value argument)
{
  entry *e = table[Long_val(number)];
  e->calls++;
  return caml_callback(element_get(&e->closure), argument);
}

value callbacks_remove(value number)
{
  entry *e = table[Long_val(number)];
  table[Long_val(number)] = NULL;
  element_end(&e->closure);
  free(e);
  return Val_unit;
}

#endif

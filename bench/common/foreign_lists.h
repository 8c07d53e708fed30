/* SPDX-License-Identifier: MIT */
/* The list monad in C, as a foreign library would have it: malloc'ed nodes, each with an element that keeps an OCaml
   value alive, and closures that it calls back. A list belongs to whoever has it; each function takes over the lists it
   is given. Who includes this defines `element` and, for it,
     element_begin(&e, v)   makes it hold v
     element_move(&to, &e)  hands over what e holds to another, new element
     element_end(&e)        ends it; what it held. */
#ifndef BENCH_FOREIGN_LISTS_H
#define BENCH_FOREIGN_LISTS_H

#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct node {
  struct node *next;
  element held;
} node;

#define Node_val(list) ((node *)((list) - 1))
#define Val_node(first) ((value)(first) + 1)

static bool persistent;

static node *new_node(void)
{
  node *n = malloc(sizeof *n);
  if (!n) {
    fputs("no more memory for nodes\n", stderr);
    abort();
  }
  return n;
}

/* All of a list, in the reverse order, and then the other. Persistent: with new nodes. */
static node *plus(node *list, node *tail)
{
  while (list) {
    node *rest = list->next, *n = list;
    if (persistent) {
      n = new_node();
      element_move(&n->held, &list->held);
      free(list);
    }
    n->next = tail;
    tail = n;
    list = rest;
  }
  return tail;
}

static value take_first(node **list)
{
  node *first = *list;
  *list = first->next;
  value v = element_end(&first->held);
  free(first);
  return v;
}

value lists_style(value is_persistent)
{
  persistent = Bool_val(is_persistent);
  return Val_unit;
}

value lists_return(value v)
{
  node *n = new_node();
  n->next = NULL;
  element_begin(&n->held, v);
  return Val_node(n);
}

value lists_plus(value list, value tail) { return Val_node(plus(Node_val(list), Node_val(tail))); }

value lists_bind(value list, value f)
{
  CAMLparam1(f);
  node *rest = Node_val(list), *all = NULL;
  while (rest) all = plus(Node_val(caml_callback(f, take_first(&rest))), all);
  CAMLreturn(Val_node(all));
}

value lists_fold(value f, value so_far, value list)
{
  CAMLparam2(f, so_far);
  node *rest = Node_val(list);
  while (rest) so_far = caml_callback2(f, so_far, take_first(&rest));
  CAMLreturn(so_far);
}

#endif

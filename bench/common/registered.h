/* SPDX-License-Identifier: MIT */
/* A word that the runtime knows as a global root, as a generational one (GENERATIONAL), or not at all
   (UNREGISTERED). */
#ifndef BENCH_REGISTERED_H
#define BENCH_REGISTERED_H

#include <caml/memory.h>
#include <caml/mlvalues.h>

static inline void word_register(value *word)
{
#ifdef GENERATIONAL
  caml_register_generational_global_root(word);
#elif !defined(UNREGISTERED)
  caml_register_global_root(word);
#endif
}

static inline void word_modify(value *word, value v)
{
#ifdef GENERATIONAL
  caml_modify_generational_global_root(word, v);
#else
  *word = v;
#endif
}

static inline void word_remove(value *word)
{
#ifdef GENERATIONAL
  caml_remove_generational_global_root(word);
#elif !defined(UNREGISTERED)
  caml_remove_global_root(word);
#endif
}

#endif

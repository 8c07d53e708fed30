/* SPDX-License-Identifier: MIT */
#include "linear_text.h"
#include <string.h>

typedef struct outheap_linear_pool pool;

struct outheap_linear_group outheap_linear_texts = { NULL, OUTHEAP_LINEAR_WITHIN };

/* Fields of the cells for strings of so many words: an eighth is unused, at most. */
static mlsize_t room_for(mlsize_t words)
{
  mlsize_t step = words <= 8 ? 1 : words <= 16 ? 2 : words <= 32 ? 4 : 6;
  mlsize_t fields = (words + step - 1) / step * step;
  return fields < OUTHEAP_LINEAR_MOST ? fields : OUTHEAP_LINEAR_MOST;
}

/* All strings are of one type, so all tables share their pools; where several domains run, each takes cells from one of
   some parts, so that they seldom meet. */
#define PARTS 4
static pool *text_pools[PARTS][OUTHEAP_LINEAR_MOST + 1]; /* those of the group; NULL: not made, or not looked up yet */

static unsigned part_of_domain(void)
{
#if OCAML_VERSION >= 50000
  return outheap_linear_alone() ? 0 : (unsigned)Caml_state->id % PARTS;
#else
  return 0;
#endif
}

static pool *text_pool(unsigned part, mlsize_t fields)
{
  /* Acquire: what was written to a pool before it was put there is seen. */
  pool *p = __atomic_load_n(&text_pools[part][fields], __ATOMIC_ACQUIRE);
  if (p != NULL) return p;
  uint64_t shape = (uint64_t)part << 32 | outheap_linear_shape(fields, String_tag);
  p = outheap_linear_group_pool(&outheap_linear_texts, fields, shape);
  if (p != NULL) __atomic_store_n(&text_pools[part][fields], p, __ATOMIC_RELEASE);
  return p;
}

value outheap_linear_text_new(value string)
{
  unsigned part = part_of_domain();
  mlsize_t words = Wosize_val(string), fields = room_for(words);
  pool *p = text_pool(part, fields);
  value cell = p == NULL ? 0 : outheap_linear_cell_new(p, words, String_tag, false);
  for (int more = 0; cell == 0 && more < 2 && fields < OUTHEAP_LINEAR_MOST; more++) {
    fields = room_for(fields + 1);
    pool *larger = __atomic_load_n(&text_pools[part][fields], __ATOMIC_ACQUIRE);
    if (larger != NULL) cell = outheap_linear_cell_freed(larger, words, String_tag);
  }
  if (cell == 0 && p != NULL) cell = outheap_linear_cell_new(p, words, String_tag, true);
  if (cell != 0) memcpy((void *)cell, (void *)string, words * sizeof(value));
  return cell;
}

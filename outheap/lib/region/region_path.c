/* SPDX-License-Identifier: MIT */
#include "region_path.h"
#include "region_vector.h"
#include <stdio.h>

#define WORD OUTHEAP_REGION_WORD
enum { ENDS = 6 }; /* steps that are shown at each end of a long way */

/* A block's parent is the first block that refers to it. Blocks were appended in that order, so parents are found in
   one pass: `next` is the first block that has none yet. */
struct step { size_t parent, field; }; /* by number of block; 0 is the root */

static size_t append_step(char *text, size_t size, size_t length, size_t field, bool large)
{
  int n = snprintf(text + length, size - length, large ? "[%zu]" : ".%zu", field);
  return n < 0 || (size_t)n >= size - length ? length : length + (size_t)n;
}

void outheap_region_path(char const *base, size_t start, size_t at, mlsize_t field, size_t count, char *text,
                         size_t size)
{
  struct outheap_region_vector parents = { NULL, 0, 0 }, fields = { NULL, 0, 0 }, sizes = { NULL, 0, 0 };
  text[0] = 0;
  header_t root = *(header_t const *)(base + start);
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
    /* From the field to the root, then turned round. */
    struct outheap_region_vector way = { NULL, 0, 0 };
    for (size_t b = last; known && b != 0; b = parents.word[b]) known = outheap_region_vector_push(&way, b);
    size_t length = 0, n = way.count;
    for (size_t i = 0; known && i < n; i++) {
      if (n > 2 * ENDS + 1 && i == ENDS) {
        int more = snprintf(text + length, size - length, "…(%zu)…", n - 2 * ENDS);
        if (more > 0 && (size_t)more < size - length) length += (size_t)more;
        i = n - ENDS;
      }
      size_t b = way.word[n - 1 - i];
      length = append_step(text, size, length, fields.word[b], sizes.word[parents.word[b]] > 16);
    }
    length = append_step(text, size, length, field, sizes.word[last] > 16);
    outheap_region_vector_free(&way);
  }
  outheap_region_vector_free(&parents);
  outheap_region_vector_free(&fields);
  outheap_region_vector_free(&sizes);
}

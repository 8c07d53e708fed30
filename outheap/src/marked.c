/* SPDX-License-Identifier: MIT */
#include "marked.h"

struct oh_marked oh_marked;

void oh_marked_start(uintptr_t base, uintptr_t size)
{
  oh_marked = (struct oh_marked){ base, size, size != 0 };
}

void oh_marked_claimed(uintptr_t base, uintptr_t size)
{
  uintptr_t at = base - oh_marked.base; /* wraps around below the range, and is too large then */
  if (at > oh_marked.size || size > oh_marked.size - at) oh_store_seq_cst(&oh_marked.whole, false);
}

/* SPDX-License-Identifier: MIT */
#include "linear_slots.h"
#include <stdlib.h>

#define SLOTS 0xFFFFFFFDu

struct outheap_linear_slots *outheap_linear_slots_new(void)
{
  struct outheap_linear_slots *s = outheap_linear_lock_lines(sizeof *s);
  if (s == NULL) return NULL;
  outheap_linear_lock_take(NULL);
  outheap_linear_lock_announce(&s->lock);
  outheap_linear_lock_give(NULL);
  return s;
}

intnat outheap_linear_slots_take(struct outheap_linear_slots *s)
{
  intnat number = -1;
  bool entered = outheap_linear_lock_enter(&s->lock);
  if (s->free_count != 0) number = s->free[--s->free_count];
  else if (s->begun < SLOTS) {
    /* There is room for every number from the beginning, so that giving one back cannot fail. */
    if (s->begun == s->room) {
      size_t room = s->room == 0 ? 1024 : 2 * s->room;
      uint32_t *free = realloc(s->free, room * sizeof *free);
      if (free != NULL) {
        s->free = free;
        s->room = room;
      }
    }
    if (s->begun < s->room) number = (intnat)s->begun++;
  }
  outheap_linear_lock_leave(&s->lock, entered);
  return number;
}

void outheap_linear_slots_give(struct outheap_linear_slots *s, uint32_t number)
{
  bool entered = outheap_linear_lock_enter(&s->lock);
  s->free[s->free_count++] = number;
  outheap_linear_lock_leave(&s->lock, entered);
}

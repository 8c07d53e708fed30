/* SPDX-License-Identifier: MIT */
/* Of spaces: the counters, all locks at once, the validator. */
#include "check.h"
#include "lock.h"
#include "pages.h"
#include "space_impl.h"

void oh_pages_count(enum oh_space_id id, struct oh_space_counters *result)
{
  struct oh_reserve_counters r;
  struct oh_space *s = &oh_spaces[id];
  pthread_mutex_lock(&s->lock);
  *result = (struct oh_space_counters){ .reserved = s->reserved, .ahead = s->reserved - s->seen, .used = s->used, .committed = s->committed,
    .dirty = s->dirty, .commits = s->commits, .decommits = s->decommits, .advises = s->advises };
  oh_reserve_count(id, &r);
  result->reservations = r.reservations;
  result->tainted = r.tainted;
  pthread_mutex_unlock(&s->lock);
}

void oh_spaces_lock(void)
{
  for (int i = 0; i < OH_SPACES; i++) pthread_mutex_lock(&oh_spaces[i].lock);
}
void oh_spaces_unlock(void)
{
  for (int i = OH_SPACES; i-- > 0;) pthread_mutex_unlock(&oh_spaces[i].lock);
}

void oh_space_validate(enum oh_space_id id)
{
  struct oh_space *s = &oh_spaces[id];
  oh_extents_validate(&s->free);
  size_t reserved = 0, busy = 0, committed = 0, dirty = 0, seen = 0, unused = 0;
  for (struct oh_piece_record *p = s->pieces; p != NULL; p = p->next) {
    uintptr_t end = p->piece.base + p->piece.bytes;
    OH_CHECK(p->piece.base % OH_PAGE == 0 && p->piece.bytes % OH_PAGE == 0 && p->piece.base < end);
    for (uintptr_t page = p->piece.base; page < end; page += OH_PAGE) {
      uint8_t bits = oh_page_bits(page);
      bool is_free = oh_extents_meet(&s->free, page, OH_PAGE);
      OH_CHECK((bits & OH_OWNER) == (unsigned)id + 1);
      OH_CHECK(!(bits & OH_DIRTY) || (is_free && (bits & OH_COMMITTED)));
      OH_CHECK(is_free || (bits & OH_SEEN));
      reserved += OH_PAGE;
      unused += is_free ? OH_PAGE : 0;
      busy += !is_free && (bits & OH_COMMITTED) ? OH_PAGE : 0;
      committed += bits & OH_COMMITTED ? OH_PAGE : 0;
      dirty += bits & OH_DIRTY ? OH_PAGE : 0;
      seen += bits & OH_SEEN ? OH_PAGE : 0;
    }
    static uint8_t const kinds[OH_SPACES] = { OH_YOUNG, OH_MAJOR, OH_MAJOR, OH_MAJOR, OH_VALUES, 0 };
    for (uintptr_t c = OH_ROUND_DOWN(p->piece.base, OH_CHUNK); c < end; c += OH_CHUNK) {
      enum oh_kind k = oh_entry(c);
      OH_CHECK(id == OH_SPACE_FOREIGN ? k == OH_FOREIGN || k == OH_MIXED || k == OH_ASK : k == kinds[id]);
    }
  }
  OH_CHECK(reserved == s->reserved && unused == s->free.bytes && reserved - unused == s->used);
  OH_CHECK(busy == s->busy && committed == s->committed && dirty == s->dirty && seen == s->seen);
}

void oh_pages_validate(void)
{
  for (int i = 0; i < OH_SPACES; i++) {
    pthread_mutex_lock(&oh_spaces[i].lock);
    oh_space_validate(i);
    pthread_mutex_unlock(&oh_spaces[i].lock);
  }
  oh_reserve_validate();
}

/* SPDX-License-Identifier: MIT */
#include "space_check.h"
#include "check.h"
#include "page.h"
#include "table.h"

void oh_space_check(struct oh_space_state const *s)
{
  enum oh_space_id id = oh_space_state_id(s);
  oh_extents_validate(&s->free);
  size_t reserved = 0, busy = 0, committed = 0, dirty = 0, unused = 0;
  for (struct oh_space_state_piece *p = s->pieces; p != NULL; p = p->next) {
    uintptr_t end = p->piece.base + p->piece.bytes;
    OH_CHECK(p->piece.base % OH_PAGE == 0 && p->piece.bytes % OH_PAGE == 0 && p->piece.base < end);
    for (uintptr_t page = p->piece.base; page < end; page += OH_PAGE) {
      uint8_t bits = oh_page_bits(page);
      bool is_free = oh_extents_overlap(&s->free, page, OH_PAGE);
      OH_CHECK((bits & OH_PAGE_OWNER) == (unsigned)id + 1);
      OH_CHECK(!(bits & OH_PAGE_DIRTY) || (is_free && (bits & OH_PAGE_COMMITTED)));
      reserved += OH_PAGE;
      unused += is_free ? OH_PAGE : 0;
      busy += !is_free && (bits & OH_PAGE_COMMITTED) ? OH_PAGE : 0;
      committed += bits & OH_PAGE_COMMITTED ? OH_PAGE : 0;
      dirty += bits & OH_PAGE_DIRTY ? OH_PAGE : 0;
    }
    enum oh_kind kind = oh_spaces_kind(id);
    for (uintptr_t c = OH_ROUND_DOWN(p->piece.base, OH_CHUNK); c < end; c += OH_CHUNK) {
      enum oh_kind k = oh_table_kind(c);
      OH_CHECK(kind == OH_KIND_FOREIGN ? oh_kind_is_foreign(k) : k == kind);
    }
  }
  OH_CHECK(reserved == s->reserved && unused == s->free.bytes && reserved - unused == s->used);
  OH_CHECK(busy == s->busy && committed == s->committed && dirty == s->dirty);
}

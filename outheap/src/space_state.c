/* SPDX-License-Identifier: MIT */
#include "space_state.h"
#include "metadata.h"
#include "page.h"

#define FREE PTHREAD_MUTEX_INITIALIZER
#define STATE(name, kind, thp) [OH_SPACE_##name] = { .trim = FREE, .lock = FREE },
struct oh_space_state oh_space_states[OH_SPACES] = { OH_SPACES_LIST(STATE) };

bool oh_space_state_prepare_piece(struct oh_space_state *s)
{
  if (s->spare == NULL) s->spare = oh_metadata_alloc(sizeof *s->spare);
  return s->spare != NULL;
}

void oh_space_state_add_piece(struct oh_space_state *s, struct oh_reserve_piece p)
{
  if (s->pieces != NULL && s->pieces->piece.base + s->pieces->piece.bytes == p.base) s->pieces->piece.bytes += p.bytes;
  else {
    struct oh_space_state_piece *r = s->spare;
    s->spare = NULL;
    *r = (struct oh_space_state_piece){ s->pieces, p };
    s->pieces = r;
  }
  s->reserved += p.bytes;
  oh_page_set(p.base, p.base + p.bytes, (uint8_t)(oh_space_state_id(s) + 1));
}

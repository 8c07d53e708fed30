/* SPDX-License-Identifier: MIT */
#include "space_state.h"

#define STATE(name, kind, thp) [OH_SPACE_##name] = { .lock = PTHREAD_MUTEX_INITIALIZER },
struct oh_space_state oh_space_states[OH_SPACES] = { OH_SPACES_LIST(STATE) };

/* SPDX-License-Identifier: MIT */
#include "hashcons_notes.h"

struct outheap_hashcons_notes outheap_hashcons_notes;

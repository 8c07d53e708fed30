/* SPDX-License-Identifier: MIT */
/* What a cell may hold as it is. */
#ifndef OUTHEAP_LINEAR_CONTENTS_H
#define OUTHEAP_LINEAR_CONTENTS_H

#include "region_base.h"

/* Does `v` need no collector: is it an immediate, static data, or in a region that is held? */
bool outheap_linear_contents_plain(value v);

#endif

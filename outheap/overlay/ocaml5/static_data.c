/* SPDX-License-Identifier: MIT */
#include "static_data.h"
#include "prelude.h"
#include "ranges.h"

void oh_static_data_declare(void const *begin, void const *end)
{
  if (begin < end && oh_ranges_add((uintptr_t)begin + sizeof(header_t), (uintptr_t)end + sizeof(header_t),
                                   OH_RANGES_VALUES, false) != 0)
    caml_fatal_error("Outheap: no memory to declare static data");
}

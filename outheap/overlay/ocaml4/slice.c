/* SPDX-License-Identifier: MIT */
#include "slice.h"
#include "os.h"
#include <stddef.h>

void (*oh_slice_took)(uint64_t nanoseconds);
static uint64_t began;

void oh_slice_begin(void)
{
  if (oh_slice_took != NULL) began = oh_os_used();
}

void oh_slice_end(void)
{
  if (oh_slice_took != NULL && began != 0) oh_slice_took(oh_os_used() - began);
  began = 0;
}

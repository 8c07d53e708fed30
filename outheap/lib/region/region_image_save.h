/* SPDX-License-Identifier: MIT */
#ifndef OUTHEAP_REGION_IMAGE_SAVE_H
#define OUTHEAP_REGION_IMAGE_SAVE_H

#include "region_image.h"

/* Writes the value at *root to a file, by way of another one beside it, which is renamed when all is on the disk.
   `needs`: live images whose values may be referred to. Options: MAX_SHARING (region_share.h), with them too;
   EXCLUSIVE. The caller holds OCaml's lock; it is released meanwhile. */
bool outheap_region_image_save(value *root, char const *path, struct outheap_region_image_schema const *,
                               struct outheap_region_record **needs, size_t need_count, unsigned options,
                               struct outheap_region_error *, uint64_t *waited);

#endif

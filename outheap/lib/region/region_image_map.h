/* SPDX-License-Identifier: MIT */
#ifndef OUTHEAP_REGION_IMAGE_MAP_H
#define OUTHEAP_REGION_IMAGE_MAP_H

#include "region_image.h"

/* Maps an image. `offset`: a multiple of 64 KiB, where the image begins in a file that may hold more; negative: it is
   the whole file. `full`: all of it is read, and every block is checked. `track`: it is written to, and what is written
   stays in this process. The result has a handle; it is the region that is there already if the same image is mapped
   and neither is written to. The caller holds OCaml's lock. Returns NULL with an error. */
struct outheap_region_record *outheap_region_image_map(char const *path, int64_t offset,
                                                       struct outheap_region_image_schema const *,
                                                       bool full, bool track,
                                                       struct outheap_region_error *);

#endif

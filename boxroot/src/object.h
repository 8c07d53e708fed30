/* SPDX-License-Identifier: MIT */
/* The program or shared object that the library is part of, as the dynamic linker sees it. */
#ifndef BXR_OBJECT_H
#define BXR_OBJECT_H

#include "base.h"

/* The object stays in the process until that ends, whoever unloads it, where the system can do that. Cost: some
   microseconds. */
BXR_INTERNAL void bxr_object_pin(void);

/* To be called when the object is about to be used: from then on bxr_object_is_unloading can tell. Leaves some bytes
   behind each time in an object that may be unloaded. */
BXR_INTERNAL void bxr_object_prepare(void);

/* For a destructor of the object: whether it is being unloaded by a process that goes on. False where that is not
   known. */
BXR_INTERNAL bool bxr_object_is_unloading(void);

#endif

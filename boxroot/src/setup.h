/* SPDX-License-Identifier: MIT */
/* Set-up of the library, at its first use or on request. */
#ifndef BXR_SETUP_H
#define BXR_SETUP_H

#include "base.h"

/* Whether create and modify may go on: the library is set up, now if need be, and this thread holds a domain lock. If
   not, errno and the reason are set. */
BXR_INTERNAL bool bxr_setup_ready(void);

#endif

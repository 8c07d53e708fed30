/* SPDX-License-Identifier: MIT */
/* The whole library as one translation unit:
     cc -O2 -c boxroot/src/all.c -Iboxroot/include -I"$(ocamlc -where)" */
#define _GNU_SOURCE
#define CAML_NAME_SPACE
#define CAML_INTERNALS
#define BXR_ONE_UNIT
#include <boxroot.h>

#include "platform.c"
#include "pool.c"
#include "region.c"
#include "young.c"
#include "domain.c"
#include "chain.c"
#include "remote.c"
#include "validate.c"
#include "supply.c"
#include "succession.c"
#include "scan.c"
#include "boxroot.c"
#include "stats.c"
#include "hooks_conservative.c"
#include "hooks_ocaml5.c"
#include "hooks_ocaml4.c"

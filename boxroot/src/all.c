/* SPDX-License-Identifier: MIT */
/* The whole library as one translation unit:
     cc -O2 -c boxroot/src/all.c -Iboxroot/include -I"$(ocamlc -where)"
   LAYERS says what each file may use. */
#define BXR_ONE_UNIT
#define BXR_DEFINES_FUNCTIONS /* api.c does */
#include "base.h"

#include "base.c"
#include "os.c"
#include "pool.c"
#include "checked/account.c"
#include "depot.c"
#include "runtime/conservative.c"
#include "runtime/ocaml5_marker.c"
#include "runtime/ocaml5.c"
#include "runtime/ocaml4_token.c"
#include "runtime/ocaml4.c"
#include "runtime/ephemeron.c"
#include "domain.c"
#include "snapshot.c"
#include "remote.c"
#include "records.c"
#include "checked/validate.c"
#include "supply.c"
#include "orphans.c"
#include "scan.c"
#include "api.c"
#include "frame.c"
#include "weak.c"
#include "ephemeral.c"
#include "storage.c"
#include "wide.c"
#include "checked/checked.c"

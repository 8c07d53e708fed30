/* SPDX-License-Identifier: MIT */
/* What the files here share: the runtime's headers, and the little that differs between OCaml 4.14 and 5. */
#ifndef OUTHEAP_REGION_CONFIG_H
#define OUTHEAP_REGION_CONFIG_H

#ifndef CAML_INTERNALS
#define CAML_INTERNALS
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <caml/mlvalues.h>
#include <caml/version.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(sizeof(value) == 8, "regions need 64 bits");

#define OUTHEAP_REGION_OCAML5 (OCAML_VERSION >= 50000)
#define OUTHEAP_REGION_WORD sizeof(value)
/* The unit in which the runtime variant classifies addresses (outheap_marker.h). */
#define OUTHEAP_REGION_CHUNK ((size_t)1 << 28)
#define OUTHEAP_REGION_ROUND(x, unit) (((x) + (unit) - 1) & ~((__typeof__(x))(unit) - 1))

/* The header of a block that the collector neither marks nor moves. */
#define OUTHEAP_REGION_BLACK ((header_t)3 << 8)
static inline header_t outheap_region_config_header(mlsize_t words, tag_t tag)
{
  return (header_t)words << 10 | OUTHEAP_REGION_BLACK | tag;
}
static inline bool outheap_region_config_is_black(header_t h) { return (~h & OUTHEAP_REGION_BLACK) == 0; }

/* From this tag up to Abstract_tag blocks are special. */
#ifdef Cont_tag
#define OUTHEAP_REGION_SPECIAL Forcing_tag
#else
#define OUTHEAP_REGION_SPECIAL Lazy_tag
#define Cont_tag 256 /* OCaml 4.14 has none of these two */
#define Forcing_tag 256
#endif

#endif

/* SPDX-License-Identifier: MIT */
#include "region_image.h"
#include "region_file.h"

typedef struct outheap_region_image_header header;
#define WORD OUTHEAP_REGION_WORD
#define START OUTHEAP_REGION_IMAGE_START
#define NAME OUTHEAP_REGION_IMAGE_NAME

char const outheap_region_image_magic[8] = { 'O', 'H', 'I', 'M', 'A', 'G', 'E', '\n' };

uint32_t outheap_region_image_ocaml(void) { return OCAML_VERSION / 100; }

size_t outheap_region_image_bitmap(uint64_t used) { return ((used - START) / WORD + 63) / 64 * 8; }

size_t outheap_region_image_tail(header const *h)
{
  return outheap_region_image_bitmap(h->used) + h->customs * NAME + h->needs * sizeof(struct outheap_region_image_need);
}

uintptr_t outheap_region_image_place(unsigned char const digest[16], size_t bytes)
{
  uint64_t n;
  memcpy(&n, digest, sizeof n);
  size_t chunks = OUTHEAP_REGION_ROUND(bytes, OUTHEAP_REGION_CHUNK) / OUTHEAP_REGION_CHUNK;
  return OUTHEAP_REGION_ADDRESSES_BEGIN + n % (OUTHEAP_REGION_ADDRESSES_CHUNKS - chunks + 1) * OUTHEAP_REGION_CHUNK;
}

void outheap_region_image_digest_header(header const *h, unsigned char result[16])
{
  unsigned char page[START] = { 0 };
  memcpy(page, h, sizeof *h);
  memset(page + offsetof(header, header_digest), 0, 16);
  struct MD5Context m;
  caml_MD5Init(&m);
  outheap_region_file_digest(&m, page, sizeof page);
  caml_MD5Final(result, &m);
}

void outheap_region_image_digest_begin(struct MD5Context *m, header const *h)
{
  caml_MD5Init(m);
  uint64_t numbers[4] = { h->version, h->used, h->blocks, h->root };
  outheap_region_file_digest(m, h->schema, sizeof h->schema);
  outheap_region_file_digest(m, numbers, sizeof numbers);
}

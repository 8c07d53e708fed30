/* SPDX-License-Identifier: MIT */
/* Images: the memory of a region as a file.

     [0, 4096)        header: struct outheap_region_image_header, then a table of custom operations and a proxy for
                      bigarrays, which a process fills in
     [4096, used)     blocks, as in region_copy.h, with pointers for the base that the header names
     [tail, …)        a bit for each word of the blocks: is it an address?; the identifiers of custom blocks, 128 bytes
                      each; the images that are needed: struct outheap_region_image_need
   tail = used, rounded up to 4096.

   The base is computed from the digest of the contents, so that each image has the same addresses in every process, and
   unrelated processes share the pages of the file. Where the addresses are taken the image is relocated, in private
   pages. */
#ifndef OUTHEAP_REGION_IMAGE_H
#define OUTHEAP_REGION_IMAGE_H

#include "region_record.h"
#include <caml/md5.h>

#define OUTHEAP_REGION_IMAGE_START 4096
#define OUTHEAP_REGION_IMAGE_TABLE 1024 /* where the table of custom operations begins */
#define OUTHEAP_REGION_IMAGE_CUSTOMS 40
#define OUTHEAP_REGION_IMAGE_PROXY 4032 /* where the proxy of bigarrays is (region_runtime.h) */
#define OUTHEAP_REGION_IMAGE_NAME 128

struct outheap_region_image_header {
  char magic[8];
  uint32_t format, ocaml, word, order;
  uint64_t base, start, used, root; /* root: an address, or an immediate */
  uint64_t version;
  char schema[OUTHEAP_REGION_IMAGE_NAME];
  uint64_t blocks, customs, needs, tail, file;
  unsigned char digest[16];      /* of schema, root, blocks with offsets in the place of addresses, tail */
  unsigned char tail_digest[16];
  unsigned char header_digest[16]; /* of the header's 4096 bytes, with zeroes here and in the table */
};
_Static_assert(sizeof(struct outheap_region_image_header) <= OUTHEAP_REGION_IMAGE_TABLE, "header");

struct outheap_region_image_need { unsigned char digest[16]; uint64_t base, used; };

struct outheap_region_image_schema { char name[OUTHEAP_REGION_IMAGE_NAME]; uint64_t version; };

extern char const outheap_region_image_magic[8];
#define OUTHEAP_REGION_IMAGE_FORMAT 2
#define OUTHEAP_REGION_IMAGE_ORDER 0x01020304u

/* Returns the part of OCaml's version on which the form of values depends. */
uint32_t outheap_region_image_ocaml(void);

/* Return the bytes of the bits, and of all that follows the blocks. */
size_t outheap_region_image_bitmap(uint64_t used);
size_t outheap_region_image_tail(struct outheap_region_image_header const *);

/* Computes the base of an image of that digest and size. */
uintptr_t outheap_region_image_base_of(unsigned char const digest[16], size_t bytes);

/* Computes `header_digest`. */
void outheap_region_image_digest_header(struct outheap_region_image_header const *, unsigned char result[16]);

/* Begins the digest of the contents, with schema, version, size and root. The caller adds blocks and tail. */
struct MD5Context;
void outheap_region_image_digest_begin(struct MD5Context *, struct outheap_region_image_header const *);

/* Adds a piece of data to a digest. */
static inline void outheap_region_image_digest_add(struct MD5Context *m, void const *data, size_t bytes)
{
  for (unsigned char *p = (unsigned char *)data; bytes != 0;) {
    size_t n = bytes > (size_t)1 << 30 ? (size_t)1 << 30 : bytes;
    caml_MD5Update(m, p, n);
    p += n, bytes -= n;
  }
}

/* Writes the value at *root to a file, which gets its name when all is on the disk. `needs`: live images whose values
   may be referred to. Options: MAX_SHARING (region_share.h), with these too; EXCLUSIVE. The caller holds OCaml's lock,
   which is released meanwhile. Returns false with an error. */
bool outheap_region_image_save(value *root, char const *path, struct outheap_region_image_schema const *,
                               struct outheap_region_record **needs, size_t need_count, unsigned options,
                               struct outheap_region_error *, uint64_t *waited);

#endif

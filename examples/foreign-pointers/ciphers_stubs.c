/* SPDX-License-Identifier: MIT */
#include <caml/alloc.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <openssl/ssl.h>

value ciphers_table(value unit)
{
  CAMLparam1(unit);
  CAMLlocal3(all, one, name);
  SSL_CTX *context = SSL_CTX_new(TLS_method());
  if (context == NULL) caml_failwith("SSL_CTX_new");
  STACK_OF(SSL_CIPHER) *ciphers = SSL_CTX_get_ciphers(context);
  int n = sk_SSL_CIPHER_num(ciphers);
  all = caml_alloc_tuple(n);
  for (int i = 0; i < n; i++) {
    SSL_CIPHER const *c = sk_SSL_CIPHER_value(ciphers, i);
    int bits;
    (void)SSL_CIPHER_get_bits(c, &bits);
    name = caml_copy_string(SSL_CIPHER_get_name(c));
    one = caml_alloc_tuple(2);
    Store_field(one, 0, name);
    Store_field(one, 1, Val_int(bits));
    Store_field(all, i, one);
  }
  SSL_CTX_free(context);
  CAMLreturn(all);
}

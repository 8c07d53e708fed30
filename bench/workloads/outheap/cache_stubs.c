/* SPDX-License-Identifier: MIT */
/* The processors of a process; and the store LMDB, one environment for a process. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define CAML_NAME_SPACE
#include <caml/alloc.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

/* The first (0) or the last (1) of the processors on which this thread may run; -1: there is only one, or the system
   does not tell. */
value cache_processor(value last)
{
  cpu_set_t all;
  int found = -1;
  if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) return Val_long(-1);
  for (int n = 0; n < CPU_SETSIZE && (found < 0 || Bool_val(last)); n++)
    if (CPU_ISSET(n, &all)) found = n;
  return Val_long(found);
}

/* From now on this thread, and the processes that it starts, run on that processor alone. */
value cache_run_on(value processor)
{
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((int)Long_val(processor), &one);
  return Val_bool(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* --- LMDB --------------------------------------------------------------------------------------------------------- */

#if __has_include(<lmdb.h>)
#include <lmdb.h>

/* txn == NULL, or a transaction that writes, which began after the last commit */
static struct { MDB_env *env; MDB_txn *txn; MDB_dbi dbi; } store;

static void check(int code)
{
  if (code == 0) return;
  if (store.txn != NULL) mdb_txn_abort(store.txn);
  store.txn = NULL;
  caml_failwith(mdb_strerror(code));
}

static MDB_txn *transaction(void)
{
  if (store.txn == NULL) check(mdb_txn_begin(store.env, NULL, 0, &store.txn));
  return store.txn;
}

static MDB_val data_of(value string)
{
  return (MDB_val){caml_string_length(string), (void *)String_val(string)};
}

value cache_lmdb_commit(value unit)
{
  MDB_txn *txn = store.txn;
  store.txn = NULL; /* it ends, whatever comes */
  if (txn != NULL) check(mdb_txn_commit(txn));
  return unit;
}

value cache_lmdb_open(value folder, value bytes)
{
  unsigned flags = MDB_NOSYNC | MDB_WRITEMAP | MDB_NOMEMINIT | MDB_NORDAHEAD | MDB_NOLOCK;
  check(mdb_env_create(&store.env));
  check(mdb_env_set_mapsize(store.env, (size_t)Long_val(bytes)));
  check(mdb_env_open(store.env, String_val(folder), flags, 0600));
  check(mdb_dbi_open(transaction(), NULL, 0, &store.dbi));
  return cache_lmdb_commit(Val_unit);
}

static bool found(value key, MDB_val *data)
{
  MDB_val k = data_of(key);
  int code = mdb_get(transaction(), store.dbi, &k, data);
  if (code != MDB_NOTFOUND) check(code);
  return code == 0;
}

value cache_lmdb_get(value key)
{
  CAMLparam1(key);
  CAMLlocal2(text, some);
  MDB_val data;
  if (!found(key, &data)) CAMLreturn(Val_long(0));
  text = caml_alloc_initialized_string(data.mv_size, data.mv_data);
  some = caml_alloc_small(1, 0);
  Field(some, 0) = text;
  CAMLreturn(some);
}

value cache_lmdb_put(value key, value text)
{
  MDB_val k = data_of(key), data = data_of(text);
  check(mdb_put(transaction(), store.dbi, &k, &data, 0));
  return Val_unit;
}

value cache_lmdb_length(value unit)
{
  MDB_stat stat;
  (void)unit;
  check(mdb_stat(transaction(), store.dbi, &stat));
  return Val_long(stat.ms_entries);
}

#else

#define MISSING(name)                                                                                                  \
  value name(value a)                                                                                                  \
  {                                                                                                                    \
    (void)a;                                                                                                           \
    caml_failwith("this program was built without LMDB (Debian: liblmdb-dev)");                                        \
  }

MISSING(cache_lmdb_get)
MISSING(cache_lmdb_length)
MISSING(cache_lmdb_commit)
value cache_lmdb_put(value a, value b) { (void)b; return cache_lmdb_get(a); }
value cache_lmdb_open(value a, value b) { (void)b; return cache_lmdb_get(a); }

#endif

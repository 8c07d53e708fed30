// SPDX-License-Identifier: MIT
// A cache of OCaml values in a C++ container. From the top of the repository:
//   c++ -std=c++11 -O2 -c examples/cpp/cache_stubs.cpp -Iboxroot/include -I"$(ocamlopt -where)"
//   ocamlopt -ccopt "-O2 -Iboxroot/include" boxroot/src/all.c cache_stubs.o examples/cpp/cache.ml -cclib -lstdc++ -o
//   cache
#include <boxroot/boxroot.hpp>

#include <caml/alloc.h>
#include <caml/fail.h>
#include <caml/memory.h>

#include <exception>
#include <string>
#include <unordered_map>

static std::unordered_map<std::string, boxroot_ptr::root> cache;

static std::string text(value s) { return std::string(String_val(s), caml_string_length(s)); }

extern "C" value cache_set(value key, value v)
{
  const char *error = nullptr; // an OCaml exception must not pass over C++ frames that have destructors
  try {
    cache[text(key)].set(v);
  } catch (std::exception const &) {
    error = boxroot_error_string();
  }
  if (error != nullptr) caml_failwith(error);
  return Val_unit;
}

extern "C" value cache_find(value key)
{
  auto found = cache.find(text(key));
  if (found == cache.end()) return Val_none;
  value some = caml_alloc_small(1, Tag_some); // may move the value: it is read afterwards
  Field(some, 0) = found->second.get();
  return some;
}

// Erasing ends the roots of the entries.
extern "C" value cache_remove(value key) { return Val_bool(cache.erase(text(key)) == 1); }

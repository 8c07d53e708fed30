/* SPDX-License-Identifier: MIT */
/* The C++ owner of storages. */
#include <boxroot/boxroot.hpp>

#include <caml/alloc.h>
#include <string>
#include <thread>
#include <vector>

using boxroot_ptr::storage;

/* Some storages with n strings each, which `check` finds again after a collection; then they end, in several ways. The
   number of mistakes. */
extern "C" value s_cxx(value number, value check)
{
  static std::vector<storage> sets;
  static std::vector<std::vector<boxroot>> roots;
  long n = Long_val(number), wrong = 0;
  if (!Bool_val(check)) {
    for (int k = 0; k < 5; k++) {
      sets.emplace_back("of C++");
      roots.emplace_back();
      for (long i = 0; i < n; i++)
        roots.back().push_back(sets.back().add(caml_copy_string(std::to_string(i + k).c_str())));
    }
    storage a = storage::try_create(nullptr), b(std::move(a)), c;
    swap(b, c);
    if (a || b || !c || c.try_add(Val_int(1)) == nullptr || boxroot_storage_count(c.get()) != 1) wrong++;
    if (!c.try_clear() || boxroot_storage_count(c.get()) != 0) wrong++;
    a = std::move(c);
    a.reset(storage("another").release());
    if (!a || std::string("another") != boxroot_storage_name(a.get())) wrong++;
    return Val_long(wrong);
  }
  for (size_t k = 0; k < 5; k++)
    for (size_t i = 0; i < (size_t)n; i++)
      if (std::to_string(i + k) != String_val(boxroot_get(roots[k][i]))) wrong++;
  sets[0].clear();
  if (boxroot_storage_count(sets[0].get()) != 0 || boxroot_storage_count(sets[1].get()) != (size_t)n) wrong++;
  static storage left_to_the_end("ends after OCaml, with static objects");
  left_to_the_end.add(Val_int(1));
  std::vector<storage> theirs = std::move(sets);
  std::thread([&theirs] { theirs.clear(); }).join();
  roots.clear();
  return Val_long(wrong);
}

/* SPDX-License-Identifier: MIT */
/* The C++ owner of ephemeral roots. */
#include <boxroot/boxroot.hpp>

#include <caml/alloc.h>
#include <string>
#include <thread>
#include <vector>

using boxroot_ptr::ephemeral;
using boxroot_ptr::root;

/* n strings as keys, every third of which a root holds, with strings as data; then what is asked for after a
   collection. The number of mistakes. */
extern "C" value e_cxx(value number, value lazy, value collected)
{
  long n = Long_val(number), wrong = 0;
  try {
    ephemeral e(lazy, Val_int(1));
    wrong++;
  } catch (std::system_error const &e) {
    if (e.code().value() != EINVAL) wrong++;
  }
  static std::vector<root> keys;
  static std::vector<ephemeral> all;
  if (Bool_val(collected)) {
    for (long i = 0; i < n; i++) {
      value k = Val_unit, d = Val_unit;
      ephemeral const &e = all[(size_t)i];
      bool there = e.get(d);
      if (there != (i % 3 == 0) || e.get_key(k) != there) wrong++;
      if (there && ("k" + std::to_string(i) != String_val(k) || "d" + std::to_string(i) != String_val(d))) wrong++;
    }
    std::vector<ephemeral> theirs = std::move(all);
    std::thread([&theirs] { theirs.clear(); }).join();
    keys.clear();
    return Val_long(wrong);
  }
  for (long i = 0; i < n; i++) {
    root k(caml_copy_string(("k" + std::to_string(i)).c_str()));
    value d = caml_copy_string(("d" + std::to_string(i)).c_str());
    all.emplace_back(k.get(), d);
    if (i % 3 == 0) keys.push_back(std::move(k));
  }
  ephemeral a = ephemeral::try_create(Val_int(1), Val_int(2)), b(std::move(a)), c;
  swap(b, c);
  value v;
  if (a || b || !c || !c.get(v) || v != Val_int(2) || !c.get_key(v) || v != Val_int(1)) wrong++;
  a = std::move(c);
  a.reset(ephemeral(Val_int(3), Val_int(4)).release());
  if (!a.get(v) || v != Val_int(4)) wrong++;
  return Val_long(wrong);
}

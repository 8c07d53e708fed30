/* SPDX-License-Identifier: MIT */
/* The header in C++: roots owned by objects, in the containers of the standard library. */
#include "boxroot.h"

#include <caml/alloc.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

class Root {
  boxroot r;
public:
  explicit Root(value v) : r(boxroot_create(v)) {}
  Root(Root &&other) noexcept : r(other.r) { other.r = nullptr; }
  Root(Root const &) = delete;
  Root &operator=(Root const &) = delete;
  Root &operator=(Root &&other) noexcept
  {
    std::swap(r, other.r);
    return *this;
  }
  ~Root() { if (r != nullptr) boxroot_delete(r); }
  explicit operator bool() const { return r != nullptr; }
  value get() const { return boxroot_get(r); }
  value const &ref() const { return *boxroot_get_ref(r); }
  bool set(value v) { return boxroot_modify(&r, v); }
};

struct Deleter {
  void operator()(boxroot r) const { boxroot_delete(r); }
};
using Unique = std::unique_ptr<bxr_private, Deleter>;

} // namespace

/* n strings, kept in a vector that grows and in a map; the number of mistakes. */
extern "C" int cxx_test(int n)
{
  int wrong = 0;
  std::vector<Root> v;
  std::map<int, Unique> m;
  for (int i = 0; i < n; i++) {
    v.emplace_back(caml_copy_string(std::to_string(i).c_str()));
    m[i % 100] = Unique(boxroot_create(v.back().get()));
    if (!v.back() || !m[i % 100]) return -2;
    if (i % 5 == 0 && !v[i / 2].set(v.back().get())) return -3;
    if (i % 5 == 0 && !v[i / 2].set(caml_copy_string(std::to_string(i / 2).c_str()))) return -3;
  }
  for (int i = 0; i < n; i++) {
    std::string s = String_val(v[i].ref());
    if (s != std::to_string(i)) wrong++;
  }
  static_assert(BOXROOT_INVALID == 3, "status constants");
  boxroot_statistics s;
  boxroot_get_stats(&s);
  return wrong;
}

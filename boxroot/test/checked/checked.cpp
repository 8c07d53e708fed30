/* SPDX-License-Identifier: MIT */
/* Calls through the C++ class, from places whose names the tests know. A deletion by a destructor is known by the
   function it is in, which must therefore be exported. */
#include <boxroot/boxroot.hpp>

static inline value val_of_root(boxroot r) { return (value)((uintptr_t)r | 1); }
static inline boxroot root_of_val(value v) { return (boxroot)((uintptr_t)v & ~(uintptr_t)1); }

/* Ends at the exit; one that was constructed when the program began. */
static boxroot_ptr::root at_exit_;
extern "C" value k_cxx_keep(value v) { at_exit_.set(v); return Val_unit; }

#line 401 "classes.cpp"
extern "C" value k_cxx_create(value v) { boxroot_ptr::root r(v); return val_of_root(r.release()); }
extern "C" value k_cxx_get(value v)
{
  boxroot_ptr::root r = boxroot_ptr::root::adopt(root_of_val(v));
#line 402
  value x = r.get();
  r.release();
  return x;
}
extern "C" value k_cxx_delete(value v)
{
  {
    boxroot_ptr::root r = boxroot_ptr::root::adopt(root_of_val(v));
  }
  return Val_unit;
}

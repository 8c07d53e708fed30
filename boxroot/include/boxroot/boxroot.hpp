/* SPDX-License-Identifier: MIT */
/* C++11: owners of a root, in the spirit of std::unique_ptr.

   boxroot_ptr::root owns one root and deletes it when it ends. It can be moved, not copied; moved from, released or
   default-constructed it is empty. Everything is inline over <boxroot.h>, whose contracts hold here too; it explains
   "needs the domain lock". A root may move to, and end in, any thread or domain: deletion needs no lock. An object is
   no more thread-safe than an int.

     boxroot_ptr::root r(caml_copy_string("kept"));        // throws std::bad_alloc, or std::system_error
     table.emplace("key", std::move(r));                   // ownership moves, the cell does not
     value v = table.at("key").get();                      // under the domain lock

   Without exceptions: boxroot_ptr::root r = boxroot_ptr::root::try_create(v); if (!r) … boxroot_error_string() …

   In the same way boxroot_ptr::weak owns one weak root (<boxroot/weak.h>), boxroot_ptr::ephemeral one ephemeral root
   (<boxroot/ephemeral.h>), boxroot_ptr::wide several values (<boxroot/wide.h>), and boxroot_ptr::storage a set of roots
   that are dropped together (<boxroot/storage.h>). */
#ifndef BOXROOT_HPP
#define BOXROOT_HPP

#include "../boxroot.h"
#include "ephemeral.h"
#include "storage.h"
#include "weak.h"
#include "wide.h"

#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <new>
#include <utility>
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define BOXROOT_HPP_EXCEPTIONS 1
#include <system_error>
#else
#define BOXROOT_HPP_EXCEPTIONS 0
#endif

/* In the checked build (checked.h) the functions below have two more parameters, whose defaults are the place of the
   call; and functions that end a root are inlined even in programs that are not optimised, so that the place
   of a deletion, known in a destructor only by its address, is the place where the object ends. */
#if BOXROOT_DEBUG
#define BOXROOT_HPP_HERE char const *file = __builtin_FILE(), int line = __builtin_LINE()
#define BOXROOT_HPP_AND_HERE , BOXROOT_HPP_HERE
#define BOXROOT_HPP_PASS , file, line
#define BOXROOT_HPP_AT(function, arguments) (bxr_called_from(file, line), (function)arguments)
#define BOXROOT_HPP_INLINE __attribute__((always_inline)) inline
#else
#define BOXROOT_HPP_HERE
#define BOXROOT_HPP_AND_HERE
#define BOXROOT_HPP_PASS
#define BOXROOT_HPP_AT(function, arguments) (function)arguments
#define BOXROOT_HPP_INLINE
#endif

namespace boxroot_ptr {

#if BOXROOT_HPP_EXCEPTIONS
namespace detail { /* private */
/* Throws what the last call of this thread failed for. */
[[noreturn]] inline void fail()
{
  if (boxroot_status() == BOXROOT_TORE_DOWN)
    throw std::system_error(ECANCELED, std::generic_category(), boxroot_error_string());
  if (errno != ENOMEM) throw std::system_error(errno, std::generic_category(), boxroot_error_string());
  throw std::bad_alloc();
}
} /* namespace detail */
#endif

class root {
public:
  /* Empty: owns no root. */
  root() noexcept : cell_(nullptr) {}

  /* Takes over a root obtained from C; NULL gives an empty one. The caller gives it up. */
  static root adopt(::boxroot r) noexcept
  {
    root result;
    result.cell_ = r;
    return result;
  }

  /* A root that holds v, or an empty one on failure: errno and boxroot_error_string() tell why. Needs the domain lock
     (without it, fails with EPERM). Never runs the GC. */
  static root try_create(value v BOXROOT_HPP_AND_HERE) noexcept { return adopt(BOXROOT_HPP_AT(boxroot_create, (v))); }

#if BOXROOT_HPP_EXCEPTIONS
  /* A root that holds v. As try_create, but throws std::bad_alloc when there is no memory, and std::system_error with
     EPERM when the domain lock is not held, or with ECANCELED after boxroot_teardown. */
  explicit root(value v BOXROOT_HPP_AND_HERE) : cell_(BOXROOT_HPP_AT(boxroot_create, (v)))
  {
    if (cell_ == nullptr) detail::fail();
  }

  /* Makes the root hold v; an empty object gets a new root. Needs the domain lock. Throws as the constructor does; then
     nothing has changed. The cell may move, which invalidates references obtained from ref(). */
  void set(value v BOXROOT_HPP_AND_HERE)
  {
    if (!try_set(v BOXROOT_HPP_PASS)) detail::fail();
  }
#endif

  /* The same; on failure false, and nothing has changed. */
  bool try_set(value v BOXROOT_HPP_AND_HERE) noexcept
  {
    if (cell_ != nullptr) return BOXROOT_HPP_AT(boxroot_modify, (&cell_, v));
    cell_ = BOXROOT_HPP_AT(boxroot_create, (v));
    return cell_ != nullptr;
  }

  root(root const &) = delete;
  root &operator=(root const &) = delete;

  /* Moves the ownership; the other is empty afterwards. An earlier root of this one is deleted. Needs no lock. */
  root(root &&other) noexcept : cell_(other.release()) {}
  BOXROOT_HPP_INLINE root &operator=(root &&other) noexcept
  {
    reset(other.release());
    return *this;
  }

  /* Deletes the root, if any. Needs no lock: any thread, at any time. */
  BOXROOT_HPP_INLINE ~root() { reset(); }

  /* The value. Needs a non-empty object and the domain lock; the usual rules for values that are not rooted apply to
     the result. */
  value get(BOXROOT_HPP_HERE) const noexcept { return BOXROOT_HPP_AT(boxroot_get, (cell_)); }

  /* The address of the cell, which the GC keeps up to date, until the root ends or is set. Needs a non-empty object;
     reading through it needs the domain lock. */
  value const *ref(BOXROOT_HPP_HERE) const noexcept { return BOXROOT_HPP_AT(boxroot_get_ref, (cell_)); }

  /* True if there is a root. */
  explicit operator bool() const noexcept { return cell_ != nullptr; }

  /* Gives the ownership to the caller, who must delete the result unless it is NULL; empty afterwards. */
  ::boxroot release() noexcept
  {
    ::boxroot r = cell_;
    cell_ = nullptr;
    return r;
  }

  /* Deletes the root, if any, and takes over r (default: none). Needs no lock. */
  BOXROOT_HPP_INLINE void reset(::boxroot r = nullptr) noexcept
  {
    ::boxroot old = cell_;
    cell_ = r;
    if (old != nullptr) (boxroot_delete)(old); /* in parentheses: the place is the caller's, not this line */
  }

  void swap(root &other) noexcept { std::swap(cell_, other.cell_); }

private:
  ::boxroot cell_;
};

inline void swap(root &a, root &b) noexcept { a.swap(b); }

/* A value that may be collected: in the spirit of std::weak_ptr, but it owns a weak root of its own, is moved and not
   copied, and ends on any thread. */
class weak {
public:
  /* Empty: owns no weak root. */
  weak() noexcept : key_(nullptr) {}

  /* Takes over a weak root obtained from C; NULL gives an empty one. The caller gives it up. */
  static weak adopt(::boxroot_weak w) noexcept
  {
    weak result;
    result.key_ = w;
    return result;
  }

  /* A weak root that holds v, or an empty object on failure: errno and boxroot_error_string() tell why. Needs the
     domain lock. Never runs the GC. */
  static weak try_create(value v BOXROOT_HPP_AND_HERE) noexcept
  {
    return adopt(BOXROOT_HPP_AT(boxroot_weak_create, (v)));
  }

#if BOXROOT_HPP_EXCEPTIONS
  /* A weak root that holds v. Throws as the constructor of root does; std::system_error with EINVAL for a lazy value,
     with ENOTSUP on a domain but the first before OCaml 5.5. */
  explicit weak(value v BOXROOT_HPP_AND_HERE) : key_(BOXROOT_HPP_AT(boxroot_weak_create, (v)))
  {
    if (key_ == nullptr) detail::fail();
  }
#endif

  weak(weak const &) = delete;
  weak &operator=(weak const &) = delete;

  /* Moves the ownership; the other is empty afterwards. An earlier root of this one is deleted. Needs no lock. */
  weak(weak &&other) noexcept : key_(other.release()) {}
  BOXROOT_HPP_INLINE weak &operator=(weak &&other) noexcept
  {
    reset(other.release());
    return *this;
  }

  /* Deletes the weak root, if any. Needs no lock: any thread, at any time. */
  BOXROOT_HPP_INLINE ~weak() { reset(); }

  /* True if the value is there: then it is in v, subject to the usual rules for values that are not rooted. Needs a
     non-empty object and the domain lock. */
  bool get(value &v BOXROOT_HPP_AND_HERE) const noexcept { return BOXROOT_HPP_AT(boxroot_weak_get, (key_, &v)); }

  /* A root that holds the value. Empty with errno == 0: the value is dead. Empty otherwise: failure, as
     root::try_create. Needs a non-empty object and the domain lock. */
  root lock(BOXROOT_HPP_HERE) const noexcept { return root::adopt(BOXROOT_HPP_AT(boxroot_weak_upgrade, (key_))); }

  /* True if there is a weak root, even if its value is dead. */
  explicit operator bool() const noexcept { return key_ != nullptr; }

  /* Gives the ownership to the caller, who must delete the result unless it is NULL; empty afterwards. */
  ::boxroot_weak release() noexcept
  {
    ::boxroot_weak w = key_;
    key_ = nullptr;
    return w;
  }

  /* Deletes the weak root, if any, and takes over w (default: none). Needs no lock. */
  BOXROOT_HPP_INLINE void reset(::boxroot_weak w = nullptr) noexcept
  {
    ::boxroot_weak old = key_;
    key_ = w;
    if (old != nullptr) (boxroot_weak_delete)(old);
  }

  void swap(weak &other) noexcept { std::swap(key_, other.key_); }

private:
  ::boxroot_weak key_;
};

inline void swap(weak &a, weak &b) noexcept { a.swap(b); }

/* Owns an ephemeral root: a value, the data, that lives as long as another one, the key. Moved, not copied, and ends on
   any thread. */
class ephemeral {
public:
  /* Empty: owns no ephemeral root. */
  ephemeral() noexcept : cell_(nullptr) {}

  /* Takes over an ephemeral root obtained from C; NULL gives an empty one. The caller gives it up. */
  static ephemeral adopt(::boxroot_ephemeral e) noexcept
  {
    ephemeral result;
    result.cell_ = e;
    return result;
  }

  /* An ephemeral root, or an empty object on failure: errno and boxroot_error_string() tell why. Needs the domain lock.
     Never runs the GC. */
  static ephemeral try_create(value key, value data BOXROOT_HPP_AND_HERE) noexcept
  {
    return adopt(BOXROOT_HPP_AT(boxroot_ephemeral_create, (key, data)));
  }

#if BOXROOT_HPP_EXCEPTIONS
  /* An ephemeral root. Throws as the constructor of weak does: EINVAL for a lazy key. */
  ephemeral(value key, value data BOXROOT_HPP_AND_HERE) : cell_(BOXROOT_HPP_AT(boxroot_ephemeral_create, (key, data)))
  {
    if (cell_ == nullptr) detail::fail();
  }
#endif

  ephemeral(ephemeral const &) = delete;
  ephemeral &operator=(ephemeral const &) = delete;

  /* Moves the ownership; the other is empty afterwards. An earlier root of this one is deleted. Needs no lock. */
  ephemeral(ephemeral &&other) noexcept : cell_(other.release()) {}
  BOXROOT_HPP_INLINE ephemeral &operator=(ephemeral &&other) noexcept
  {
    reset(other.release());
    return *this;
  }

  /* Deletes the ephemeral root, if any. Needs no lock: any thread, at any time. */
  BOXROOT_HPP_INLINE ~ephemeral() { reset(); }

  /* True if the key lives: then v is the data, or the key, subject to the usual rules for values that are not rooted.
     Need a non-empty object and the domain lock. */
  bool get(value &v BOXROOT_HPP_AND_HERE) const noexcept { return BOXROOT_HPP_AT(boxroot_ephemeral_get, (cell_, &v)); }
  bool get_key(value &v BOXROOT_HPP_AND_HERE) const noexcept
  {
    return BOXROOT_HPP_AT(boxroot_ephemeral_get_key, (cell_, &v));
  }

  /* True if there is an ephemeral root, even if its key is dead. */
  explicit operator bool() const noexcept { return cell_ != nullptr; }

  /* Gives the ownership to the caller, who must delete the result unless it is NULL; empty afterwards. */
  ::boxroot_ephemeral release() noexcept
  {
    ::boxroot_ephemeral e = cell_;
    cell_ = nullptr;
    return e;
  }

  /* Deletes the ephemeral root, if any, and takes over e (default: none). Needs no lock. */
  BOXROOT_HPP_INLINE void reset(::boxroot_ephemeral e = nullptr) noexcept
  {
    ::boxroot_ephemeral old = cell_;
    cell_ = e;
    if (old != nullptr) (boxroot_ephemeral_delete)(old);
  }

  void swap(ephemeral &other) noexcept { std::swap(cell_, other.cell_); }

private:
  ::boxroot_ephemeral cell_;
};

inline void swap(ephemeral &a, ephemeral &b) noexcept { a.swap(b); }

/* Owns a set of roots, and drops them all when it ends. Moved, not copied; as it ends, no other thread may use it, or a
   root in it. The roots are its own: do not give one to boxroot_ptr::root, unless that ends or is released first. */
class storage {
public:
  /* Empty: owns no storage. */
  storage() noexcept : set_(nullptr) {}

  /* Takes over a storage obtained from C; NULL gives an empty one. The caller gives it up. */
  static storage adopt(::boxroot_storage s) noexcept
  {
    storage result;
    result.set_ = s;
    return result;
  }

  /* A storage without roots (name: for reports; may be null), or an empty object on failure: errno and
     boxroot_error_string() tell why. Needs the domain lock. */
  static storage try_create(char const *name) noexcept { return adopt(boxroot_storage_create(name)); }

#if BOXROOT_HPP_EXCEPTIONS
  /* The same. Throws as the constructor of root does. */
  explicit storage(char const *name) : set_(boxroot_storage_create(name))
  {
    if (set_ == nullptr) detail::fail();
  }

  /* A root that holds v, until the storage is cleared or ends. Needs a non-empty object and the domain lock. Throws as
     the constructor of root does. */
  ::boxroot add(value v BOXROOT_HPP_AND_HERE)
  {
    ::boxroot r = BOXROOT_HPP_AT(boxroot_storage_add, (set_, v));
    if (r == nullptr) detail::fail();
    return r;
  }

  /* Drops all roots. Needs a non-empty object and the domain lock. Throws std::system_error without it. */
  void clear(BOXROOT_HPP_HERE)
  {
    if (!BOXROOT_HPP_AT(boxroot_storage_clear, (set_))) detail::fail();
  }
#endif

  /* The same; on failure null, or false, and nothing has changed. */
  ::boxroot try_add(value v BOXROOT_HPP_AND_HERE) noexcept { return BOXROOT_HPP_AT(boxroot_storage_add, (set_, v)); }
  bool try_clear(BOXROOT_HPP_HERE) noexcept { return BOXROOT_HPP_AT(boxroot_storage_clear, (set_)); }

  storage(storage const &) = delete;
  storage &operator=(storage const &) = delete;

  /* Moves the ownership; the other is empty afterwards. An earlier storage of this one is dropped. Needs no lock. */
  storage(storage &&other) noexcept : set_(other.release()) {}
  BOXROOT_HPP_INLINE storage &operator=(storage &&other) noexcept
  {
    reset(other.release());
    return *this;
  }

  /* Drops the roots, if any. Needs no lock: any thread, at any time. */
  BOXROOT_HPP_INLINE ~storage() { reset(); }

  /* The storage, for the functions of <boxroot/storage.h>; null if there is none. */
  ::boxroot_storage get() const noexcept { return set_; }
  explicit operator bool() const noexcept { return set_ != nullptr; }

  /* Gives the ownership to the caller, who must delete the result unless it is NULL; empty afterwards. */
  ::boxroot_storage release() noexcept
  {
    ::boxroot_storage s = set_;
    set_ = nullptr;
    return s;
  }

  /* Deletes the storage, if any, and takes over s (default: none). Needs no lock. */
  BOXROOT_HPP_INLINE void reset(::boxroot_storage s = nullptr) noexcept
  {
    ::boxroot_storage old = set_;
    set_ = s;
    if (old != nullptr) (boxroot_storage_delete)(old);
  }

  void swap(storage &other) noexcept { std::swap(set_, other.set_); }

private:
  ::boxroot_storage set_;
};

inline void swap(storage &a, storage &b) noexcept { a.swap(b); }

/* Owns one wide root: some values that live and end together. Moved, not copied. */
class wide {
public:
  /* Empty: owns no wide root. */
  wide() noexcept : slots_(nullptr) {}

  /* Takes over a wide root obtained from C; NULL gives an empty one. The caller gives it up. */
  static wide adopt(::boxroot_wide w) noexcept
  {
    wide result;
    result.slots_ = w;
    return result;
  }

  /* A wide root that holds n values, or an empty one on failure: errno and boxroot_error_string() tell why. Needs the
     domain lock. */
  static wide try_create(std::size_t n, value const *vs BOXROOT_HPP_AND_HERE) noexcept
  {
    return adopt(BOXROOT_HPP_AT(boxroot_wide_create, (n, vs)));
  }

#if BOXROOT_HPP_EXCEPTIONS
  /* The same, from as many values as the braces have: wide w{on_read, on_write}; wide w{} is empty. Throws as the
     constructor of root does, and std::system_error with EINVAL if there are too many, or none in a list of values. */
  wide(std::initializer_list<value> vs BOXROOT_HPP_AND_HERE)
    : slots_(BOXROOT_HPP_AT(boxroot_wide_create, (vs.size(), vs.begin())))
  {
    if (slots_ == nullptr) detail::fail();
  }

  /* Makes slot i hold v. Needs a non-empty object, a slot that it has, and the domain lock. Throws as the constructor
     of root does; then nothing has changed. */
  void set(std::size_t i, value v BOXROOT_HPP_AND_HERE)
  {
    if (!BOXROOT_HPP_AT(boxroot_wide_modify, (&slots_, i, v))) detail::fail();
  }
#endif

  /* The same; false on failure. */
  bool try_set(std::size_t i, value v BOXROOT_HPP_AND_HERE) noexcept
  {
    return BOXROOT_HPP_AT(boxroot_wide_modify, (&slots_, i, v));
  }

  /* The value in slot i, and where it is, until the object is modified or ends. Need a non-empty object, a slot that it
     has, and the first one, or who reads the second, the domain lock. */
  value get(std::size_t i BOXROOT_HPP_AND_HERE) const noexcept { return BOXROOT_HPP_AT(boxroot_wide_get, (slots_, i)); }
  value const *get_ref(std::size_t i BOXROOT_HPP_AND_HERE) const noexcept
  {
    return BOXROOT_HPP_AT(boxroot_wide_ref, (slots_, i));
  }

  wide(wide const &) = delete;
  wide &operator=(wide const &) = delete;

  /* Moves the ownership; the other is empty afterwards. An earlier root of this one ends. Needs no lock. */
  wide(wide &&other) noexcept : slots_(other.release()) {}
  BOXROOT_HPP_INLINE wide &operator=(wide &&other) noexcept
  {
    reset(other.release());
    return *this;
  }

  /* Ends the wide root, if any. Needs no lock: any thread, at any time. */
  BOXROOT_HPP_INLINE ~wide() { reset(); }

  explicit operator bool() const noexcept { return slots_ != nullptr; }

  /* Gives the ownership to the caller, who must delete the result unless it is NULL; empty afterwards. */
  ::boxroot_wide release() noexcept
  {
    ::boxroot_wide w = slots_;
    slots_ = nullptr;
    return w;
  }

  /* Ends the wide root, if any, and takes over w (default: none). Needs no lock. */
  BOXROOT_HPP_INLINE void reset(::boxroot_wide w = nullptr) noexcept
  {
    ::boxroot_wide old = slots_;
    slots_ = w;
    if (old != nullptr) (boxroot_wide_delete)(old);
  }

  void swap(wide &other) noexcept { std::swap(slots_, other.slots_); }

private:
  ::boxroot_wide slots_;
};

inline void swap(wide &a, wide &b) noexcept { a.swap(b); }

} /* namespace boxroot_ptr */

#undef BOXROOT_HPP_EXCEPTIONS
#undef BOXROOT_HPP_HERE
#undef BOXROOT_HPP_AND_HERE
#undef BOXROOT_HPP_PASS
#undef BOXROOT_HPP_AT
#undef BOXROOT_HPP_INLINE

#endif

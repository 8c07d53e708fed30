// SPDX-License-Identifier: MIT
//! Several values with one owner.
use super::root::fail;
use crate::{RootError, Runtime, Value, ValueCell, ValueGuard, ValueRef};
use core::marker::PhantomData;
use core::ops::Deref;
use ocaml_boxroot_sys::{self as sys, BoxRootWide};

/// Several values that Rust keeps alive and that end together, as the callbacks of an object do. `S` says what they
/// are: a tuple of up to 12 types, or an array `[T; N]` of 1 to 64. Pointer-sized, with a niche; `Send + Sync` for
/// every `S`; it may be dropped anywhere, as a [`Root`](crate::Root) may.
///
/// ```
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// type Handler = Fun<(Str,), Unit>;
///
/// struct Connection {
///     handlers: ocaml::WideRoot<(Handler, Handler, Str)>, // one word
/// }
///
/// #[export]
/// fn connect(rt: &mut Runtime, on_read: ValueRef<Handler>, on_close: ValueRef<Handler>, name: ValueRef<Str>) {
///     let handlers = ocaml::WideRoot::new(rt, (on_read.get(rt), on_close.get(rt), name.get(rt)));
///     let mut connection = Connection { handlers };
///     let (on_read, _, name) = connection.handlers.places();
///     let _ = on_read.call(rt, (name,));
///     let name = rt.string("closing");
///     connection.handlers.set::<2>(name);
///     let _ = connection.handlers.place::<1>().call(rt, (connection.handlers.place::<2>(),));
/// } // one deletion, wherever it happens
/// ```
///
/// The values of an array are a slice of places, with indices that are tested as those of slices are:
///
/// ```
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// fn longest(rt: &Runtime, words: &ocaml::WideRoot<[Str; 3]>) -> usize {
///     words.iter().map(|word| word.get(rt).as_bytes().len()).max().unwrap().max(words[0].get(rt).as_bytes().len())
/// }
/// ```
///
/// Cost: 8 bytes for each value. To make one costs a call, and what three or four roots cost; to drop it a call, a
/// store for each value on the domain that made it, and one or two atomic operations elsewhere, however many values it
/// has. From about five values on it takes less time than roots. Those with equally many values have 16 KB of their
/// own, at least, for each domain that makes them, and each minor collection of such a domain looks at that, for a
/// tenth of a microsecond.
// OWNED: the wide root is live, and nobody else deletes or modifies it. It has as many slots as S says (WideSlots), and
// each holds a value of the type that S says.
#[repr(transparent)]
pub struct WideRoot<S> {
    wide: BoxRootWide,
    _marker: PhantomData<fn() -> S>,
}

// SAFETY: all that can be done without a Runtime is to drop it, which any thread may do (boxroot_wide_delete), and to
// name the places. Reading needs a Runtime, so the lock; modifying needs that and an exclusive borrow.
unsafe impl<S> Send for WideRoot<S> {}
// SAFETY: as for Send.
unsafe impl<S> Sync for WideRoot<S> {}

impl<S> WideRoot<S> {
    /// A wide root that holds these values: a tuple or an array of them. Never runs the collector. Panics when memory
    /// is short, and in a domain that has ended, that is, in a finaliser that runs at its end.
    #[inline]
    pub fn new<V: WideValues<Slots = S>>(rt: &Runtime, values: V) -> WideRoot<S> {
        match WideRoot::try_new(rt, values) {
            Ok(root) => root,
            Err(error) => fail(error),
        }
    }

    /// A wide root that holds these values, or an error where [`new`](WideRoot::new) panics.
    #[inline]
    pub fn try_new<V: WideValues<Slots = S>>(rt: &Runtime, values: V) -> Result<WideRoot<S>, RootError> {
        let _ = rt;
        // SAFETY: LOCK; LIVE for the values, which are words, and as many as there are slots (WideValues).
        let wide = values.with_words(|words| unsafe { sys::boxroot_wide_create(words.len(), words.as_ptr()) });
        WideRoot::made(wide)
    }

    fn made(wide: Option<BoxRootWide>) -> Result<WideRoot<S>, RootError> {
        match wide {
            Some(wide) => Ok(WideRoot { wide, _marker: PhantomData }),
            None => Err(RootError::last_in_storage()),
        }
    }

    /// Another wide root that holds the same values. Panics as [`new`](WideRoot::new) does.
    pub fn clone_ref(&self, rt: &Runtime) -> WideRoot<S>
    where
        S: WideSlots,
    {
        let _ = rt;
        // SAFETY: OWNED for the slots, which are side by side; LOCK: nobody writes them meanwhile, and what they hold
        // is valid.
        let wide = unsafe { sys::boxroot_wide_create(S::COUNT, self.cell(0).cast()) };
        match WideRoot::made(wide) {
            Ok(root) => root,
            Err(error) => fail(error),
        }
    }

    /// The places of all values: a tuple of [`ValueRef`]s, or a reference to an array.
    #[inline]
    pub fn places(&self) -> S::Places<'_>
    where
        S: WideSlots,
    {
        // SAFETY: OWNED: they live, and only the collector writes them, as long as self is borrowed. There is a first.
        unsafe { S::places(self.cell(0)) }
    }

    /// The place of value `I` of a tuple.
    #[inline]
    pub fn place<const I: usize>(&self) -> ValueRef<'_, S::Type>
    where
        S: WideSlot<I>,
    {
        // SAFETY: OWNED: it lives, and only the collector writes it, as long as self is borrowed. S has slot I, of that
        // type (WideSlot).
        unsafe { &*self.cell(I).cast() }
    }

    /// Makes value `I` of a tuple `v`. Panics as [`new`](WideRoot::new) does.
    #[inline]
    pub fn set_value<const I: usize>(&mut self, rt: &Runtime, v: Value<'_, S::Type>)
    where
        S: WideSlot<I>,
    {
        if let Err(error) = self.try_set_value::<I>(rt, v) {
            fail(error)
        }
    }

    /// Makes value `I` of a tuple `v`; on an error nothing has changed.
    #[inline]
    pub fn try_set_value<const I: usize>(&mut self, rt: &Runtime, v: Value<'_, S::Type>) -> Result<(), RootError>
    where
        S: WideSlot<I>,
    {
        // SAFETY: S has slot I, of that type (WideSlot).
        unsafe { self.modify(rt, I, v.raw()) }
    }

    /// Makes value `I` of a tuple the value just made. Panics as [`new`](WideRoot::new) does.
    #[inline]
    pub fn set<const I: usize>(&mut self, v: ValueGuard<'_, S::Type>) -> ValueRef<'_, S::Type>
    where
        S: WideSlot<I>,
    {
        self.set_value::<I>(v.rt(), v.value());
        self.place::<I>()
    }

    /// Makes value `I` of a tuple `v`, and returns what it was. Panics as [`new`](WideRoot::new) does.
    #[inline]
    pub fn replace<'a, const I: usize>(&mut self, rt: &'a Runtime, v: Value<'_, S::Type>) -> Value<'a, S::Type>
    where
        S: WideSlot<I>,
    {
        let old = self.place::<I>().get(rt);
        self.set_value::<I>(rt, v);
        old
    }

    /// Slot `i`.
    ///
    /// # Safety
    /// There are more than `i` slots.
    #[inline]
    unsafe fn cell(&self, i: usize) -> *const ValueCell {
        // SAFETY: OWNED, and the caller. Both are one word.
        unsafe { sys::boxroot_wide_ref(self.wide, i).cast() }
    }

    /// # Safety
    /// There are more than `i` slots; S gives slot `i` the type of `v`, a valid value.
    #[inline]
    unsafe fn modify(&mut self, rt: &Runtime, i: usize, v: isize) -> Result<(), RootError> {
        let _ = rt;
        // SAFETY: OWNED, and no reference to a cell is left, since self is borrowed exclusively; LOCK; the caller.
        match unsafe { sys::boxroot_wide_modify(&mut self.wide, i, v) } {
            true => Ok(()),
            false => Err(RootError::last_in_storage()),
        }
    }
}

/// Of arrays, where the index is known when the program runs. Each panics when it is out of range, as slices do.
impl<T, const N: usize> WideRoot<[T; N]> {
    /// Makes value `i` `v`. Panics as [`new`](WideRoot::new) does, too.
    #[inline]
    pub fn set_value_at(&mut self, rt: &Runtime, i: usize, v: Value<'_, T>) {
        if let Err(error) = self.try_set_value_at(rt, i, v) {
            fail(error)
        }
    }

    /// Makes value `i` `v`; on an error nothing has changed.
    #[inline]
    pub fn try_set_value_at(&mut self, rt: &Runtime, i: usize, v: Value<'_, T>) -> Result<(), RootError> {
        assert!(i < N, "value {i} of a wide root with {N}");
        // SAFETY: just tested.
        unsafe { self.modify(rt, i, v.raw()) }
    }

    /// Makes value `i` the value just made. Panics as [`new`](WideRoot::new) does, too.
    #[inline]
    pub fn set_at(&mut self, i: usize, v: ValueGuard<'_, T>) -> ValueRef<'_, T> {
        self.set_value_at(v.rt(), i, v.value());
        &self[i]
    }

    /// Makes value `i` `v`, and returns what it was. Panics as [`new`](WideRoot::new) does, too.
    #[inline]
    pub fn replace_at<'a>(&mut self, rt: &'a Runtime, i: usize, v: Value<'_, T>) -> Value<'a, T> {
        let old = self[i].get(rt);
        self.set_value_at(rt, i, v);
        old
    }
}

impl<T, const N: usize> Deref for WideRoot<[T; N]> {
    type Target = [ValueCell<T>; N];
    #[inline]
    fn deref(&self) -> &[ValueCell<T>; N] {
        self.places()
    }
}

impl<S> Drop for WideRoot<S> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: OWNED; it is not used any more. The call needs no lock.
        unsafe { sys::boxroot_wide_delete(self.wide) }
    }
}

impl<S> core::fmt::Debug for WideRoot<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("WideRoot")
    }
}

// --- shapes

/// What the values of a [`WideRoot`] can be: tuples of up to 12 types, arrays.
#[diagnostic::on_unimplemented(
    message = "a wide root has no values `{Self}`",
    note = "it has a tuple of 1 to 12 types of OCaml, or an array `[T; N]`"
)]
pub trait WideSlots: sealed::Slots {
    /// References to their places: a tuple of [`ValueRef`]s, `&[ValueCell<T>; N]`.
    type Places<'a>
    where
        Self: 'a;

    /// How many there are.
    const COUNT: usize;

    /// # Safety
    /// `first` is the first slot of a wide root with such values, which is not modified or deleted for all of `'a`.
    #[doc(hidden)]
    unsafe fn places<'a>(first: *const ValueCell) -> Self::Places<'a>
    where
        Self: 'a;
}

/// That the values of a [`WideRoot`] are a tuple with one of number `I`.
#[diagnostic::on_unimplemented(
    message = "there is no value {I} in a wide root of `{Self}`",
    note = "those of an array are reached by an index: `root[i]`, `set_value_at(rt, i, v)`"
)]
pub trait WideSlot<const I: usize>: WideSlots {
    /// Its type.
    type Type;
}

/// What a [`WideRoot`] is made from: a tuple of up to 12 [`Value`]s, or an array of 1 to 64. Other lengths do not
/// compile: an error of `cargo build`, which `cargo check` does not see.
#[diagnostic::on_unimplemented(
    message = "a wide root is not made from `{Self}`",
    note = "it is made from a tuple of 1 to 12 `Value`s, or from an array of them"
)]
pub trait WideValues: sealed::Values {
    /// Their types: a tuple or an array.
    type Slots: WideSlots;
}

mod sealed {
    pub trait Slots {}
    pub trait Values {
        /// Calls `f` with the values, as words: as many as there are slots, in their order.
        fn with_words<R>(self, f: impl FnOnce(&[isize]) -> R) -> R;
    }
}

impl<T, const N: usize> sealed::Slots for [T; N] {}
impl<T, const N: usize> WideSlots for [T; N] {
    type Places<'a>
        = &'a [ValueCell<T>; N]
    where
        Self: 'a;
    const COUNT: usize = N;

    #[inline]
    unsafe fn places<'a>(first: *const ValueCell) -> &'a [ValueCell<T>; N]
    where
        Self: 'a,
    {
        // SAFETY: by the caller: PLACE for each. The slots are side by side, and one word each.
        unsafe { &*first.cast() }
    }
}

impl<T, const N: usize> sealed::Values for [Value<'_, T>; N] {
    #[inline]
    fn with_words<R>(self, f: impl FnOnce(&[isize]) -> R) -> R {
        const { assert!(N >= 1 && N <= sys::BOXROOT_WIDEST, "a wide root has 1 to 64 values") }
        f(&self.map(Value::raw))
    }
}
impl<T, const N: usize> WideValues for [Value<'_, T>; N] {
    type Slots = [T; N];
}

macro_rules! slot {
    ([$($all:ident)+] $name:ident $index:tt) => {
        impl<$($all),+> WideSlot<$index> for ($($all,)+) {
            type Type = $name;
        }
    };
}

macro_rules! tuple {
    ($all:tt $($name:ident $index:tt),+) => {
        impl<$($name),+> sealed::Slots for ($($name,)+) {}
        impl<$($name),+> WideSlots for ($($name,)+) {
            type Places<'a>
                = ($(ValueRef<'a, $name>,)+)
            where
                Self: 'a;
            const COUNT: usize = [$($index),+].len();

            #[inline]
            unsafe fn places<'a>(first: *const ValueCell) -> Self::Places<'a>
            where
                Self: 'a,
            {
                // SAFETY: by the caller: PLACE for each. The slots are side by side, and one word each.
                unsafe { ($(&*first.add($index).cast::<ValueCell<$name>>(),)+) }
            }
        }
        $(slot! { $all $name $index })+

        impl<$($name),+> sealed::Values for ($(Value<'_, $name>,)+) {
            #[inline]
            fn with_words<R>(self, f: impl FnOnce(&[isize]) -> R) -> R {
                f(&[$(self.$index.raw()),+])
            }
        }
        impl<$($name),+> WideValues for ($(Value<'_, $name>,)+) {
            type Slots = ($($name,)+);
        }
    };
}

tuple! { [A] A 0 }
tuple! { [A B] A 0, B 1 }
tuple! { [A B C] A 0, B 1, C 2 }
tuple! { [A B C D] A 0, B 1, C 2, D 3 }
tuple! { [A B C D E] A 0, B 1, C 2, D 3, E 4 }
tuple! { [A B C D E F] A 0, B 1, C 2, D 3, E 4, F 5 }
tuple! { [A B C D E F G] A 0, B 1, C 2, D 3, E 4, F 5, G 6 }
tuple! { [A B C D E F G H] A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7 }
tuple! { [A B C D E F G H I] A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8 }
tuple! { [A B C D E F G H I J] A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9 }
tuple! { [A B C D E F G H I J K] A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10 }
tuple! { [A B C D E F G H I J K L] A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11 }

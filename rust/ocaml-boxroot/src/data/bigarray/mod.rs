// SPDX-License-Identifier: MIT
//! Bigarrays: their types, and reading and writing their elements in place.
pub(crate) mod element;
pub(crate) mod make;

use crate::glue::Operations;
use crate::value::sealed as value_sealed;
use crate::{
    Any, BigarrayElement, Definitions, Downcast, Element, OCamlType, RelaxedCell, Runtime, ShapeError, Typed, Value,
    ValueCell,
};
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;

/// A bigarray of elements of type `E`, laid out as `L` says, with the dimensions `D`: [`Array1`] and the like.
///
/// The elements are outside OCaml's heap, and OCaml's threads and domains may write them at any time. So safe code
/// reads and writes [`RelaxedCell`] elements, in place, also with the lock released:
///
/// ```
/// # use ocaml_boxroot::{self as ocaml, prelude::*};
/// fn sum(rt: &mut Runtime, a: ValueRef<'_, ocaml::Array1<f64>>) -> f64 {
///     let elements = a.as_cells(rt);
///     rt.release(|| elements.iter().map(|x| x.get()).sum())
/// }
/// fn squares(rt: &mut Runtime) -> ValueGuard<'_, ocaml::Array1<f64>> {
///     rt.bigarray_from_vec((0..100).map(|i| f64::from(i * i)).collect(), [100])
/// }
/// ```
///
/// The elements last as long as the place that holds the bigarray, like a [`Boxed`](crate::Boxed) payload. Kind, layout
/// and dimensions are checked at each access: a block that is something else (which only wrong OCaml declarations or an
/// unsafe cast can bring) is an error.
///
/// Elements in a mapped file go away when somebody shortens the file; accesses then end the process.
#[derive(Debug)]
pub struct Bigarray<E, L, D> {
    _none: Infallible,
    _elements: PhantomData<fn(E) -> E>,
    _shape: PhantomData<fn(L, D)>,
}

/// A bigarray without dimensions: one element.
pub type Array0<E, L = CLayout> = Bigarray<E, L, Dim<0>>;
/// A bigarray of one dimension.
pub type Array1<E, L = CLayout> = Bigarray<E, L, Dim<1>>;
/// A bigarray of two dimensions.
pub type Array2<E, L = CLayout> = Bigarray<E, L, Dim<2>>;
/// A bigarray of three dimensions.
pub type Array3<E, L = CLayout> = Bigarray<E, L, Dim<3>>;
/// A bigarray of any number of dimensions, up to 16.
pub type Genarray<E, L = CLayout> = Bigarray<E, L, AnyDim>;

/// The elements of the last dimension are neighbours, and indices begin at 0.
#[derive(Debug, Clone, Copy)]
pub struct CLayout;
/// The elements of the first dimension are neighbours, and indices begin at 1.
#[derive(Debug, Clone, Copy)]
pub struct FortranLayout;

/// A layout: [`CLayout`], [`FortranLayout`].
pub trait Layout: Copy + Send + Sync + 'static + sealed::Layout {}
impl Layout for CLayout {}
impl Layout for FortranLayout {}

/// `N` dimensions.
#[derive(Debug, Clone, Copy)]
pub struct Dim<const N: usize>;
/// Any number of dimensions.
#[derive(Debug, Clone, Copy)]
pub struct AnyDim;

/// A number of dimensions: [`Dim`] up to 3, [`AnyDim`].
pub trait Dimensions: 'static + sealed::Dimensions {
    /// The size in each dimension.
    type Shape: AsRef<[usize]> + Clone + fmt::Debug + PartialEq + Send + Sync;
}
impl Dimensions for AnyDim {
    type Shape = Vec<usize>;
}

pub(crate) mod sealed {
    pub trait Layout {
        const FLAG: isize;
        const NAME: &'static str;
        /// What the first element of a dimension is called.
        const FIRST: usize;
    }
    pub trait Dimensions {
        const COUNT: Option<usize>;
        const MODULE: &'static str;
        fn shape(dims: &[isize]) -> <Self as super::Dimensions>::Shape
        where
            Self: super::Dimensions;
    }
}

impl sealed::Layout for CLayout {
    const FLAG: isize = 0;
    const NAME: &'static str = "c_layout";
    const FIRST: usize = 0;
}
impl sealed::Layout for FortranLayout {
    const FLAG: isize = LAYOUT_MASK;
    const NAME: &'static str = "fortran_layout";
    const FIRST: usize = 1;
}

macro_rules! dimensions {
    ($($n:literal $name:literal)*) => {$(
        impl Dimensions for Dim<$n> {
            type Shape = [usize; $n];
        }
        impl sealed::Dimensions for Dim<$n> {
            const COUNT: Option<usize> = Some($n);
            const MODULE: &'static str = $name;
            #[inline]
            fn shape(dims: &[isize]) -> [usize; $n] {
                core::array::from_fn(|i| dims[i] as usize)
            }
        }
    )*}
}
dimensions! { 0 "Array0" 1 "Array1" 2 "Array2" 3 "Array3" }

impl sealed::Dimensions for AnyDim {
    const COUNT: Option<usize> = None;
    const MODULE: &'static str = "Genarray";
    fn shape(dims: &[isize]) -> Vec<usize> {
        dims.iter().map(|n| *n as usize).collect()
    }
}

// SAFETY: OCaml's own type, which is not `float`; kind, layout and dimensions are checked at each access.
unsafe impl<E: BigarrayElement, L: Layout, D: Dimensions> OCamlType for Bigarray<E, L, D> {
    fn describe(_: &mut Definitions) -> String {
        let (of, kind) = E::NAMES;
        alloc::format!("({of}, {kind}, Stdlib.Bigarray.{}) Stdlib.Bigarray.{}.t", L::NAME, D::MODULE)
    }
}
impl<E, L, D> Typed for Bigarray<E, L, D> {
    type Type = Self;
}
impl<E, L, D> Element for Bigarray<E, L, D> {}

/// `struct caml_ba_array`, of which the dimensions follow.
#[repr(C)]
pub(crate) struct Fields {
    pub data: *mut u8,
    pub count: isize,
    pub flags: isize,
    pub proxy: *mut u8,
}

const KIND_MASK: isize = 0xff;
const LAYOUT_MASK: isize = 0x100;
const KINDS: [&str; 14] = [
    "float32",
    "float64",
    "int8_signed",
    "int8_unsigned",
    "int16_signed",
    "int16_unsigned",
    "int32",
    "int64",
    "int",
    "nativeint",
    "complex32",
    "complex64",
    "char",
    "float16",
];

extern "C" {
    static caml_ba_ops: Operations;
}

/// Whether these are operations of bigarrays. Those of mapped files and of ours have another finaliser only.
#[inline]
fn is_bigarray(operations: *const Operations) -> bool {
    #[cold]
    fn similar(operations: &Operations) -> bool {
        // SAFETY: constant.
        let usual = unsafe { &caml_ba_ops };
        operations.serialize.map(|f| f as usize) == usual.serialize.map(|f| f as usize)
            && operations.deserialize.map(|f| f as usize) == usual.deserialize.map(|f| f as usize)
    }
    // SAFETY: custom blocks begin with their operations, which are static.
    operations == &raw const caml_ba_ops || similar(unsafe { &*operations })
}

/// The elements of a bigarray in place, and its shape. It can be used without the lock, and sent to other threads.
pub struct BigarrayView<'x, E: BigarrayElement, L, D: Dimensions> {
    elements: &'x [RelaxedCell<E>],
    shape: D::Shape,
    _layout: PhantomData<L>,
}

impl<E: BigarrayElement, L, D: Dimensions> Clone for BigarrayView<'_, E, L, D> {
    fn clone(&self) -> Self {
        BigarrayView { elements: self.elements, shape: self.shape.clone(), _layout: PhantomData }
    }
}

impl<E: BigarrayElement, L, D: Dimensions> fmt::Debug for BigarrayView<'_, E, L, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BigarrayView({:?})", self.shape)
    }
}

impl<'x, E: BigarrayElement, L: Layout, D: Dimensions> BigarrayView<'x, E, L, D> {
    /// All elements, in the order of memory.
    #[inline]
    pub fn as_cells(&self) -> &'x [RelaxedCell<E>] {
        self.elements
    }

    /// The size in each dimension.
    #[inline]
    pub fn shape(&self) -> &D::Shape {
        &self.shape
    }

    /// The element with these indices, which are OCaml's: from 0, or from 1 in Fortran's layout.
    #[inline]
    pub fn cell(&self, index: impl AsRef<[usize]>) -> Option<&'x RelaxedCell<E>> {
        self.elements.get(offset::<L>(self.shape.as_ref(), index.as_ref())?)
    }

    /// The element with these indices now.
    #[inline]
    pub fn get(&self, index: impl AsRef<[usize]>) -> Option<E> {
        self.cell(index).map(RelaxedCell::get)
    }

    /// Writes the element with these indices; false if there is none.
    #[inline]
    pub fn set(&self, index: impl AsRef<[usize]>, x: E) -> bool {
        self.cell(index).map(|element| element.set(x)).is_some()
    }

    /// A copy of all elements, in the order of memory.
    pub fn to_vec(&self) -> Vec<E> {
        self.elements.iter().map(RelaxedCell::get).collect()
    }

    /// Writes all elements, in the order of memory; an error if there are not as many.
    pub fn copy_from_slice(&self, from: &[E]) -> Result<(), ShapeError> {
        if from.len() != self.elements.len() {
            return Err(ShapeError::Elements { shape: self.elements.len(), found: from.len() });
        }
        self.elements.iter().zip(from).for_each(|(element, x)| element.set(*x));
        Ok(())
    }

    /// Writes all elements.
    pub fn fill(&self, x: E) {
        self.elements.iter().for_each(|element| element.set(x))
    }
}

/// The index of an element, counted from the first.
pub(crate) fn offset<L: Layout>(shape: &[usize], index: &[usize]) -> Option<usize> {
    if shape.len() != index.len() {
        return None;
    }
    let mut offset = 0;
    let mut step = |(n, i): (&usize, &usize)| {
        let i = i.checked_sub(L::FIRST).filter(|i| i < n)?;
        offset = offset * n + i;
        Some(())
    };
    let pairs = shape.iter().zip(index);
    match L::FLAG {
        0 => pairs.map(&mut step).collect::<Option<()>>()?,
        _ => pairs.rev().map(&mut step).collect::<Option<()>>()?,
    }
    Some(offset)
}

/// What is known of a block that is a bigarray of this type.
pub(crate) struct Found<'a> {
    pub fields: *const Fields,
    pub dims: &'a [isize],
    pub len: usize,
}

/// The bigarray in a block, if it is one of this type.
#[inline]
pub(crate) fn find<'a, E: BigarrayElement, L: Layout, D: Dimensions>(
    v: Value<'a, Any>,
) -> Result<Found<'a>, ShapeError> {
    const CUSTOM: u8 = 255;
    // SAFETY: LIVE: a custom block begins with its operations; those of bigarrays say what follows. Nothing of it
    // changes but the proxy.
    unsafe {
        let block = v.raw() as *const *const Operations;
        if v.header().is_none_or(|(tag, _)| tag != CUSTOM) || !is_bigarray(*block) {
            return Err(ShapeError::NoBigarray);
        }
        let fields = block.add(1).cast::<Fields>();
        let (flags, count) = ((*fields).flags, (*fields).count as usize);
        if flags & KIND_MASK != E::KIND as isize {
            let found = KINDS.get((flags & KIND_MASK) as usize).copied().unwrap_or("unknown");
            return Err(ShapeError::BigarrayKind { expected: KINDS[E::KIND as usize], found });
        }
        if flags & LAYOUT_MASK != L::FLAG {
            return Err(ShapeError::BigarrayLayout { expected: L::NAME });
        }
        if D::COUNT.is_some_and(|n| n != count) {
            return Err(ShapeError::Dimensions { expected: D::COUNT.unwrap_or(0), found: count });
        }
        let dims = core::slice::from_raw_parts(fields.add(1).cast::<isize>(), count);
        let len = dims.iter().map(|n| *n as usize).product();
        // Data of a mapped file may begin anywhere in it.
        if len > 0 && (*fields).data as usize % align_of::<E>() != 0 {
            return Err(ShapeError::Misaligned);
        }
        Ok(Found { fields, dims, len })
    }
}

impl<'a> Found<'a> {
    /// # Safety
    /// It was found for this type of elements.
    #[inline]
    unsafe fn elements<E: BigarrayElement>(&self) -> &'a [RelaxedCell<E>] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: by the caller, ELEMENT; DATA: the data have so many elements, and live as long as the block. They are
        // aligned, which was tested.
        unsafe { core::slice::from_raw_parts((*self.fields).data.cast(), self.len) }
    }
}

impl<'a, E: BigarrayElement, L: Layout, D: Dimensions> Value<'a, Bigarray<E, L, D>> {
    /// The elements, and the shape, for as long as nothing is collected. An error when it is another bigarray, or none.
    #[inline]
    pub fn try_view(self, rt: &Runtime) -> Result<BigarrayView<'a, E, L, D>, ShapeError> {
        let _ = rt;
        let found = find::<E, L, D>(self.into_any())?;
        // SAFETY: found for E.
        let elements = unsafe { found.elements() };
        Ok(BigarrayView { elements, shape: D::shape(found.dims), _layout: PhantomData })
    }

    /// As [`try_view`](Value::try_view); panics instead.
    #[inline]
    pub fn view(self, rt: &Runtime) -> BigarrayView<'a, E, L, D> {
        self.try_view(rt).unwrap_or_else(|error| wrong(error))
    }

    /// All elements in the order of memory, for as long as nothing is collected. Panics when it is another bigarray.
    #[inline]
    pub fn as_cells(self, rt: &Runtime) -> &'a [RelaxedCell<E>] {
        let _ = rt;
        match find::<E, L, D>(self.into_any()) {
            // SAFETY: found for E.
            Ok(found) => unsafe { found.elements() },
            Err(error) => wrong(error),
        }
    }
}

impl<E: BigarrayElement, L: Layout, D: Dimensions> ValueCell<Bigarray<E, L, D>> {
    /// The elements, and the shape, for as long as the place is borrowed: across collections, and with the lock
    /// released. An error when it is another bigarray, or none.
    #[inline]
    pub fn try_view<'x>(&'x self, rt: &Runtime) -> Result<BigarrayView<'x, E, L, D>, ShapeError> {
        let view = self.get(rt).try_view(rt)?;
        // SAFETY: KEPT.
        let elements = unsafe { &*core::ptr::from_ref(view.elements) };
        Ok(BigarrayView { elements, shape: view.shape, _layout: PhantomData })
    }

    /// As [`try_view`](ValueCell::try_view); panics instead.
    #[inline]
    pub fn view<'x>(&'x self, rt: &Runtime) -> BigarrayView<'x, E, L, D> {
        self.try_view(rt).unwrap_or_else(|error| wrong(error))
    }

    /// All elements in the order of memory, for as long as the place is borrowed. Panics when it is another bigarray.
    #[inline]
    pub fn as_cells<'x>(&'x self, rt: &Runtime) -> &'x [RelaxedCell<E>] {
        // SAFETY: KEPT.
        unsafe { &*core::ptr::from_ref(self.get(rt).as_cells(rt)) }
    }

    /// A copy of all elements, in the order of memory. Panics when it is another bigarray.
    pub fn to_vec(&self, rt: &Runtime) -> Vec<E> {
        self.get(rt).as_cells(rt).iter().map(RelaxedCell::get).collect()
    }

    /// All elements as a plain slice. Panics when it is another bigarray.
    ///
    /// # Safety
    /// As long as the slice is used, nobody writes the elements: neither OCaml nor Rust, nor another bigarray that
    /// shares them.
    #[inline]
    pub unsafe fn as_slice<'x>(&'x self, rt: &Runtime) -> &'x [E] {
        let elements = self.as_cells(rt);
        // SAFETY: ELEMENT; the caller.
        unsafe { core::slice::from_raw_parts(elements.as_ptr().cast(), elements.len()) }
    }

    /// All elements as a plain slice that can be written. Panics when it is another bigarray.
    ///
    /// # Safety
    /// As long as the slice is used, nobody else reads or writes the elements, and they are not in read-only memory.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn as_mut_slice<'x>(&'x self, rt: &Runtime) -> &'x mut [E] {
        let elements = self.as_cells(rt);
        // SAFETY: ELEMENT; the caller. The cells are written through shared references otherwise.
        unsafe { core::slice::from_raw_parts_mut(elements.as_ptr().cast::<E>().cast_mut(), elements.len()) }
    }
}

#[cold]
#[inline(never)]
fn wrong(error: ShapeError) -> ! {
    panic!("{error}")
}

impl<E: BigarrayElement, L: Layout, D: Dimensions> Downcast for Bigarray<E, L, D> {}
impl<E: BigarrayElement, L: Layout, D: Dimensions> value_sealed::Downcast for Bigarray<E, L, D> {
    fn check(v: Value<'_, Any>) -> Result<(), ShapeError> {
        find::<E, L, D>(v).map(drop)
    }
}

// SPDX-License-Identifier: MIT
//! Bigarrays made by Rust: over vectors, and over parts of others.
use crate::data::bigarray::{find, offset, Fields};
use crate::{
    AllocError, AnyDim, Bigarray, BigarrayElement, CLayout, Dim, Dimensions, Layout, Runtime, ShapeError, ValueCell,
    ValueGuard,
};
use alloc::vec::Vec;
use core::ffi::c_void;
use core::mem::ManuallyDrop;

const MOST: usize = 16;

crate::glue::glue_functions! {
    fn obx_bigarray_kind_exists(kind: u8) -> bool;
    fn obx_bigarray_over(
        flags: isize,
        count: isize,
        dims: *const isize,
        data: *mut c_void,
        capacity: usize,
        bytes: usize,
        free: extern "C" fn(*mut c_void, usize),
    ) -> isize;
    fn obx_bigarray_part(of: isize, count: isize, dims: *const isize, data: *mut c_void) -> isize;
}

/// The sizes of a new bigarray: `[a, b]` makes one of two dimensions, a vector one of as many as it has elements.
pub trait BigarrayShape: AsRef<[usize]> {
    /// The dimensions.
    type Dimensions: Dimensions;
}
impl<const N: usize> BigarrayShape for [usize; N]
where
    Dim<N>: Dimensions,
{
    type Dimensions = Dim<N>;
}
impl BigarrayShape for Vec<usize> {
    type Dimensions = AnyDim;
}
impl BigarrayShape for &[usize] {
    type Dimensions = AnyDim;
}

/// Called by the finaliser of the last bigarray over a vector's memory.
extern "C" fn free<E: BigarrayElement>(data: *mut c_void, capacity: usize) {
    // SAFETY: DATA: of a vector with this capacity, given away. ELEMENT: nothing is to be dropped in it.
    drop(unsafe { Vec::from_raw_parts(data.cast::<E>(), 0, capacity) });
}

impl Runtime {
    /// A bigarray over the vector's memory, which is not copied, in C's layout. Panics when the shape has another
    /// number of elements, or has more than 16 dimensions, when OCaml lacks the kind ([`F16`](crate::F16) before OCaml
    /// 5.2), or memory is short.
    ///
    /// OCaml learns of the vector's size, and frees it inside the collector.
    pub fn bigarray_from_vec<E: BigarrayElement, S: BigarrayShape>(
        &mut self,
        elements: Vec<E>,
        shape: S,
    ) -> ValueGuard<'_, Bigarray<E, CLayout, S::Dimensions>> {
        self.bigarray_from_vec_in(CLayout, elements, shape)
    }

    /// As [`bigarray_from_vec`](Runtime::bigarray_from_vec), in the layout of one's choice.
    pub fn bigarray_from_vec_in<E: BigarrayElement, L: Layout, S: BigarrayShape>(
        &mut self,
        layout: L,
        elements: Vec<E>,
        shape: S,
    ) -> ValueGuard<'_, Bigarray<E, L, S::Dimensions>> {
        self.try_bigarray_from_vec(layout, elements, shape).unwrap_or_else(|(error, _)| panic!("{error}"))
    }

    /// As [`bigarray_from_vec_in`](Runtime::bigarray_from_vec_in), or an error with the vector.
    #[allow(clippy::type_complexity)]
    pub fn try_bigarray_from_vec<E: BigarrayElement, L: Layout, S: BigarrayShape>(
        &mut self,
        _: L,
        elements: Vec<E>,
        shape: S,
    ) -> Result<ValueGuard<'_, Bigarray<E, L, S::Dimensions>>, (ShapeError, Vec<E>)> {
        let shape = shape.as_ref();
        let product = shape.iter().try_fold(1_usize, |n, d| n.checked_mul(*d).filter(|_| *d <= isize::MAX as usize));
        let error = if shape.len() > MOST {
            Some(ShapeError::Dimensions { expected: MOST, found: shape.len() })
        } else if product != Some(elements.len()) {
            Some(ShapeError::Elements { shape: product.unwrap_or(usize::MAX), found: elements.len() })
        // SAFETY: the function needs nothing.
        } else if !unsafe { obx_bigarray_kind_exists(E::KIND) } {
            Some(ShapeError::NoBigarray)
        } else {
            None
        };
        if let Some(error) = error {
            return Err((error, elements));
        }
        let mut dims = [0_isize; MOST];
        dims.iter_mut().zip(shape).for_each(|(to, n)| *to = *n as isize);
        let mut elements = ManuallyDrop::new(elements);
        let (data, capacity) = (elements.as_mut_ptr(), elements.capacity());
        let flags = isize::from(E::KIND) | L::FLAG;
        // SAFETY: LOCK; DATA: the vector is given away, and freed by `free`.
        let raw = unsafe {
            let count = shape.len() as isize;
            obx_bigarray_over(flags, count, dims.as_ptr(), data.cast(), capacity, capacity * size_of::<E>(), free::<E>)
        };
        match raw {
            0 => Err((ShapeError::Alloc(AllocError { words: 5 + shape.len() }), ManuallyDrop::into_inner(elements))),
            // SAFETY: a new bigarray of this kind and layout, with as many dimensions.
            raw => Ok(unsafe { ValueGuard::from_raw(self, raw) }),
        }
    }
}

impl<E: BigarrayElement, L: Layout, D: Dimensions> ValueCell<Bigarray<E, L, D>> {
    /// A bigarray over `len` of the elements of one dimension, from index `first` on (OCaml's index): the first
    /// dimension in C's layout, the last one in Fortran's. It shares the memory. An error when there are not so many,
    /// or the bigarray has no dimensions.
    pub fn sub<'a>(
        &self,
        rt: &'a mut Runtime,
        first: usize,
        len: usize,
    ) -> Result<ValueGuard<'a, Bigarray<E, L, D>>, ShapeError> {
        let found = find::<E, L, D>(self.get(rt).into_any())?;
        let count = found.dims.len();
        let mut dims = [0; MOST];
        dims[..count].copy_from_slice(found.dims);
        let which = if L::FLAG == 0 { 0 } else { count.wrapping_sub(1) };
        let Some(size) = dims[..count].get_mut(which) else {
            return Err(ShapeError::Dimensions { expected: 1, found: 0 });
        };
        let whole = core::mem::replace(size, len as isize) as usize;
        let skipped = first.checked_sub(L::FIRST).filter(|skip| skip.checked_add(len).is_some_and(|end| end <= whole));
        let Some(skipped) = skipped else { return Err(ShapeError::Bounds { index: first, len: whole }) };
        // When nothing is left, any place will do.
        let start = skipped * found.len.checked_div(whole).unwrap_or(0);
        let fields = found.fields;
        // SAFETY: the part is in the whole.
        unsafe { self.part(rt, fields, start, &dims[..count]) }
    }

    /// A bigarray over the elements whose first indices (in Fortran's layout, last ones) are these. It shares the
    /// memory. An error when there are none, or what is left has not the dimensions of the result.
    pub fn slice<'a, R: Dimensions>(
        &self,
        rt: &'a mut Runtime,
        index: &[usize],
    ) -> Result<ValueGuard<'a, Bigarray<E, L, R>>, ShapeError> {
        let found = find::<E, L, D>(self.get(rt).into_any())?;
        let count = found.dims.len();
        let rest = count.checked_sub(index.len()).filter(|rest| R::COUNT.is_none_or(|n| n == *rest));
        let Some(rest) = rest else {
            let expected = index.len() + R::COUNT.unwrap_or(0);
            return Err(ShapeError::Dimensions { expected, found: count });
        };
        let mut dims = [0; MOST];
        let (fixed, left) = match L::FLAG {
            0 => found.dims.split_at(index.len()),
            _ => {
                let (left, fixed) = found.dims.split_at(rest);
                (fixed, left)
            }
        };
        let mut shape = [0; MOST];
        shape.iter_mut().zip(fixed).for_each(|(to, n)| *to = *n as usize);
        let Some(which) = offset::<L>(&shape[..fixed.len()], index) else {
            let (i, n) = (0..fixed.len())
                .map(|i| (index[i], shape[i]))
                .find(|(i, n)| i.checked_sub(L::FIRST).is_none_or(|i| i >= *n))
                .unwrap_or_default();
            return Err(ShapeError::Bounds { index: i, len: n });
        };
        dims[..rest].copy_from_slice(left);
        let size: usize = left.iter().map(|n| *n as usize).product();
        let fields = found.fields;
        // SAFETY: the part is in the whole.
        unsafe { self.part(rt, fields, which * size, &dims[..rest]) }
    }

    /// # Safety
    /// `fields` are those of the bigarray in this place, of which the elements from `start` on make a bigarray with
    /// these dimensions; `R` has as many.
    unsafe fn part<'a, R>(
        &self,
        rt: &'a mut Runtime,
        fields: *const Fields,
        start: usize,
        dims: &[isize],
    ) -> Result<ValueGuard<'a, Bigarray<E, L, R>>, ShapeError> {
        // SAFETY: LOCK; by the caller. The fields are read before anything is collected.
        unsafe {
            let data = (*fields).data.cast::<E>().wrapping_add(start);
            let raw = obx_bigarray_part(self.get(rt).raw(), dims.len() as isize, dims.as_ptr(), data.cast());
            match raw {
                0 => Err(ShapeError::Alloc(AllocError { words: 5 + dims.len() })),
                raw => Ok(ValueGuard::from_raw(rt, raw)),
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Arguments from C, checked as far as possible.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;

use crate::error::{Code, Failure, Result, fail};

/// A string. `what` is named in errors.
///
/// # Safety
/// `text` is NULL or a string that ends with a zero byte and remains valid for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    // SAFETY: the caller promises the same.
    match unsafe { optional_text(text, what) }? {
        Some(text) => Ok(text),
        None => fail(Code::Argument, format!("{what} is NULL")),
    }
}

/// A string or NULL.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn optional_text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, and therefore a terminated string that remains valid for `'a`, as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Failure::new(Code::Argument, format!("{what} is not UTF-8")))
}

/// A pointer that receives a result. It is not read, and need not be initialised.
///
/// # Safety
/// `pointer` is NULL or a `T` that may be written for `'a`.
pub(crate) unsafe fn result<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut MaybeUninit<T>> {
    // SAFETY: the caller promises the same.
    match unsafe { optional_result(pointer, what) }? {
        Some(pointer) => Ok(pointer),
        None => fail(Code::Argument, format!("{what} is NULL")),
    }
}

/// A pointer that receives a result, or NULL.
///
/// # Safety
/// As for [`result`].
pub(crate) unsafe fn optional_result<'a, T>(
    pointer: *mut T,
    what: &str,
) -> Result<Option<&'a mut MaybeUninit<T>>> {
    if !pointer.is_aligned() {
        return fail(Code::Argument, format!("{what} is not aligned"));
    }
    // SAFETY: NULL or an aligned (checked above), exclusive location of a `T` for `'a`. It need not be initialised.
    Ok(unsafe { pointer.cast::<MaybeUninit<T>>().as_mut() })
}

/// A structure that is only read, or NULL. Several calls may read it at the same time.
///
/// # Safety
/// `pointer` is NULL or an initialised `T` that is not changed during `'a`.
pub(crate) unsafe fn optional_input<'a, T>(pointer: *const T, what: &str) -> Result<Option<&'a T>> {
    if !pointer.is_aligned() {
        return fail(Code::Argument, format!("{what} is not aligned"));
    }
    // SAFETY: NULL or an initialised, aligned (checked above) `T` that is not changed, as the caller promises.
    Ok(unsafe { pointer.as_ref() })
}

/// Structures one behind the other that are only read.
///
/// # Safety
/// `pointer` is NULL or `count` initialised `T`s that are not changed during `'a`.
pub(crate) unsafe fn list<'a, T>(pointer: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| isize::try_from(bytes).ok());
    if count > 0 && (pointer.is_null() || !pointer.is_aligned() || bytes.is_none()) {
        return fail(Code::Argument, format!("{what} is not the address of {count} structures"));
    }
    // SAFETY: not NULL and aligned, and no more than memory can have, as was just seen; the rest is promised by the caller.
    Ok(if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(pointer, count) } })
}

/// Input bytes.
///
/// # Safety
/// `data` is NULL or `length` bytes that stay unchanged for `'a`.
pub(crate) unsafe fn bytes<'a>(data: *const c_void, length: u64, what: &str) -> Result<&'a [u8]> {
    let length = size(length, what)?;
    match (data.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => fail(Code::Argument, format!("{what} is NULL, but its length is {length}")),
        // SAFETY: not NULL, and so `length` bytes that are not changed for `'a`, as the caller promises; no more than `isize`
        // holds, as was just seen. Bytes are always aligned and initialised as far as C has written them.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(data.cast(), length) }),
    }
}

/// Output bytes.
///
/// # Safety
/// `data` is NULL or `length` bytes that only the library uses for `'a`.
pub(crate) unsafe fn bytes_mut<'a>(data: *mut c_void, length: u64, what: &str) -> Result<&'a mut [u8]> {
    let length = size(length, what)?;
    match (data.is_null(), length) {
        (_, 0) => Ok(&mut []),
        (true, _) => fail(Code::Argument, format!("{what} is NULL, but its length is {length}")),
        // SAFETY: not NULL, and so `length` bytes that are ours for `'a`, as the caller promises; no more than `isize` holds, as was just
        // seen. Bytes are always aligned, and any value of them is one.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), length) }),
    }
}

/// A copy of the program's bytes in memory of the library.
pub(crate) fn copy(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut copy = zeroed(0, bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// `length` zero bytes with capacity for `more`.
pub(crate) fn zeroed(length: usize, more: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let room = length.saturating_add(more);
    bytes
        .try_reserve_exact(room)
        .map_err(|_| Failure::new(Code::Memory, format!("not enough host memory for {room} bytes")))?;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// A length that is possible for memory.
pub(crate) fn size(length: u64, what: &str) -> Result<usize> {
    match isize::try_from(length) {
        Ok(length) => Ok(length as usize),
        Err(_) => fail(Code::Argument, format!("{what}: {length} bytes are more than memory can have")),
    }
}

// SPDX-License-Identifier: MIT
//! Arguments, results and kinds.
use ocaml_boxroot::*;
use std::fmt;
use std::num::ParseIntError;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::sync::Mutex;

/// Adds.
///
/// The second paragraph.
#[export]
pub fn add(a: isize, b: isize) -> isize {
    a + b
}

#[export(noalloc)]
pub fn half(x: f64) -> f64 {
    x / 2.0
}

#[export]
pub fn negate(b: bool) -> bool {
    !b
}

#[export]
pub fn nothing() {}

#[export]
pub fn mixed(a: i32, x: f64, b: bool, s: &str) -> f64 {
    f64::from(a) + x + f64::from(u8::from(b)) + s.len() as f64
}

#[export]
pub fn small(n: u8) -> u16 {
    u16::from(n) + 1
}

/// Does not fit if `n` is large.
#[export]
pub fn large(n: i64) -> i64 {
    n.wrapping_mul(2)
}

#[export]
pub fn far(n: u64) -> u64 {
    n
}

#[export]
pub fn length(s: &str) -> usize {
    s.chars().count()
}

#[export]
pub fn greet(name: String, times: i32) -> String {
    format!("hello {name}").repeat(times as usize)
}

#[export]
pub fn double_all(list: List<isize>) -> List<isize> {
    List(list.0.into_iter().map(|n| n * 2).collect())
}

#[export]
pub fn find(names: Vec<String>, name: &str) -> Option<isize> {
    names.iter().position(|n| n == name).map(|n| n as isize)
}

#[export]
pub fn first<'a, A, B>(_rt: &'a Runtime, pair: Value<'a, (A, B)>) -> Value<'a, A> {
    pair.first()
}

#[export]
pub fn same<'a, A>(a: Value<'a, A>, _: Value<'a, A>) -> Value<'a, A> {
    a
}

static KEPT: Mutex<Option<Root<Str>>> = Mutex::new(None);

#[export]
pub fn keep(_rt: &Runtime, s: Root<Str>) {
    *KEPT.lock().unwrap() = Some(s);
}

#[export]
pub fn kept(rt: &Runtime) -> Option<Root<Str>> {
    KEPT.lock().unwrap().as_ref().map(|root| root.clone_ref(rt))
}

#[export]
pub fn place<'a, A>(_rt: &'a Runtime, a: ValueRef<'a, A>) -> ValueRef<'a, A> {
    a
}

#[export]
pub fn through_root<A>(rt: &mut Runtime, a: Root<A>) -> Root<A> {
    rt.minor_gc();
    a
}

#[export]
pub fn apply<'a, A, B>(
    rt: &'a mut Runtime,
    f: ValueRef<'_, Fun<(A,), B>>,
    a: ValueRef<'_, A>,
) -> Result<ValueGuard<'a, B>, Exception> {
    f.call(rt, (a,))
}

/// The arguments are where they were after collections that move them.
#[export]
pub fn survivor(rt: &mut Runtime, a: ValueRef<'_, Str>, n: isize, b: ValueRef<'_, Str>, c: String) -> String {
    rt.minor_gc();
    let made = rt.string("made").root();
    rt.full_major().unwrap();
    rt.compact().unwrap();
    let text = |v: ValueRef<'_, Str>| v.get(rt).to_str().unwrap().to_owned();
    format!("{} {n} {} {c} {}", text(a), text(b), text(&made))
}

#[export]
pub fn fresh<'a>(rt: &'a mut Runtime, s: &str) -> ValueGuard<'a, Str> {
    rt.string(s)
}

#[export]
pub fn frozen<'a>(rt: &'a mut Runtime, s: &str) -> Value<'a, Str> {
    rt.string(s).into_value()
}

#[export]
pub fn rooted(rt: &mut Runtime, s: &str) -> Result<Root<Str>, Exception> {
    let root = rt.string(s).root();
    rt.full_major()?;
    Ok(root)
}

#[export]
pub fn maybe<'a>(rt: &'a mut Runtime, s: &str) -> Result<Option<ValueGuard<'a, Str>>, Exception> {
    Ok((!s.is_empty()).then(|| rt.string(s)))
}

#[export]
pub fn maybe_value<'a, A>(_rt: &'a Runtime, list: Value<'a, List<A>>) -> Option<Value<'a, A>> {
    list.split_first().map(|(head, _)| head)
}

#[export]
pub fn maybe_place<'a, A>(_rt: &'a mut Runtime, a: ValueRef<'a, A>, b: bool) -> Option<ValueRef<'a, A>> {
    b.then_some(a)
}

#[export]
#[allow(clippy::too_many_arguments)]
pub fn nine(a: isize, b: f64, c: isize, d: f64, e: isize, f: f64, g: isize, h: f64, i: bool) -> f64 {
    let sum = (a + 10 * c + 100 * e + 1000 * g) as f64 + b + 2.0 * d + 4.0 * f + 8.0 * h;
    if i {
        sum
    } else {
        -sum
    }
}

#[export]
#[allow(clippy::too_many_arguments)]
pub fn twelve(
    rt: &mut Runtime,
    a: ValueRef<'_, Str>,
    b: String,
    c: f64,
    d: isize,
    e: ValueRef<'_, Str>,
    f: bool,
    g: Root<Str>,
    h: Option<isize>,
    i: &str,
    j: u8,
    k: (isize, f64),
    l: (),
) -> String {
    rt.minor_gc();
    let text = |v: ValueRef<'_, Str>| v.get(rt).to_str().unwrap().to_owned();
    format!("{} {b} {c} {d} {} {f} {} {h:?} {i} {j} {k:?} {l:?}", text(a), text(e), text(&g))
}

#[export]
pub fn swap<'a, A, B>(rt: &'a mut Runtime, pair: ValueRef<'_, (A, B)>) -> ValueGuard<'a, (B, A)> {
    rt.build(3, |n| {
        let pair = pair.get(n);
        n.pair(pair.second(), pair.first())
    })
}

/// Errors of other crates are raised as `Rust_error`.
#[export]
pub fn parse(s: &str) -> Result<u16, ParseIntError> {
    s.parse()
}

/// The same exception, physically.
#[export]
pub fn reraise(rt: &mut Runtime, f: ValueRef<'_, Fun<(Unit,), Unit>>) -> Result<(), Exception> {
    let result = f.call(rt, ((),)).map(drop);
    rt.full_major()?;
    result
}

/// In a box, as `?` makes it.
#[export]
pub fn forward(
    rt: &mut Runtime,
    f: ValueRef<'_, Fun<(Unit,), Unit>>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    f.call(rt, ((),))?;
    Ok(())
}

#[export]
pub fn index(i: usize) -> u8 {
    [1, 2, 3][i]
}

#[derive(Debug)]
struct Outer(ParseIntError);
impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outer")
    }
}
impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[export]
pub fn error_chain(rt: &Runtime) -> Result<Root<Str>, Box<dyn std::error::Error + Send + Sync>> {
    let _ = rt;
    Err(Box::new("x".parse::<u8>().map_err(Outer).unwrap_err()))
}

struct PanicsWhenDropped;
impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("a payload that panics")
    }
}

#[derive(Debug)]
struct Unprintable;
impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("a message that panics")
    }
}
impl std::error::Error for Unprintable {}

/// Panics of all sorts.
#[export]
pub fn explode(rt: &mut Runtime, how: isize) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    match how {
        0 => panic!("plain"),
        1 => panic!("formatted {how}"),
        2 => std::panic::panic_any(7),
        3 => std::panic::resume_unwind(Box::new("resumed")),
        4 => std::panic::panic_any(PanicsWhenDropped),
        5 => Err(Unprintable.into()),
        6 => rt.frame(|rt, [slot]| {
            slot.root(rt.string("in a frame"));
            panic!("in a frame")
        }),
        7 => rt.release(|| panic!("without the lock")),
        8 => {
            let caught = std::panic::catch_unwind(|| panic!("caught"));
            assert!(caught.is_err());
            Ok("survived".into())
        }
        _ => Err("no such way".into()),
    }
}

static LATER: AtomicIsize = AtomicIsize::new(0);

/// Deferred closures run, and may collect, before the arguments of a later call are read.
#[export]
pub fn later(_rt: &Runtime) {
    defer(|rt| {
        rt.full_major().unwrap();
        LATER.fetch_add(1, SeqCst);
    });
}

#[export]
pub fn later_count(_rt: &mut Runtime, s: String) -> (isize, String) {
    (LATER.load(SeqCst), s)
}

#[export(noalloc)]
pub fn length_noalloc(rt: &Runtime, s: Value<'_, Str>) -> isize {
    let _ = rt;
    s.as_bytes().len() as isize
}

#[export(noalloc)]
pub fn explode_noalloc(n: isize) -> isize {
    assert!(n < 0, "too much");
    n
}

/// A thread that OCaml does not know calls back.
#[export]
pub fn spawn(rt: &mut Runtime, f: Root<Fun<(Int,), Int>>) -> Result<isize, String> {
    let thread = std::thread::spawn(move || {
        attach(|rt| f.call(rt, (20,)).map(|n| n.value().to_isize()).map_err(|e| e.to_string()))
    });
    rt.join(thread).unwrap().map_err(|e| e.to_string())?
}

/// A keyword of OCaml.
#[export(name = "end_")]
pub fn end_(r#type: isize) -> isize {
    r#type
}

#[export]
pub fn released(rt: &mut Runtime, s: ValueRef<'_, Str>) -> Result<String, AttachError> {
    rt.release(|| attach(|rt| rt.minor_gc()))?;
    Ok(s.get(rt).to_str().unwrap().to_owned())
}

/// Borrows from OCaml's heap while nothing is collected.
#[export]
pub fn borrowed<'a>(_rt: &'a Runtime, a: &'a str, b: &'a str) -> bool {
    a.starts_with(b)
}

/// More than the heap has.
#[export]
pub fn huge(rt: &mut Runtime, words: isize) -> Result<isize, String> {
    let size = (words as usize).saturating_mul(8);
    let before = rt.string("before").root();
    let slice = std::iter::repeat_n(0u8, size.min(1 << 20)).collect::<Vec<u8>>();
    let result = rt.try_string(&slice).map(|s| s.value().as_bytes().len() as isize);
    assert_eq!(before.get(rt).to_str(), Ok("before"));
    result.map_err(|e| e.to_string())
}

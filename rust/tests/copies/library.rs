// SPDX-License-Identifier: MIT
//! The same library twice, as NAME.
#![forbid(unsafe_code)]
use ocaml_boxroot::*;
use std::sync::Mutex;

#[derive(Debug)]
pub struct Mine(String);
ocaml_abstract! { Mine = "mine"; }

#[derive(Debug, OCamlException)]
pub struct Mistake(String);
impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(&self.0) }
}
impl std::error::Error for Mistake {}

#[export]
fn mine<'a>(rt: &'a mut Runtime, s: &str) -> ValueGuard<'a, Boxed<Mine>> { rt.boxed(Mine(s.into())) }
#[export]
fn text(rt: &Runtime, m: &Mine) -> String { let _ = rt; m.0.clone() }
#[export]
fn explode(n: isize) -> isize { panic!("in NAME: {n}") }
#[export]
fn fail(s: String) -> Result<(), Mistake> { Err(Mistake(s)) }
#[export]
fn call(rt: &mut Runtime, f: ValueRef<'_, Fun<(Unit,), Int>>) -> Result<isize, Exception> {
    rt.frame(|rt, [slot]| {
        let kept = slot.root(rt.string("NAME"));
        let root = rt.string("root of NAME").root();
        let n = f.call(rt, ((),))?.value().to_isize();
        rt.full_major()?;
        assert_eq!((kept.get(rt).to_str(), root.get(rt).to_str()), (Ok("NAME"), Ok("root of NAME")));
        Ok(n)
    })
}
#[export]
fn released(rt: &mut Runtime, f: ValueRef<'_, Fun<(Unit,), Int>>) -> Result<isize, Exception> {
    rt.release(|| attach(|rt| Ok(f.call(rt, ((),))?.value().to_isize())).unwrap())
}
#[export]
fn attached() -> bool { attach(|_| ()) == Err(AttachError::Nested) }
static KEPT: Mutex<Option<Root<Str>>> = Mutex::new(None);
#[export]
fn keep(rt: &Runtime, s: Root<Str>) { let _ = rt; *KEPT.lock().unwrap() = Some(s); }
#[export]
fn kept(rt: &Runtime) -> Option<Root<Str>> { KEPT.lock().unwrap().as_ref().map(|root| root.clone_ref(rt)) }
library! {
    name = "NAME", exports = [mine, text, explode, fail, call, released, attached, keep, kept], exceptions = [Mistake],
}

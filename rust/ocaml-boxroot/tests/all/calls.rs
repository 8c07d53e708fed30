// SPDX-License-Identifier: MIT
//! Calls of OCaml functions, and their exceptions.

use crate::process::alone;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::error::Error;

fn twice<'a>(
    rt: &'a mut Runtime,
    f: ValueRef<'_, Fun<(Int,), Int>>,
    x: ValueRef<'_, Int>,
) -> Result<ValueGuard<'a, Int>, Exception> {
    let y = f.call(rt, (x,))?.root();
    f.call(rt, (&y,))
}

#[test]
fn every_number_of_arguments() {
    attached(|rt| {
        let succ = ocaml::succ(rt);
        assert_eq!(twice(rt, &succ, &int(40)).unwrap().value().to_isize(), 42);
        assert_eq!(ocaml::greet(rt).call(rt, ("you", 3)).unwrap().value().to_str(), Ok("you 3"));
        assert_eq!(ocaml::add3(rt).call(rt, (1, &int(2), int(3))).unwrap().value().to_isize(), 6);
        assert_eq!(ocaml::add5(rt).call(rt, (1, 2, 3, 4, 5)).unwrap().value().to_isize(), 54321);
        let s = rt.string("h").root();
        let long = "b".repeat(5000);
        let all = ocaml::concat8(rt).call(rt, ("a", &*long, "c", "d", "e", "f", "g", &s)).unwrap();
        assert_eq!(all.value().to_str().unwrap(), format!("a{long}cdefgh"));
    })
}

#[test]
fn exceptions_are_errors() {
    fn outer(rt: &mut Runtime) -> Result<isize, Box<dyn Error + Send + Sync>> {
        let (succ, fail) = (ocaml::succ(rt), ocaml::raise_failure(rt));
        let n = succ.call(rt, (1,))?.value().to_isize();
        fail.call(rt, ("on purpose",))?;
        Ok(n)
    }
    attached(|rt| {
        let error = outer(rt).unwrap_err();
        assert_eq!(error.to_string(), r#"Failure("on purpose")"#);
        let error = error.downcast::<Exception>().unwrap();
        rt.full_major().unwrap();
        assert!(error.is(rt, "Failure") && !error.is(rt, "Not_found"));
        let payload = error.value(rt).unwrap().into_any().field(1).unwrap();
        assert_eq!(payload.kind(), ValueKind::String { len: 10 });

        let texts = [ocaml::raise_not_found(rt), ocaml::raise_custom(rt), ocaml::raise_assert(rt)]
            .map(|f| f.call(rt, ((),)).unwrap_err().to_string());
        assert_eq!(texts[0], "Not_found");
        assert_eq!(texts[1], r#"Program.Custom(3, "x", _)"#);
        assert!(texts[2].starts_with(r#"Assert_failure("program.ml", "#), "{}", texts[2]);
    });
    // Without the lock, on another thread.
    let error = attached(|rt| ocaml::raise_not_found(rt).call(rt, ((),)).unwrap_err());
    assert_eq!(std::thread::spawn(move || error.to_string()).join().unwrap(), "Not_found");
}

#[test]
fn the_same_exception_is_raised_again() {
    attached(|rt| {
        let reraise = ocaml::reraise(rt);
        let first = ocaml::raise_custom(rt).call(rt, ((),)).unwrap_err().into_root(rt).unwrap();
        rt.minor_gc();
        let second = reraise.call(rt, (&first,)).unwrap_err();
        assert!(second.value(rt).unwrap().ptr_eq(first.get(rt)));
        let fresh = second.to_guard(rt).unwrap();
        assert!(fresh.value().ptr_eq(first.get(fresh.rt())));
    })
}

#[test]
fn deep_recursion_overflows_the_stack_with_an_exception() {
    // With OCaml 5 the stack is OCaml's own, with OCaml 4 the thread's. Its usual limit is a gigabyte.
    alone(deep_recursion_overflows_the_stack_with_an_exception, || {
        attached(|rt| {
            ocaml::stack_limit(rt).call(rt, (1 << 20,)).unwrap();
            let deep = ocaml::deep(rt);
            assert_eq!(deep.call(rt, (1000,)).unwrap().value().to_isize(), 1000);
            let kept = rt.string("kept").root();
            for _ in 0..3 {
                assert!(deep.call(rt, (1_000_000_000,)).unwrap_err().is(rt, "Stack_overflow"));
                rt.minor_gc();
                assert_eq!(kept.get(rt).to_str(), Ok("kept"));
            }
        })
    })
}

#[test]
fn calls_back_and_forth() {
    // OCaml → Rust → OCaml → Rust …, with a collection, a frame and a root at every level.
    attached(|rt| {
        let deepest = ocaml::on_rust(|rt, _| {
            rt.full_major().unwrap();
            assert_eq!(attach(|_| ()).unwrap_err(), AttachError::Nested, "in a function called by OCaml");
            7
        });
        let mut next = deepest;
        for level in 0..20 {
            let callee = next;
            next = ocaml::on_rust(move |rt, _| {
                rt.frame(|rt, [slot]| {
                    let kept = slot.root(rt.string(level.to_string()));
                    let root = rt.string("root").root();
                    let n = ocaml::call_rust(rt).call(rt, (callee,)).unwrap().value().to_isize();
                    rt.minor_gc();
                    assert_eq!(kept.get(rt).to_str(), Ok(&*level.to_string()));
                    assert_eq!(root.get(rt).to_str(), Ok("root"));
                    n + 1
                })
            });
        }
        assert_eq!(ocaml::call_rust(rt).call(rt, (next,)).unwrap().value().to_isize(), 27);
    })
}

#[test]
fn names() {
    attached(|rt| {
        assert!(rt.named_value("no such name").is_none());
        assert!(rt.named_value("zero \0 inside").is_none());
        assert_eq!(rt.named_value("succ").unwrap().kind(), ocaml::succ(rt).get(rt).into_any().kind());
    })
}

/// What was read by name lives on when the name is given to another value.
#[test]
fn names_that_are_registered_again() {
    attached(|rt| {
        let register = ocaml::register(rt);
        let first = rt.boxed(std::sync::Mutex::new(String::from("first"))).root();
        register.call(rt, ("a name", first.as_any())).unwrap();
        let root = rt.named_value("a name").unwrap().downcast::<Boxed<std::sync::Mutex<String>>>().unwrap().root(rt);
        drop(first);
        let payload = root.payload(rt);
        let other = rt.string("other").root();
        register.call(rt, ("a name", other.as_any())).unwrap();
        rt.full_major().unwrap();
        assert_eq!(*payload.lock().unwrap(), "first");
        assert_eq!(rt.named_value("a name").unwrap().kind(), ValueKind::String { len: 5 });
    })
}

/// A Rust value with the name of one of the library's own blocks.
struct Named<const DOMAINS: bool>;
impl<const DOMAINS: bool> CustomOps for Named<DOMAINS> {
    const MARSHAL: Option<Marshal<Self>> = Some(Marshal {
        name: if DOMAINS { c"ocaml_boxroot.domains" } else { c"ocaml_boxroot.exceptions" },
        write: |_, _| (),
        read: |_| None,
    });
}

#[test]
fn what_is_registered_in_place_of_the_librarys_own_is_not_believed() {
    alone(what_is_registered_in_place_of_the_librarys_own_is_not_believed, || {
        attached(|rt| {
            let register = ocaml::register(rt);
            let tuple = rt.alloc(&(1i32, 2i32, 3i32, 4i32, 5i32)).unwrap().root();
            let domains = rt.boxed_custom(Named::<true>).root();
            let exceptions = rt.boxed_custom(Named::<false>).root();
            let number = int(1000).root(rt);
            for other in [number.as_any(), tuple.as_any(), domains.as_any(), exceptions.as_any()] {
                for name in ["exceptions", "domains", "print", "error", "panic", "spawn_domain", "join_domain"] {
                    register.call(rt, (&*format!("ocaml_boxroot.{name}"), other)).unwrap();
                }
                let error = ocaml::raise_printed(rt).call(rt, ((),)).map(drop).unwrap_err();
                let text = error.text(rt);
                assert_eq!((error.printed(rt), error.backtrace(rt)), (text, None));
                assert!(matches!(rt.spawn_domain(|_| ()), Err(SpawnError::NoDomains)));
            }
        })
    })
}

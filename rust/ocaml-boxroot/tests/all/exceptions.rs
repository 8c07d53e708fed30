// SPDX-License-Identifier: MIT
//! Exceptions of OCaml: their text, the runtime's own, and effects.

use ocaml_boxroot::exceptions::*;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Counts frames of Rust that were left.
static LEFT: AtomicUsize = AtomicUsize::new(0);
struct Guard;
impl Drop for Guard {
    fn drop(&mut self) {
        LEFT.fetch_add(1, SeqCst);
    }
}

#[test]
fn printers_of_the_program_are_used() {
    attached(|rt| {
        let error = ocaml::raise_printed(rt).call(rt, ((),)).unwrap_err();
        assert_eq!(error.printed(rt), "printed <3>");
        assert_eq!(error.to_string(), "Program.Printed(3)", "without OCaml code");
        let error = ocaml::raise_custom(rt).call(rt, ((),)).unwrap_err();
        assert_eq!(error.printed(rt), r#"Program.Custom(3, "x", _)"#);
        assert_eq!(error.backtrace(rt), None);
        assert!(error.backtrace_slots(rt).is_empty());
    })
}

/// Whoever asks for it may hold what the thread with the lock is waiting for, as `println!` does.
#[test]
fn the_text_needs_no_lock() {
    attached(|rt| {
        let error = ocaml::raise_failure(rt).call(rt, ("text",)).unwrap_err();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let text = format!("{error} {error:?}");
            sender.send(()).unwrap();
            text
        });
        // With the lock held. (The text comes by the end of the thread: ThreadSanitizer does not see into channels.)
        receiver.recv().unwrap();
        assert_eq!(rt.join(thread).unwrap(), r#"Failure("text") Exception(Failure("text"))"#);
    })
}

/// Exceptions carry a text of limited length; OCaml has all of it.
#[test]
fn long_texts() {
    attached(|rt| {
        for (text, letters) in [("é".repeat(1_000_000), 2000), (format!("x{}", "é".repeat(1_000_000)), 2000)] {
            let error = ocaml::raise_failure(rt).call(rt, (&text,)).unwrap_err();
            assert_eq!(error.text(rt), format!("Failure({text:?})"));
            let shown = error.to_string();
            let shown = shown.strip_prefix("Failure(\"").unwrap().strip_suffix("\"…)").unwrap();
            assert!(
                text.starts_with(shown) && (letters - 2..=letters).contains(&shown.chars().count()),
                "{}",
                shown.len()
            );
        }
        let whole = "x".repeat(4000);
        let error = ocaml::raise_failure(rt).call(rt, (&whole,)).unwrap_err();
        assert_eq!(error.to_string(), format!("Failure({whole:?})"));
    })
}

#[test]
fn the_runtimes_own_exceptions() {
    attached(|rt| {
        let error = ocaml::raise_failure(rt).call(rt, ("text",)).unwrap_err();
        assert_eq!(error.to_rust(rt), Some(Ok(Failure("text".into()))));
        assert_eq!(error.to_rust::<NotFound>(rt), None);
        assert!(error.matches::<Failure>(rt) && !error.matches::<InvalidArgument>(rt));
        let error = ocaml::raise_failure(rt).call(rt, (&b"\xff"[..],)).unwrap_err();
        assert!(matches!(error.to_rust::<Failure>(rt), Some(Err(ConvertError::Utf8(_)))), "not UTF-8");
        let error = ocaml::raise_not_found(rt).call(rt, ((),)).unwrap_err();
        assert_eq!(error.to_rust(rt), Some(Ok(NotFound)));
        // Made by Rust, they are OCaml's.
        let same = ocaml::same_exn(rt);
        let (raiser, made) = (ocaml::raise_not_found(rt), Exception::from_error(rt, &NotFound).into_root(rt).unwrap());
        assert!(same.call(rt, (&raiser, &made)).unwrap().to_rust::<bool>().unwrap());
        for (made, text) in [
            (Exception::from_error(rt, &Failure("a".into())), r#"Failure("a")"#),
            (Exception::from_error(rt, &InvalidArgument("b".into())), r#"Invalid_argument("b")"#),
            (Exception::from_error(rt, &SysError("c".into())), r#"Sys_error("c")"#),
            (Exception::from_error(rt, &EndOfFile), "End_of_file"),
            (Exception::from_error(rt, &DivisionByZero), "Division_by_zero"),
            (Exception::from_error(rt, &OutOfMemory), "Out_of_memory"),
            (Exception::from_error(rt, &StackOverflow), "Stack_overflow"),
        ] {
            assert_eq!(made.to_string(), text);
            let raised = ocaml::reraise(rt).call(rt, (&made.into_root(rt).unwrap(),)).unwrap_err();
            assert_eq!(raised.to_string(), text);
        }
    })
}

#[test]
fn memory_that_ocaml_cannot_have() {
    attached(|rt| {
        let kept = rt.string("kept").root();
        let error = ocaml::out_of_memory(rt).call(rt, ((),)).unwrap_err();
        assert!(error.matches::<OutOfMemory>(rt), "{error}");
        rt.full_major().unwrap();
        assert_eq!(kept.get(rt).to_str(), Ok("kept"));
    })
}

#[test]
fn effects_do_not_cross_frames_of_rust() {
    if !ocaml::OCAML5 {
        return;
    }
    let before = LEFT.load(SeqCst);
    attached(|rt| {
        let unhandled = |error: &Exception, rt: &Runtime| error.is(rt, "Stdlib.Effect.Unhandled");
        let error = ocaml::perform(rt).call(rt, ((),)).unwrap_err();
        assert!(unhandled(&error, rt), "{error}");
        // OCaml's handler, Rust, OCaml: performed below Rust.
        let n = ocaml::on_rust(move |rt, _| {
            let _guard = Guard;
            let kept = rt.string("kept").root();
            let error = ocaml::perform(rt).call(rt, ((),)).unwrap_err();
            assert!(unhandled(&error, rt), "{error}");
            rt.full_major().unwrap();
            assert_eq!(kept.get(rt).to_str(), Ok("kept"));
            assert_eq!(ocaml::succ(rt).call(rt, (1,)).unwrap().value().to_isize(), 2);
            5
        });
        assert_eq!(ocaml::perform_below(rt).call(rt, (n,)).unwrap().value().to_isize(), 5);
        // Handled below Rust, with Rust inside the handler.
        assert_eq!(ocaml::handled(rt).call(rt, (n,)).unwrap().value().to_isize(), 5 + 1 + 10);
        rt.full_major().unwrap();
    });
    assert_eq!(LEFT.load(SeqCst), before + 2);
}

/// An error of a conversion is an exception without the lock, and made when it is asked for.
#[test]
fn an_error_of_a_conversion_is_an_exception() {
    fn fails(error: ConvertError) -> Result<(), Exception> {
        Err(error)?
    }
    let range = ConvertError::Range { target: "i8" };
    let error = fails(range.clone()).unwrap_err();
    let text = "the number does not fit in i8";
    assert_eq!(error.to_string(), format!("Invalid_argument({text:?})"));
    let error = attached(|rt| {
        assert_eq!((error.text(rt), error.printed(rt)), (error.to_string(), error.to_string()));
        assert!(error.is(rt, "Invalid_argument") && error.matches::<InvalidArgument>(rt));
        for _ in 0..10_000 {
            assert_eq!(error.to_rust(rt), Some(Ok(InvalidArgument(text.into()))));
        }
        rt.full_major().unwrap();
        assert_eq!(error.backtrace(rt), None);
        let fresh = error.to_guard(rt).unwrap().root();
        let root = error.into_root(rt).unwrap();
        rt.full_major().unwrap();
        for exn in [fresh, root] {
            assert_eq!(Exception::new(rt, exn.get(rt)).to_rust(rt), Some(Ok(InvalidArgument(text.into()))));
        }
        let raised = ocaml::reraise(rt).call(rt, (&Exception::from(range),)).map(drop).unwrap_err();
        assert_eq!(raised.to_rust(rt), Some(Ok(InvalidArgument(text.into()))));
        fails(RootError::OutOfMemory.into()).unwrap_err()
    });
    assert_eq!(error.to_string(), "Out_of_memory");
}

/// Errors can be shared, and lead to the exception that caused them.
#[test]
fn errors_have_sources() {
    fn source(error: &(impl std::error::Error + Send + Sync + 'static)) -> String {
        error.source().map(|source| source.to_string()).unwrap_or_default()
    }
    let error = || Exception::from(ConvertError::Range { target: "i8" });
    let text = error().to_string();
    assert_eq!(source(&ShutdownError::Exception(error())), text);
    assert_eq!(source(&ShutdownError::Attach(AttachError::Nested)), AttachError::Nested.to_string());
    assert_eq!(source(&JoinError::Exception(error())), text);
    assert_eq!(source(&RecvError::Exception(error())), text);
    assert_eq!(source(&SpawnError::Exception(error())), text);
    assert_eq!(source(&RecvError::Disconnected), "");
}

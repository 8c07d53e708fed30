// SPDX-License-Identifier: MIT
//! Backtraces. A process of its own, since a domain records those of all its threads or none.

use crate::process::alone;
use ocaml_boxroot::exceptions::Failure;
use ocaml_boxroot::*;
use ocaml_boxroot_testing::{self as ocaml, attached};

#[test]
fn backtraces() {
    alone(backtraces, || {
        attached(|rt| {
            let record = ocaml::record_backtraces(rt);
            record.call(rt, (true,)).unwrap();
            let below = ocaml::raise_below(rt);
            let error = below.call(rt, (2,)).unwrap_err();
            let other = ocaml::raise_notrace(rt).call(rt, ((),)).unwrap_err();
            // It is kept with the exception, whatever happens meanwhile.
            ocaml::raise_not_found(rt).call(rt, ((),)).unwrap_err();
            rt.full_major().unwrap();
            let slots = error.backtrace_slots(rt);
            assert_eq!(slots.len(), 3, "{slots:?}");
            assert!(slots.iter().all(|slot| slot.file == "program.ml" && slot.line == slots[0].line), "{slots:?}");
            assert!(slots[0].is_raise && !slots[1].is_raise, "{slots:?}");
            assert!(slots[0].start < slots[1].start && slots[1].end > slots[1].start, "{slots:?}");
            assert!(slots[0].function.as_ref().is_some_and(|name| name.contains("raise_below")), "{slots:?}");
            let text = error.backtrace(rt).unwrap();
            assert_eq!(text.lines().count(), 3, "{text}");
            assert!(text.starts_with("Raised at ") && text.contains("program.ml"), "{text}");
            // The exception is the same, in every respect.
            assert_eq!((error.printed(rt), error.to_string()), ("printed <7>".into(), "Program.Printed(7)".into()));
            assert!(error.is(rt, "Program.Printed") && !error.matches::<Failure>(rt));
            assert_eq!(error.value(rt).unwrap().into_any().field(1).unwrap().kind(), ValueKind::Int(7));
            assert_eq!(other.backtrace(rt), None, "raised without");
            let again = Exception::new(rt, error.value(rt).unwrap());
            assert_eq!(again.backtrace(rt), None, "made by Rust");
            // A long one is not in the minor heap.
            let long = below.call(rt, (700,)).unwrap_err();
            rt.compact().unwrap();
            assert_eq!(long.backtrace_slots(rt).len(), 701);
            assert!(long
                .into_root(rt)
                .is_some_and(|root| root.get(rt).into_any().field(1).unwrap().kind() == ValueKind::Int(7)));
            record.call(rt, (false,)).unwrap();
            let error = below.call(rt, (2,)).unwrap_err();
            assert_eq!(error.backtrace(rt), None, "not recorded any more");
        })
    })
}

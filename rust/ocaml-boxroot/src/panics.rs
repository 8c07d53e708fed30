// SPDX-License-Identifier: MIT
//! Where panics stop, and what is known of them.
use alloc::string::String;

/// Runs a job that is no concern of the code that happens to run it: nor is its panic.
pub(crate) fn contain(job: impl FnOnce()) {
    if let Err(panic) = catch_panic(job) {
        panic.describe();
    }
}

/// What is known of a panic.
#[derive(Debug, Default)]
pub(crate) struct Panic {
    pub message: String,
    pub file: String,
    pub line: u32,
    pub backtrace: String,
}

#[cfg(feature = "std")]
mod with_std {
    use super::*;
    use alloc::boxed::Box;
    use std::any::Any;
    use std::backtrace::{Backtrace, BacktraceStatus};
    use std::cell::RefCell;
    use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe, PanicHookInfo};
    use std::sync::Once;

    std::thread_local! {
        /// The last panic of this thread that nobody has described yet.
        static LAST: RefCell<Option<Panic>> = const { RefCell::new(None) };
    }

    /// What a panic that was caught carries: two words, so that the way without a panic has nothing to move.
    #[derive(Debug)]
    pub(crate) struct PanicPayload(Box<dyn Any + Send>);

    /// Runs `f`; a panic stops here.
    #[inline(always)]
    pub(crate) fn catch_panic<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload> {
        // What `f` leaves half done is seen by those who share it, as after any panic that is caught.
        catch_unwind(AssertUnwindSafe(f)).map_err(PanicPayload)
    }

    impl PanicPayload {
        #[cold]
        #[inline(never)]
        pub(crate) fn describe(self) -> Panic {
            let payload = self.0;
            let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
                (Some(text), _) => (*text).to_owned(),
                (_, Some(text)) => text.clone(),
                _ => "Box<dyn Any>".to_owned(),
            };
            let last = LAST.try_with(|last| last.try_borrow_mut().ok().and_then(|mut last| last.take()));
            // A payload may panic in turn when it is dropped; then that payload stays.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                core::mem::forget(again);
            }
            match last.ok().flatten() {
                // One that was caught elsewhere, or that did not pass the hook, has other words.
                Some(panic) if panic.message == message => panic,
                _ => Panic { message, ..Panic::default() },
            }
        }
    }

    /// Keeps what the hook tells of a panic, for `describe`.
    fn record(info: &PanicHookInfo<'_>) {
        let text = info.payload().downcast_ref::<&str>().copied();
        let message = text.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str));
        let backtrace = Backtrace::capture();
        let panic = Panic {
            message: message.unwrap_or("Box<dyn Any>").to_owned(),
            file: info.location().map(|place| place.file().to_owned()).unwrap_or_default(),
            line: info.location().map_or(0, |place| place.line()),
            backtrace: match backtrace.status() {
                BacktraceStatus::Captured => backtrace.to_string(),
                _ => String::new(),
            },
        };
        let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = Some(panic)));
    }

    /// Whether this thread unwinds.
    pub(crate) fn is_unwinding() -> bool {
        std::thread::panicking()
    }

    /// Records the place of each panic from now on; the hook that was there runs afterwards. Not while this thread
    /// unwinds.
    pub(crate) fn hook_panics() {
        static HOOKED: Once = Once::new();
        if is_unwinding() {
            return;
        }
        HOOKED.call_once(|| {
            let earlier = take_hook();
            set_hook(Box::new(move |info| {
                record(info);
                earlier(info);
            }));
        });
    }
}
#[cfg(feature = "std")]
pub(crate) use with_std::{catch_panic, hook_panics, is_unwinding, PanicPayload};

/// Without the standard library a panic ends the process, as the crate's user decides in the panic handler.
#[cfg(not(feature = "std"))]
mod without_std {
    use super::*;

    #[derive(Debug)]
    pub(crate) enum PanicPayload {}

    impl PanicPayload {
        pub(crate) fn describe(self) -> Panic {
            match self {}
        }
    }

    #[inline(always)]
    pub(crate) fn catch_panic<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload> {
        Ok(f())
    }

    pub(crate) fn is_unwinding() -> bool {
        false
    }

    pub(crate) fn hook_panics() {}
}
#[cfg(not(feature = "std"))]
pub(crate) use without_std::{catch_panic, hook_panics, is_unwinding, PanicPayload};

// SPDX-License-Identifier: MIT
//! Rust types that are exceptions of OCaml, those of OCaml itself among them.
use crate::exception::{constructor, failure};
use crate::{
    glue, Any, ConvertError, Definitions, Exception, Exn, FromOCaml, Nursery, Root, RootError, Runtime, ToOCaml, Value,
};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error;
use core::ffi::c_int;
use core::fmt;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A type of errors whose values are OCaml exceptions of their own: one constructor for a struct, one for each variant
/// of an enum. Derive it, see [`OCamlException`](macro@crate::OCamlException).
///
/// # Safety
/// The constructors take the arguments that `make` gives them and `read` reads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an exception of OCaml",
    note = "derive `OCamlException` for it; those of OCaml itself are in `ocaml_boxroot::exceptions`"
)]
pub unsafe trait OCamlException: Error + Send + Sync + 'static {
    /// Its constructors.
    #[doc(hidden)]
    fn constructors() -> &'static [Constructor];

    /// The index in `constructors` of the one that this value has.
    #[doc(hidden)]
    fn which(&self) -> usize;

    /// How many words the exception needs, about.
    #[doc(hidden)]
    fn words(&self) -> usize;

    /// The exception.
    ///
    /// # Safety
    /// `constructor` is what OCaml made for the constructor that this value has.
    #[doc(hidden)]
    unsafe fn make<'n>(&self, n: &'n Nursery, constructor: Value<'n, Any>) -> Result<Value<'n, Exn>, ConvertError>;

    /// The value that belongs to the exception.
    ///
    /// # Safety
    /// The exception has the constructor number `which`.
    #[doc(hidden)]
    unsafe fn read(rt: &Runtime, which: usize, exn: Value<'_, Exn>) -> Result<Self, ConvertError>
    where
        Self: Sized;
}

/// What is known of a constructor.
#[doc(hidden)]
#[derive(Debug)]
pub struct Constructor {
    /// Its name in OCaml.
    pub name: &'static str,
    /// The OCaml module that declares it. The others are declared by the generated text.
    pub module: Option<&'static str>,
    /// The documentation comment.
    pub doc: &'static str,
    /// The names of its arguments, if they have names.
    pub labels: &'static [&'static str],
    /// How many arguments it has.
    pub size: usize,
    /// Their types.
    pub describe: fn(&mut Definitions) -> Vec<String>,
    stored: Stored,
}

// CONSTRUCTOR: a root that lives for ever, and holds a constructor whose arguments are those that the text says. One
// that is registered again leaves the earlier root alive, since others may be using it.
#[derive(Debug)]
enum Stored {
    /// Null until OCaml has registered it.
    Registered(AtomicPtr<Root<Any>>),
    /// One of the runtime's own.
    Builtin(c_int),
}

impl Constructor {
    /// A constructor that the OCaml text declares, or the OCaml module `module`.
    pub const fn new(
        name: &'static str,
        module: Option<&'static str>,
        doc: &'static str,
        labels: &'static [&'static str],
        size: usize,
        describe: fn(&mut Definitions) -> Vec<String>,
    ) -> Self {
        let stored = Stored::Registered(AtomicPtr::new(null_mut()));
        Constructor { name, module, doc, labels, size, describe, stored }
    }

    pub(crate) const fn builtin(number: c_int, size: usize) -> Self {
        let stored = Stored::Builtin(number);
        Constructor { name: "", module: None, doc: "", labels: &[], size, describe: |_| Vec::new(), stored }
    }

    /// What OCaml made for it, once it is registered.
    pub(crate) fn get<'r>(&self, rt: &'r Runtime) -> Option<Value<'r, Any>> {
        match &self.stored {
            // SAFETY: CONSTRUCTOR.
            Stored::Registered(root) => unsafe { root.load(Acquire).as_ref() }.map(|root| root.get(rt)),
            // SAFETY: LOCK; they are static.
            Stored::Builtin(number) => Some(unsafe { Value::from_raw(glue::obx_builtin(*number)) }),
        }
    }

    /// The caller has compared the text, which the OCaml compiler has checked, and tested an exception.
    pub(crate) fn set(&self, rt: &Runtime, constructor: Value<'_, Any>) -> Result<(), RootError> {
        if let Stored::Registered(stored) = &self.stored {
            let root = Box::into_raw(Box::new(Root::try_new(rt, constructor)?));
            stored.store(root, Release);
        }
        Ok(())
    }
}

/// The number of the constructor that `exn` has among those of `E`.
fn which<E: OCamlException>(rt: &Runtime, exn: Value<'_, Exn>) -> Option<usize> {
    let constructor = constructor(exn)?;
    E::constructors().iter().position(|c| c.get(rt).is_some_and(|known| known.ptr_eq(constructor)))
}

/// The exception for an error, valid until the next thing that may run the collector. `None` if OCaml has not
/// registered its constructor.
pub(crate) fn raw<E: OCamlException>(rt: &mut Runtime, error: &E) -> Option<Result<isize, ConvertError>> {
    let constructor = E::constructors().get(error.which())?;
    constructor.get(rt)?;
    let nursery = Nursery::new(rt, error.words());
    // SAFETY: CONSTRUCTOR: the one that `which` says.
    let made = unsafe { error.make(&nursery, constructor.get(&nursery)?) };
    Some(made.map(Value::raw))
}

impl Exception {
    /// The value of `E` that this exception is, if its constructor is one of those of `E`. Constructors are compared
    /// by identity, as OCaml does, not by name. An error if its arguments cannot be converted.
    ///
    /// ```
    /// # use ocaml_boxroot::prelude::*;
    /// use ocaml_boxroot::exceptions::Failure;
    /// fn message(rt: &mut Runtime, f: &Root<Fun<(Unit,), Unit>>) -> Option<String> {
    ///     match f.call(rt, ((),)).map(drop).err()?.to_rust(rt) {
    ///         Some(Ok(Failure(text))) => Some(text),
    ///         _ => None,
    ///     }
    /// }
    /// ```
    pub fn to_rust<E: OCamlException>(&self, rt: &Runtime) -> Option<Result<E, ConvertError>> {
        let exn = self.value(rt)?;
        let which = which::<E>(rt, exn)?;
        // SAFETY: it has that constructor; CONSTRUCTOR.
        Some(unsafe { E::read(rt, which, exn) })
    }

    /// Whether its constructor is one of those of `E`.
    pub fn matches<E: OCamlException>(&self, rt: &Runtime) -> bool {
        self.value(rt).is_some_and(|exn| which::<E>(rt, exn).is_some())
    }

    /// The OCaml exception that `error` is. `Failure` with its text, if OCaml has not registered the constructor: the
    /// program does not contain the module that declares it, or imports it.
    pub fn from_error<E: OCamlException>(rt: &mut Runtime, error: &E) -> Exception {
        match raw(rt, error) {
            // SAFETY: valid until something is collected.
            Some(Ok(raw)) => Exception::new(rt, unsafe { Value::from_raw(raw) }),
            Some(Err(error)) => error.into(),
            None => failure(rt, &alloc::format!("{error}")),
        }
    }
}

type Raised = Option<Result<isize, ConvertError>>;

// --- types that are known

/// A type that `library!` lists.
#[derive(Debug, Clone, Copy)]
pub struct ExceptionType {
    constructors: fn() -> &'static [Constructor],
    raise: fn(&mut Runtime, &(dyn Error + 'static)) -> Raised,
}

impl ExceptionType {
    /// What is known of the type.
    pub const fn new<E: OCamlException>() -> ExceptionType {
        ExceptionType { constructors: E::constructors, raise: |rt, error| raw(rt, error.downcast_ref::<E>()?) }
    }
}

/// The constructors of the types.
pub(crate) fn constructors(types: &'static [ExceptionType]) -> impl Iterator<Item = &'static Constructor> {
    // Those of OCaml itself need no declaration.
    types.iter().flat_map(|t| (t.constructors)()).filter(|c| !c.name.is_empty())
}

/// The exception for `error`, if it is of one of the types that are known: those of OCaml, and those of libraries
/// whose OCaml side has registered them. Valid until the next thing that may run the collector.
pub(crate) fn raw_of_known(rt: &mut Runtime, error: &(dyn Error + 'static)) -> Raised {
    BUILTIN.iter().chain(known()).find_map(|t| (t.raise)(rt, error))
}

/// The exception types of one library, a node of the list [`KNOWN`].
struct Known {
    types: &'static [ExceptionType],
    next: *const Known,
}

// KNOWN: the nodes reachable from here live for ever, and are never written.
static KNOWN: AtomicPtr<Known> = AtomicPtr::new(null_mut());

fn known() -> impl Iterator<Item = &'static ExceptionType> {
    let mut next: *const Known = KNOWN.load(Acquire);
    core::iter::from_fn(move || {
        // SAFETY: KNOWN.
        let node: &'static Known = unsafe { next.as_ref() }?;
        next = node.next;
        Some(node.types)
    })
    .flatten()
}

/// From now on [`raw_of_known`] finds these types.
pub(crate) fn add_known(types: &'static [ExceptionType]) {
    if types.is_empty() || known().any(|t| core::ptr::eq(t, types.as_ptr())) {
        return;
    }
    let node = Box::into_raw(Box::new(Known { types, next: null() }));
    let mut head = KNOWN.load(Relaxed);
    loop {
        // SAFETY: the node is ours until it is in the list.
        unsafe { (*node).next = head };
        match KNOWN.compare_exchange_weak(head, node, Release, Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

// --- exceptions of OCaml itself

macro_rules! exceptions {
    ($($(#[$doc:meta])* $name:ident $(($payload:ident))? = $number:ident, $text:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name $((
            /// Its argument.
            pub $payload,
        ))?;

        exceptions!(@display $name $($payload)?, $text);
        impl core::error::Error for $name {}

        // SAFETY: the runtime's exceptions of that name.
        unsafe impl OCamlException for $name {
            fn constructors() -> &'static [Constructor] {
                static LIST: [Constructor; 1] =
                    [Constructor::builtin(glue::$number, 0 $(+ exceptions!(@one $payload))?)];
                &LIST
            }
            fn which(&self) -> usize {
                0
            }
            exceptions!(@convert $name $($payload)?);
        }
    )*

        /// All exceptions of OCaml itself.
        static BUILTIN: &[ExceptionType] = &[$(ExceptionType::new::<$name>()),*];
    };
    (@one $payload:ident) => { 1 };
    (@display $name:ident, $text:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($text)
            }
        }
    };
    (@display $name:ident $payload:ident, $text:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($text, "{}"), self.0)
            }
        }
    };
    (@convert $name:ident) => {
        fn words(&self) -> usize {
            0
        }
        unsafe fn make<'n>(&self, _: &'n Nursery, constructor: Value<'n, Any>) -> Result<Value<'n, Exn>, ConvertError> {
            // SAFETY: a constant exception is its constructor.
            Ok(unsafe { constructor.cast() })
        }
        unsafe fn read(_: &Runtime, _: usize, _: Value<'_, Exn>) -> Result<Self, ConvertError> {
            Ok($name)
        }
    };
    (@convert $name:ident $payload:ident) => {
        fn words(&self) -> usize {
            3 + self.0.words()
        }
        unsafe fn make<'n>(&self, n: &'n Nursery, constructor: Value<'n, Any>) -> Result<Value<'n, Exn>, ConvertError> {
            Ok(n.filled(0, [constructor.raw(), self.0.to_ocaml(n)?.raw()])?)
        }
        unsafe fn read(rt: &Runtime, _: usize, exn: Value<'_, Exn>) -> Result<Self, ConvertError> {
            // SAFETY: by the caller: a block of the constructor and a string.
            Ok($name(FromOCaml::from_ocaml(rt, unsafe { exn.part(1) })?))
        }
    };
}

exceptions! {
    /// `Failure`
    Failure(String) = FAILURE, "";
    /// `Invalid_argument`
    InvalidArgument(String) = INVALID_ARGUMENT, "invalid argument: ";
    /// `Sys_error`
    SysError(String) = SYS_ERROR, "";
    /// `Not_found`
    NotFound = NOT_FOUND, "not found";
    /// `End_of_file`
    EndOfFile = END_OF_FILE, "end of file";
    /// `Division_by_zero`
    DivisionByZero = DIVISION_BY_ZERO, "division by zero";
    /// `Out_of_memory`
    OutOfMemory = OUT_OF_MEMORY, "out of memory";
    /// `Stack_overflow`
    StackOverflow = STACK_OVERFLOW, "stack overflow";
}

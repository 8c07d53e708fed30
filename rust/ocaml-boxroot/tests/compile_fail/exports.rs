//# unrooted_arguments_where_the_collector_may_run - write `ValueRef<'_, T>` or `Root<T>` in place of `Value<'_, T>`
#[export]
fn f(rt: &mut Runtime, s: Value<'_, Str>) {} //~
//+ fn f(rt: &mut Runtime, s: ValueRef<'_, Str>) {}
//# unrooted_arguments_under_another_name - not general enough
type Text<'a> = Value<'a, Str>; //~
//+ type Text<'a> = ValueRef<'a, Str>;
#[export]
fn f(rt: &mut Runtime, s: Text<'_>) {}
//# borrowed_data_where_the_collector_may_run - not general enough
#[export]
fn f(rt: &mut Runtime, s: std::borrow::Cow<'_, str>) {} //~
//+ fn f(rt: &Runtime, s: std::borrow::Cow<'_, str>) {}
//# borrowed_parts_where_the_collector_may_run - write `String` for `&str`
#[export]
fn f(rt: &mut Runtime, s: Option<&str>) {} //~
//+ fn f(rt: &mut Runtime, s: Option<String>) {}
//# borrowed_elements_where_the_collector_may_run - write `String` for `&str`
#[export]
fn f(rt: &mut Runtime, s: &[(isize, Vec<&[u8]>)]) {} //~
//+ fn f(rt: &mut Runtime, s: &[(isize, Vec<Root<Fun<(Str,), Unit>>>)]) {}
//# unrooted_parts_where_the_collector_may_run - `Root<T>` for `Value<'_, T>`
#[export]
fn f(rt: &mut Runtime, s: (isize, Value<'_, Str>)) {} //~
//+ fn f(rt: &Runtime, s: (isize, Value<'_, Str>)) {}
//# parameters_with_conditions - put `#[cfg]` on two functions
#[export]
fn f(#[cfg(unix)] x: isize) {} //~
//+ fn f(x: isize) {}
//# attributes_in_lists - the attribute of a list is `cfg`
#[export]
fn f() {}
library! { name = "listed", exports = [#[inline] f] } //~
//+ library! { name = "listed", exports = [#[cfg(unix)] f] }
//# arguments_that_ocaml_does_not_have E0277 cannot be an argument of an exported function
#[export]
fn f(x: std::time::Instant) {} //~
//+ fn f(x: String) {}
//# results_that_ocaml_does_not_have E0277 cannot be converted to an OCaml value
#[export]
fn f(x: isize) -> std::time::Instant { loop {} } //~
//+ fn f(x: isize) -> String { loop {} }
//# results_that_borrow_from_the_heap_while_blocks_are_made E0502
#[export]
fn f<'a>(rt: &'a Runtime, s: &'a str) -> Vec<&'a str> { vec![s] } //~
//+ fn f<'a>(rt: &'a Runtime, s: &'a str) -> Vec<String> { vec![s.into()] }
//# errors_that_cannot_be_raised E0277 cannot be raised as an OCaml exception
#[export]
fn f(x: isize) -> Result<isize, isize> { Err(1) } //~
//+ fn f(x: isize) -> Result<isize, String> { Err(String::new()) }
//# the_runtime_is_first - the runtime is the first parameter
#[export]
fn f(x: isize, rt: &mut Runtime) {} //~
//+ fn f(rt: &mut Runtime, x: isize) {}
//# async_functions - OCaml cannot call an `async` function
#[export]
async fn f(x: isize) {} //~
//+ fn f(x: isize) {}
//# numbers_as_parameters - a number cannot be a parameter of an OCaml function's type
#[export]
fn f<const N: usize>(x: isize) {} //~
//+ fn f<A>(x: isize) {}
//# types_without_a_name - OCaml needs to know this type: write it out
#[export]
fn f(x: isize) -> impl Copy { x } //~
//+ fn f(x: isize) -> isize { x }
//# unknown_options - an option of `export` is
#[export(fast)] //~
//+ #[export(noalloc)]
fn f(x: isize) {}
//# noalloc_with_write_access - does not take `&mut Runtime`
#[export(noalloc)]
fn f(rt: &mut Runtime, x: isize) {} //~
//+ fn f(rt: &Runtime, x: isize) {}
//# noalloc_results_that_allocate E0277 it may have to be allocated
#[export(noalloc)]
fn f(x: isize) -> String { loop {} } //~
//+ fn f(x: isize) -> isize { loop {} }
//# noalloc_arguments_that_may_be_refused E0277 cannot be an argument of a function with `noalloc`, which cannot raise
#[export(noalloc)]
fn f(x: u8) {} //~
//+ fn f(x: isize) {}
//# methods_that_change_their_value - OCaml shares its values: take `&self`
struct T;
ocaml_abstract! { T = "t"; }
#[export]
impl T {
    fn f(&mut self) {} //~
    //+ fn f(&self) {}
}
//# arguments_that_change_their_value - OCaml shares its values: take `&T`
struct T;
ocaml_abstract! { T = "t"; }
#[export]
fn f(t: &mut T) {} //~
//+ fn f(t: &T) {}
//# methods_need_the_whole_impl - put `#[export]` in front of the `impl`
struct T;
ocaml_abstract! { T = "t"; }
mod m {} //~
//+ #[export]
impl T {
    #[export]
    fn f(&self) {}
}
//# values_of_rust_without_a_name E0277 has no name in OCaml
struct T;
struct U;
ocaml_abstract! { U = "u"; }
#[export]
fn f(t: &T) {} //~
//+ fn f(t: &U) {}
//# methods_of_traits - methods of traits are not exported
struct T;
trait Tr { fn f(); }
#[export]
impl Tr for T { //~
//+ impl T {
    fn f() {}
}
//# lists_of_functions_that_are_not_exported E0425
#[export]
fn f(x: isize) {}
fn g(x: isize) {}
library! { name = "lib", exports = [g] } //~
//+ library! { name = "lib", exports = [f] }
//# names_that_are_no_modules - the name of a file
#[export]
fn f(x: isize) {}
library! { name = "Lib", exports = [f] } //~
//+ library! { name = "lib", exports = [f] }
//# imports_may_raise - an OCaml function may raise
import! {
    mod host = "Host";
    fn f(x: isize) -> isize; //~
    //+ fn f(x: isize) -> Result<isize, Exception>;
}
//# imports_get_the_runtime_anyway - the runtime is added by `import!`
import! {
    mod host = "Host";
    fn f(rt: &mut Runtime, x: isize) -> Result<isize, Exception>; //~
    //+ fn f(x: isize) -> Result<isize, Exception>;
}
//# imports_are_of_modules - the name of an OCaml module
import! {
    mod host = "host"; //~
    //+ mod host = "Host";
    fn f(x: isize) -> Result<isize, Exception>;
}
//# unrooted_values_are_not_passed_to_imports E0502
import! {
    mod host = "Host";
    pub fn f(x: ValueRef<'_, Str>) -> Result<isize, Exception>;
}
fn g(rt: &mut Runtime, s: &Root<Str>) {
    let v = s.get(rt); //~
    //+ let v = s;
    let _ = host::f(rt, &v);
}
//# parameters_have_no_traits E0277
trait Belongs { type To; }
impl Belongs for Any { type To = Str; }
impl<A> Belongs for List<A> { type To = Int; }
#[export]
fn f<A: Belongs>(x: Root<A>) {} //~
//+ fn f<A: TypeVar>(x: Root<A>) {}
//# parameters_are_not_kept_by_their_type - with `'static`, values of one call could be given out as those of another
use std::any::TypeId;
#[export]
fn f<A: 'static>(x: Root<A>) { let _ = TypeId::of::<A>(); } //~
//+ fn f<A: TypeVar>(x: Root<A>) { let _ = TypeId::of::<isize>(); }
//# parameters_are_not_kept_by_where - with `'static`, values of one call could be given out as those of another
#[export]
fn f<A>(x: Root<A>) where A: 'static {} //~
//+ fn f<A>(x: Root<A>) where A: TypeVar {}
//# parameters_are_not_kept_by_their_arguments E0310
struct Kept<A: 'static>(Root<A>);
impl<A: 'static> Typed for Kept<A> { type Type = A; }
impl<'a, A: 'static> FromOCaml<'a> for Kept<A> {
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, A>) -> Result<Self, ConvertError> { Ok(Kept(v.root(rt))) }
}
#[export]
fn f<A>(x: Kept<A>) {} //~
//+ fn f(x: Kept<Int>) {}
//# parameters_are_not_of_one_type E0277
struct Some_<A>(Root<A>);
impl Typed for Some_<Any> { type Type = Str; }
impl<'a> FromOCaml<'a> for Some_<Any> {
    fn from_ocaml(rt: &'a Runtime, v: Value<'a, Str>) -> Result<Self, ConvertError> { loop {} }
}
#[export]
fn f<A>(x: Some_<A>) {} //~
//+ fn f(x: Some_<Any>) {}
//# parameters_have_no_name_for_others E0425|E0412
#[export]
fn f(x: Root<Var<0>>) {} //~
//+ fn f(x: Root<Int>) {}
//# promises_are_unsafe - usage of an `unsafe` block
#[export(unsafe(static))] //~
//+ #[export]
fn f<A>(x: Root<A>) {}
//# payloads_for_all_types_are_not_found_again E0310
struct Cell<A>(std::sync::Mutex<Root<A>>);
ocaml_abstract! { Cell<A> = "cell"; }
#[export]
fn f<A: TypeVar>(rt: &Runtime, x: Root<A>) {
    let _ = x.get(rt).into_any().downcast::<Boxed<Cell<A>>>(); //~
    //+ let _ = x.get(rt).into_any().downcast::<Boxed<Cell<Any>>>();
}
//# payloads_for_all_types_are_not_those_of_one E0277
struct Cell<A>(std::sync::Mutex<Root<A>>);
ocaml_abstract! { Cell<A> = "cell"; }
fn f(rt: &mut Runtime, x: Root<Str>) {
    let _ = rt.boxed_erased(Cell(x.into())); //~
    //+ let _ = rt.boxed(Cell(x.into()));
}
//# payloads_for_all_types_can_be_shared E0277
struct Cell<A>(std::cell::RefCell<Root<A>>); //~
//+ struct Cell<A>(std::sync::RwLock<Root<A>>);
ocaml_abstract! { Cell<A> = "cell"; }
//# places_are_made_by_ocaml E0308
use ocaml_boxroot::export::{read_arg, Place};
fn f(rt: &Runtime, x: &Root<Any>, p: &Place) {
    let _ = read_arg::<Root<Str>>(rt, &**x, 0); //~
    //+ let _ = read_arg::<Root<Str>>(rt, p, 0);
}
//# results_are_promises E0200
use ocaml_boxroot::export::TotalResult;
struct S;
trait Own { type Native; fn total(self) -> isize; }
impl TotalResult for S { type Native = isize; fn total(self) -> isize { 2 } } //~
//+ impl Own for S { type Native = isize; fn total(self) -> isize { 2 } }
//# imports_have_no_traits - a type parameter has no bound but lifetimes
trait Belongs { type To; }
import! {
    mod host = "Host";
    fn f<A: Belongs>(x: Root<A>) -> Result<(), Exception>; //~
    //+ fn f<A>(x: Root<A>) -> Result<(), Exception>;
}
//# imports_of_what_believes_everything - takes any value for one of any type
import! {
    mod host = "Stdlib.Obj"; //~
    //+ mod host = "Host";
    fn magic<A>(x: Root<A>) -> Result<Root<Str>, Exception>;
}
//# imports_by_another_name - takes any value for one of any type
import! {
    mod host = "Stdlib__Marshal"; //~
    //+ mod host = "Host";
    fn from_string(s: &[u8], at: isize) -> Result<Root<Str>, Exception>;
}
//# imports_that_replace_named_values - takes any value for one of any type
import! {
    mod host = "Stdlib.Callback"; //~
    //+ mod host = "Host";
    fn register<A>(name: &str, x: ValueRef<'_, A>) -> Result<(), Exception>;
}
//# imports_of_results_of_any_type - no argument has this type
import! {
    mod host = "Host";
    fn f<A, B>(x: Root<A>) -> Result<Root<List<B>>, Exception>; //~
    //+ fn f<A, B>(x: Root<B>) -> Result<Root<List<B>>, Exception>;
}
//# imports_that_check_no_bounds - takes any value for one of any type
import! {
    mod host = "Array";
    #[name = "unsafe_get"] //~
    //+ #[name = "get"]
    fn get<A>(x: &Root<Array<A>>, i: isize) -> Result<Root<A>, Exception>;
}
//# imports_have_names - is not the name of a function of OCaml
import! {
    mod host = "Stdlib";
    #[name = "succ (Stdlib.Obj.magic 1)"] //~
    //+ #[name = "( ~- )"]
    fn f(x: isize) -> Result<isize, Exception>;
}
//# modules_have_names - the name of an OCaml module
import! {
    mod host = "String (*"; //~
    //+ mod host = "String";
    fn length(x: &str) -> Result<isize, Exception>;
}
//# the_crate_is_a_crate - the name that the crate `ocaml-boxroot` has among the dependencies
mod other { pub use ocaml_boxroot::*; }
#[export(crate = self::other)] //~
//+ #[export(crate = ocaml_boxroot)]
fn f(x: isize) {}
//# lists_of_imports_are_made_by_the_macro E0133
use ocaml_boxroot::export::{describe_type, Import, ImportCell};
static CELL: ImportCell = ImportCell::new("");
fn f() {
    let _ = Import::new("Host", "f", (&[], describe_type::<i32>, 0), &CELL); //~
    //+ let _ = &CELL;
}
//# names_in_c_are_promises - another function of this name would be replaced
#[export(symbol = "malloc")] //~
//+ #[export(name = "malloc")]
fn f(x: isize) {}
//# names_in_c_are_unsafe - usage of an `unsafe` block
#[export(unsafe(symbol = "malloc"))] //~
//+ #[export]
fn f(x: isize) {}

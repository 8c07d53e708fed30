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

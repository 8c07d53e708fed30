//# are_errors E0277+E0277
#[derive(Debug, OCamlException)]
struct Mistake(i64);
impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mistake")
    }
}
trait Other {}
impl Other for Mistake {} //~
//+ impl std::error::Error for Mistake {}
//# are_listed_if_they_are_exceptions E0277 `Mistake` is not an exception of OCaml
#[derive(Debug)] //~
//+ #[derive(Debug, OCamlException)]
struct Mistake(i64);
impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mistake")
    }
}
impl std::error::Error for Mistake {}
library! { name = "listed", exceptions = [Mistake] }
//# have_no_parameters - an exception of OCaml has no parameters
#[derive(Debug, OCamlException)]
struct Mistake<T = String>(T); //~
//+ struct Mistake(String);
impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mistake")
    }
}
impl std::error::Error for Mistake {}
//# do_not_change - an error does not change
#[derive(Debug, OCamlException)]
struct Mistake {
    #[ocaml(mutable)] //~
    //+ #[ocaml(rename = "number")]
    line: i64,
}
impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mistake")
    }
}
impl std::error::Error for Mistake {}
//# have_names_of_ocaml - is not a name of OCaml that begins with a capital letter
#[derive(Debug, OCamlException)]
#[ocaml(rename = "mistake")] //~
//+ #[ocaml(rename = "Mistake_")]
struct Mistake;
impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mistake")
    }
}
impl std::error::Error for Mistake {}
//# are_declared_by_modules - the name of an OCaml module
#[derive(Debug, OCamlException)]
#[ocaml(module = "parser")] //~
//+ #[ocaml(module = "Parser")]
struct Mistake;
impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mistake")
    }
}
impl std::error::Error for Mistake {}
//# have_arguments_that_ocaml_has E0277 has no counterpart
#[derive(Debug, OCamlException)]
struct Mistake(std::thread::ThreadId); //~
//+ struct Mistake(i64);
impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mistake")
    }
}
impl std::error::Error for Mistake {}
//# are_recognised_with_the_lock E0061
fn f(rt: &Runtime, e: &Exception) -> bool {
    e.matches::<exceptions::NotFound>() //~
    //+ e.matches::<exceptions::NotFound>(rt)
}
//# are_printed_by_ocaml_with_write_access E0308
fn f(rt: &Runtime, e: &Exception) -> String {
    e.printed(rt) //~
    //+ e.text(rt)
}
//# other_types_are_not_recognised E0277 is not an exception of OCaml
fn f(rt: &Runtime, e: &Exception) -> bool {
    e.to_rust::<String>(rt).is_some() //~
    //+ e.to_rust::<exceptions::Failure>(rt).is_some()
}
//# backtraces_run_ocaml_code E0502
fn f(rt: &mut Runtime, e: &Exception, s: &Root<Str>) {
    let text = s.get(rt).as_bytes(); //~
    //+ let text = s.get(rt).as_bytes().to_vec();
    e.backtrace(rt);
    println!("{}", text.len());
}
//# are_not_made_of_other_values E0133
fn f<'n>(n: &'n Nursery, v: Value<'n>) {
    let _ = exceptions::NotFound.make(n, v); //~
    //+ let _ = exceptions::NotFound.which();
}

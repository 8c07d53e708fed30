// SPDX-License-Identifier: MIT
//! Names: of this library's crate, in C, and of what OCaml has.
use crate::casing::{ascii, refuse_constructor, refuse_value};
use syn::parse::ParseStream;
use syn::{Error, LitStr, Path, Result};

/// The C name of a function of this name in OCaml, perhaps a method of a type: one that nothing else has. (In one
/// crate the Rust compiler sees to that.)
pub fn symbol(owner: Option<&str>, name: &str) -> String {
    let krate = ascii(&std::env::var("CARGO_CRATE_NAME").unwrap_or_else(|_| "rust".into()));
    let owner = owner.map(|ty| ascii(&ty.to_lowercase()) + "__").unwrap_or_default();
    format!("ocaml_export_{krate}__{owner}{}", name.replace('\'', "_prime"))
}

/// Behind `crate =`: the name of a crate. A module would not do: it could have other items of the same names, which the
/// code that is made would trust.
pub fn crate_path(input: ParseStream) -> Result<Path> {
    let mut path = input.call(Path::parse_mod_style)?;
    let one = path.segments.len() == 1;
    if !one || ["crate", "self", "super", "Self", "$crate"].iter().any(|word| path.is_ident(word)) {
        let message = "the name that the crate `ocaml-boxroot` has among the dependencies: `crate = ::name`";
        return Err(Error::new_spanned(path, message));
    }
    path.leading_colon.get_or_insert_with(Default::default);
    Ok(path)
}

/// An error unless it is the path of an OCaml module, such as `Parser` or `Stdlib.String`.
pub fn check_module(name: &LitStr) -> Result<()> {
    match name.value().split('.').all(|part| refuse_constructor(part).is_none()) {
        true => Ok(()),
        false => Err(Error::new(name.span(), "the name of an OCaml module, such as \"Parser\"")),
    }
}

/// Why an OCaml function cannot be imported: the name is none, or its type promises more than the function keeps.
pub fn refuse_import(module: &str, name: &str) -> Option<String> {
    let operator = name.strip_prefix("( ").and_then(|name| name.strip_suffix(" )"));
    let good = match operator {
        Some(name) => !name.is_empty() && name.chars().all(|c| "!$%&*+-./:<=>?@^|~#".contains(c)),
        None => refuse_value(name, false).is_none(),
    };
    // What looks like a comment is none.
    if !good || name.contains("(*") || name.contains("*)") {
        return Some(format!("`{name}` is not the name of a function of OCaml"));
    }
    // `Stdlib__Obj` is another name of `Stdlib.Obj`.
    let parts: Vec<&str> = module.split('.').flat_map(|part| part.split("__")).collect();
    let last = parts.last().copied().unwrap_or_default();
    let any = parts.iter().any(|part| *part == "Obj" || part.starts_with("Camlinternal"))
        || name.starts_with("unsafe_")
        // The runtime believes what is registered under the names that it asks for.
        || last == "Callback"
        || (last == "Marshal" && name.starts_with("from_"))
        || (last == "Stdlib" && name == "input_value");
    any.then(|| {
        format!(
            "`{module}.{name}` takes any value for one of any type: Rust would believe it. Import a function of a \
             module of your own, with the type that its values have"
        )
    })
}

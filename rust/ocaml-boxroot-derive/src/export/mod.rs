// SPDX-License-Identifier: MIT
//! `#[export]`: a wrapper for each function, in C's calling convention, and its description for the OCaml text.
//!
//! The user's tokens stay as they are; types and names of the user's never stand inside `unsafe`, so that crates which
//! forbid unsafe code can use the macro. What is wrong with a type is said where the type stands.
mod argument;
mod body;
mod describe;
mod methods;
mod options;
mod wrapper;

use crate::function::{self, Function, Input};
use crate::text::{documentation, ident_text};
use crate::ty::Ty;
use crate::{casing, names};
use argument::{is_plain, Argument};
use options::Options;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, Ident, Result, Token, Visibility};

/// What the first parameter says.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Pure,
    Read,
    Write,
}

pub fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let (beginning, block) = function::split_block(item.clone());
    let code = syn::parse2::<Options>(arguments).and_then(|options| match parse.parse2(beginning.clone())? {
        Item::Function(function) => {
            let krate = options.krate();
            let export = Export::new(&function, options, None, krate)?.item(&function);
            Ok(quote!(#item #export))
        }
        Item::Methods(ty) => methods::expand(options, beginning, &ty, block),
    });
    code.unwrap_or_else(|error| [item, error.into_compile_error()].into_iter().collect())
}

/// What the attribute stands in front of.
enum Item {
    Function(Box<Function>),
    /// All functions of an `impl` for this type.
    Methods(Ty),
}

fn parse(input: ParseStream) -> Result<Item> {
    let attributes = input.call(Attribute::parse_outer)?;
    let vis: Visibility = input.parse()?;
    if function::comes_next(input) {
        let signature = input.parse()?;
        Ok(Item::Function(Box::new(Function { attributes, vis, signature })))
    } else if input.peek(Token![impl]) || input.peek2(Token![impl]) {
        methods::type_of(input).map(Item::Methods)
    } else {
        let message = "`export` stands in front of a function, or of an `impl` without a trait";
        Err(Error::new(Span::call_site(), message))
    }
}

struct Export {
    krate: TokenStream,
    function: TokenStream,
    /// Of a function that is generic for OCaml: the type parameters. What is made for it is as generic, so that no
    /// implementation is used that is for one type.
    parameters: Vec<Ident>,
    /// `unsafe(static)`, where it stands.
    mixing: Option<Span>,
    kind: Kind,
    /// The first argument is `&self`.
    receiver: bool,
    noalloc: bool,
    arguments: Vec<Argument>,
    result: Ty,
    result_plain: bool,
    name: String,
    symbol: String,
    doc: String,
}

impl Export {
    /// `owner`: the type of a method, and its name.
    fn new(function: &Function, options: Options, owner: Option<(&Ty, &str)>, krate: TokenStream) -> Result<Export> {
        let sig = &function.signature;
        sig.refuse()?;
        let ident = &sig.ident;
        let mut parameters = Vec::new();
        for input in &sig.inputs {
            match input {
                Input::Typed(typed) => parameters.push(typed.ty.clone()),
                Input::Receiver(span, shared) => {
                    let Some((ty, _)) = owner else {
                        return Err(Error::new(*span, "put `#[export]` in front of the `impl`, not of the method"));
                    };
                    if !shared {
                        return Err(Error::new(*span, "OCaml shares its values: take `&self`"));
                    }
                    parameters.push(quote_spanned!(*span=> &#ty).into());
                }
            }
        }
        let receiver = matches!(sig.inputs.first(), Some(Input::Receiver(..)));
        let at = usize::from(receiver);
        let kind = parameters.get(at).map_or(Kind::Pure, runtime_kind);
        if kind != Kind::Pure {
            parameters.remove(at);
        }
        if let Some(late) = parameters.iter().find(|ty| runtime_kind(ty) != Kind::Pure) {
            return Err(late.error("the runtime is the first parameter"));
        }
        if options.noalloc && kind == Kind::Write {
            let message =
                "a function with `noalloc` does not take `&mut Runtime`, as it can neither allocate nor raise";
            return Err(Error::new(sig.inputs.first().map_or_else(|| ident.span(), Input::span), message));
        }
        let self_ty = owner.map(|(ty, _)| ty);
        let api = quote!(#krate::export);
        let variables: Vec<&Ident> = sig.generics.type_params().map(|parameter| &parameter.ident).collect();
        let arguments = parameters.iter().map(|ty| Argument::new(ty.stripped(self_ty), kind, &api, &variables));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        let result = match &sig.output {
            None => quote!(()).into(),
            Some(ty) => ty.stripped(self_ty),
        };
        let parameters: Vec<Ident> = sig.generics.type_params().map(|parameter| parameter.ident.clone()).collect();
        if let (None, Some(bound)) = (options.mixing, statics(&sig.generics)) {
            let message =
                "with `'static`, values of one call could be given out as those of another, whose types OCaml \
                           may know to be different. For payloads, write `TypeVar` in place of `'static`, and \
                           `boxed_generic`; else `#[export(unsafe(static))]` promises that values are kept apart";
            return Err(Error::new_spanned(bound, message));
        }
        let plain_name = ident_text(ident);
        let prefix = names::crate_prefix();
        let symbol = options.symbol.map(|text| text.value()).unwrap_or_else(|| match owner {
            Some((_, ty)) => format!("{prefix}_{}_{plain_name}", ty.to_lowercase()),
            None => format!("{prefix}_{plain_name}"),
        });
        Ok(Export {
            krate,
            function: match owner {
                Some((ty, _)) => quote!(<#ty>::#ident),
                // The item, in a module or in a function's body: this span does not see the wrapper's variables,
                // which may have the same name.
                None => {
                    let mut item = ident.clone();
                    item.set_span(Span::mixed_site().located_at(ident.span()));
                    quote!(#item)
                }
            },
            parameters,
            mixing: options.mixing,
            kind,
            receiver,
            noalloc: options.noalloc,
            result_plain: is_plain(&result),
            arguments,
            result,
            name: options.name.map_or_else(|| casing::field_name(&plain_name), |text| text.value()),
            symbol,
            doc: documentation(&function.attributes),
        })
    }

    /// `<A: …, B: …>`, with these bounds.
    fn generics(&self, bounds: impl Fn(&Ident) -> TokenStream) -> TokenStream {
        if self.parameters.is_empty() {
            return quote!();
        }
        let parameters = self.parameters.iter().map(|name| {
            let bounds = bounds(name);
            quote!(#name: #bounds)
        });
        quote!(<#(#parameters),*>)
    }

    /// `<A: TypeVar, B: TypeVar>`, of what is compiled.
    pub fn variables(&self) -> TokenStream {
        let krate = &self.krate;
        let more = self.mixing.map(|_| quote!(+ 'static));
        self.generics(|_| quote!(#krate::TypeVar #more))
    }

    /// `::<Erased, Erased>`: what all type variables are compiled for.
    pub fn erased(&self) -> TokenStream {
        let krate = &self.krate;
        let each = self.parameters.iter().map(|_| quote!(#krate::export::Erased));
        match self.parameters.is_empty() {
            true => quote!(),
            false => quote!(::<#(#each),*>),
        }
    }

    /// `::<A, B>`
    pub fn turbofish(&self) -> TokenStream {
        let parameters = &self.parameters;
        match self.parameters.is_empty() {
            true => quote!(),
            false => quote!(::<#(#parameters),*>),
        }
    }

    /// The constant that stands beside the function, or in an `impl`.
    fn item(&self, function: &Function) -> TokenStream {
        let (krate, vis, tokens) = (&self.krate, &function.vis, self.tokens());
        let name = format_ident!("__ocaml_export_{}", ident_text(&function.signature.ident));
        quote! {
            #[doc(hidden)]
            #[allow(non_upper_case_globals, non_camel_case_types, dead_code, unused_unsafe)]
            #[allow(clippy::all, clippy::pedantic)]
            #vis const #name: #krate::export::Export = #tokens;
        }
    }

    fn tokens(&self) -> TokenStream {
        let Export { krate, name, symbol, doc, noalloc, .. } = self;
        let api = quote!(#krate::export);
        let (describe, types) = self.describe(&api);
        let (wrapper, bytecode) = self.wrappers(&api);
        let body = self.body(&api);
        // So that `#![forbid(unsafe_code)]` sees it.
        let promise = self.mixing.map(|span| quote_spanned!(span=> const _: () = unsafe {};));
        quote! {{
            #promise
            #body
            #wrapper
            #describe
            unsafe { #api::Export::new(#name, (#symbol, #bytecode), #noalloc, #doc, #types) }
        }}
    }
}

/// A bound `'static` of a type parameter.
fn statics(generics: &syn::Generics) -> Option<syn::TypeParamBound> {
    let predicates = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let clauses = predicates.filter_map(|predicate| match predicate {
        syn::WherePredicate::Type(predicate) => Some(&predicate.bounds),
        _ => None,
    });
    let mut bounds = generics.type_params().map(|parameter| &parameter.bounds).chain(clauses).flatten();
    let is = |bound: &&syn::TypeParamBound| match bound {
        syn::TypeParamBound::Lifetime(lifetime) => lifetime.ident == "static",
        _ => false,
    };
    bounds.find(is).cloned()
}

/// `&Runtime`, `&mut Runtime`, or neither.
fn runtime_kind(ty: &Ty) -> Kind {
    match ty.reference() {
        Some((mutable, behind)) if behind.last_segment().is_some_and(|name| name == "Runtime") => match mutable {
            Some(_) => Kind::Write,
            None => Kind::Read,
        },
        _ => Kind::Pure,
    }
}

// SPDX-License-Identifier: MIT
//! An exported function: what its signature and its options say.
use super::argument::{is_plain, runtime_kind, Argument, Kind};
use super::options::Options;
use crate::function::{Function, Input};
use crate::text::{documentation, ident_text};
use crate::ty::Ty;
use crate::{casing, names};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, Ident, Result};

/// A function with the attribute.
pub struct Export {
    pub krate: TokenStream,
    pub function: TokenStream,
    /// Its name in Rust.
    plain_name: String,
    /// Of a function that is generic for OCaml: the type parameters. What is made for it is as generic, so that no
    /// implementation is used that is for one type.
    pub parameters: Vec<Ident>,
    /// `unsafe(static)`
    pub mixing: bool,
    /// Where `unsafe` stands.
    pub promise: Option<Span>,
    pub kind: Kind,
    /// The first argument is `&self`.
    pub receiver: bool,
    pub noalloc: bool,
    pub arguments: Vec<Argument>,
    pub result: Ty,
    pub result_plain: bool,
    pub name: String,
    pub symbol: String,
    pub doc: String,
}

impl Export {
    /// `owner`: the type of a method, and its name.
    pub fn new(
        function: &Function,
        options: Options,
        owner: Option<(&Ty, &str)>,
        krate: TokenStream,
    ) -> Result<Export> {
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
        if let (false, Some(bound)) = (options.mixing, statics(&sig.generics)) {
            let message =
                "with `'static`, values of one call could be given out as those of another, whose types OCaml \
                           may know to be different. For payloads, write `TypeVar` in place of `'static`, and \
                           `boxed_erased`; else `#[export(unsafe(static))]` promises that values are kept apart";
            return Err(Error::new_spanned(bound, message));
        }
        let plain_name = ident_text(ident);
        let name = options.name.map_or_else(|| casing::field_name(&plain_name), |text| text.value());
        let symbol = options.symbol.map_or_else(|| names::symbol(owner.map(|(_, ty)| ty), &name), |text| text.value());
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
            promise: options.promise,
            kind,
            receiver,
            noalloc: options.noalloc,
            result_plain: is_plain(&result),
            arguments,
            result,
            plain_name,
            name,
            symbol,
            doc: documentation(&function.attributes),
        })
    }

    /// The name of a function that is made for this one, which the wrapper must not take for it.
    pub fn part(&self, part: &str) -> Ident {
        format_ident!("__ocaml_{part}_of_{}", self.plain_name)
    }

    /// `<A: …, B: …>`, with these bounds.
    pub fn generics(&self, bounds: impl Fn(&Ident) -> TokenStream) -> TokenStream {
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
        let more = self.mixing.then(|| quote!(+ 'static));
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

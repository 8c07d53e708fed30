// SPDX-License-Identifier: MIT
//! `#[export]`: a wrapper for each function, in C's calling convention, and its description for the OCaml text.
//!
//! The user's tokens stay as they are; types and names of the user's never stand inside `unsafe`, so that crates which
//! forbid unsafe code can use the macro. What is wrong with a type is said where the type stands.
mod argument;
mod body;
mod describe;
mod options;
mod signature;
mod wrapper;

pub use signature::{last_segment, refuse, Strip};

use crate::text::{documentation, ident_text};
use crate::{casing, names};
use argument::{is_plain, Argument};
use options::Options;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, ToTokens};
use signature::{runtime_kind, Kind};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Error, FnArg, ItemFn, Result, ReturnType, Signature, Type};

pub fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let options = match syn::parse2::<Options>(arguments) {
        Ok(options) => options,
        Err(error) => return [item, error.to_compile_error()].into_iter().collect(),
    };
    let code = if let Ok(function) = syn::parse2::<ItemFn>(item.clone()) {
        let krate = options.krate.clone().map_or_else(|| quote!(::ocaml_boxroot), |path| path.into_token_stream());
        Export::new(&function.sig, &function.attrs, options, None, krate).map(|export| {
            let (vis, tokens) = (&function.vis, export.tokens());
            let name = format_ident!("__ocaml_export_{}", ident_text(&function.sig.ident));
            let krate = &export.krate;
            quote! {
                #[doc(hidden)]
                #[allow(non_upper_case_globals, dead_code, clippy::all, clippy::pedantic)]
                #vis const #name: #krate::export::Export = #tokens;
            }
        })
    } else if let Ok(block) = syn::parse2::<syn::ItemImpl>(item.clone()) {
        return methods(options, block).unwrap_or_else(|error| [item, error.to_compile_error()].into_iter().collect());
    } else {
        Err(Error::new(Span::call_site(), "`export` stands in front of a function, or of an `impl` without a trait"))
    };
    let code = code.unwrap_or_else(Error::into_compile_error);
    quote!(#item #code)
}

/// All functions of an `impl`.
fn methods(options: Options, mut block: syn::ItemImpl) -> Result<TokenStream> {
    if let Some((_, path, _)) = &block.trait_ {
        return Err(Error::new(path.span(), "methods of traits are not exported: write a function"));
    }
    if let Some(parameter) = block.generics.params.first() {
        return Err(Error::new(parameter.span(), "methods of generic types are not exported: write a function"));
    }
    if options.name.is_some() || options.symbol.is_some() || options.noalloc {
        return Err(Error::new(block.self_ty.span(), "this option stands in front of a method"));
    }
    let krate = options.krate.map_or_else(|| quote!(::ocaml_boxroot), |path| path.into_token_stream());
    let Type::Path(path) = &*block.self_ty else {
        return Err(Error::new(block.self_ty.span(), "methods of this type are not exported: write a function"));
    };
    let self_ty = block.self_ty.clone();
    let type_name = path.path.segments.last().map(|s| ident_text(&s.ident)).unwrap_or_default();
    let mut consts = TokenStream::new();
    for item in &mut block.items {
        let syn::ImplItem::Fn(method) = item else { continue };
        let mut inner = Options::default();
        let mut error = None;
        method.attrs.retain(|attribute| {
            if !attribute.path().is_ident("export") {
                return true;
            }
            if !matches!(attribute.meta, syn::Meta::Path(_)) {
                match attribute.parse_args::<Options>() {
                    Ok(options) => inner = options,
                    Err(e) => error = Some(e),
                }
            }
            false
        });
        if let Some(error) = error {
            return Err(error);
        }
        let owner = Some((&*self_ty, &*type_name));
        let export = Export::new(&method.sig, &method.attrs, inner, owner, krate.clone())?;
        let (vis, tokens) = (&method.vis, export.tokens());
        let name = format_ident!("__ocaml_export_{}", ident_text(&method.sig.ident));
        consts.extend(quote! {
            #[doc(hidden)]
            #[allow(non_upper_case_globals, dead_code, clippy::all, clippy::pedantic)]
            #vis const #name: #krate::export::Export = #tokens;
        });
    }
    Ok(quote! {
        #block
        impl #self_ty { #consts }
    })
}

struct Export {
    krate: TokenStream,
    function: TokenStream,
    /// `type A = Any;`: what functions that are generic for OCaml are compiled for.
    aliases: TokenStream,
    /// `type A = Var<0>;`: what they are described with.
    variables: TokenStream,
    turbofish: TokenStream,
    kind: Kind,
    /// The first argument is `&self`.
    receiver: bool,
    noalloc: bool,
    arguments: Vec<Argument>,
    result: Type,
    result_plain: bool,
    name: String,
    symbol: String,
    doc: String,
}

impl Export {
    fn new(
        sig: &Signature,
        attributes: &[syn::Attribute],
        options: Options,
        owner: Option<(&Type, &str)>,
        krate: TokenStream,
    ) -> Result<Export> {
        refuse(sig)?;
        let ident = &sig.ident;
        let mut parameters = Vec::new();
        for input in &sig.inputs {
            match input {
                FnArg::Typed(typed) => parameters.push((*typed.ty).clone()),
                FnArg::Receiver(receiver) => {
                    let Some((ty, _)) = owner else {
                        let message = "put `#[export]` in front of the `impl`, not of the method";
                        return Err(Error::new(receiver.span(), message));
                    };
                    if receiver.reference.is_none() || receiver.mutability.is_some() {
                        let message = "OCaml shares its values: take `&self`";
                        return Err(Error::new(receiver.span(), message));
                    }
                    parameters.push(syn::parse_quote_spanned!(receiver.span()=> &#ty));
                }
            }
        }
        let receiver = matches!(sig.inputs.first(), Some(FnArg::Receiver(_)));
        let at = usize::from(receiver);
        let kind = parameters.get(at).map_or(Kind::Pure, runtime_kind);
        if kind != Kind::Pure {
            parameters.remove(at);
        }
        if let Some(late) = parameters.iter().find(|ty| runtime_kind(ty) != Kind::Pure) {
            return Err(Error::new(late.span(), "the runtime is the first parameter"));
        }
        if options.noalloc && kind == Kind::Write {
            let message =
                "a function with `noalloc` does not take `&mut Runtime`, as it can neither allocate nor raise";
            return Err(Error::new(sig.inputs.first().map_or_else(|| ident.span(), Spanned::span), message));
        }
        let mut strip = Strip { owner: owner.map(|(ty, _)| ty.clone()) };
        let mut arguments = Vec::new();
        let api = quote!(#krate::export);
        for mut ty in parameters {
            strip.visit_type_mut(&mut ty);
            arguments.push(Argument::new(ty, kind, &api)?);
        }
        let mut result = match &sig.output {
            ReturnType::Default => syn::parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        };
        strip.visit_type_mut(&mut result);
        let (mut aliases, mut variables, mut parameters) = (TokenStream::new(), TokenStream::new(), Vec::new());
        for parameter in sig.generics.type_params() {
            let (name, n) = (&parameter.ident, parameters.len() as u8);
            aliases.extend(quote!(#[allow(dead_code)] type #name = #krate::Any;));
            variables.extend(quote!(#[allow(dead_code)] type #name = #krate::Var<#n>;));
            parameters.push(name.clone());
        }
        let turbofish = if parameters.is_empty() { quote!() } else { quote!(::<#(#parameters),*>) };
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
                    item.into_token_stream()
                }
            },
            aliases,
            variables,
            turbofish,
            kind,
            receiver,
            noalloc: options.noalloc,
            result_plain: is_plain(&result),
            arguments,
            result,
            name: options.name.map_or_else(|| casing::field_name(&plain_name), |text| text.value()),
            symbol,
            doc: documentation(attributes),
        })
    }

    fn tokens(&self) -> TokenStream {
        let Export { krate, aliases, name, symbol, doc, noalloc, .. } = self;
        let api = quote!(#krate::export);
        let describe = self.describe(&api);
        let (wrapper, bytecode) = self.wrappers(&api);
        let body = self.body(&api);
        quote! {{
            #aliases
            #body
            #wrapper
            #describe
            unsafe { #api::Export::new(#name, (#symbol, #bytecode), #noalloc, #doc, __ocaml_describe) }
        }}
    }
}

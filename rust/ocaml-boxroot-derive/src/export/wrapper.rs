// SPDX-License-Identifier: MIT
//! The C functions.
use super::argument::{is_unboxed, is_unboxed_result};
use super::body::Way;
use super::exported::Export;
use crate::function::Function;
use crate::text::{conditions, ident_text};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;

impl Export {
    /// The types and names of the native function's parameters, as Rust sees them: a word, or what a plain type says.
    fn natives(&self, api: &TokenStream) -> (Vec<Ident>, Vec<TokenStream>) {
        let names = (0..self.arguments.len()).map(|i| format_ident!("a{i}")).collect();
        let types = self.arguments.iter().map(|argument| match argument.plain {
            true => {
                let ty = &argument.ty;
                quote_spanned!(ty.span()=> <#ty as #api::Plain>::Native)
            }
            false => quote!(isize),
        });
        (names, types.collect())
    }

    /// The C functions, and the name of the one for bytecode if it is another one.
    pub fn wrappers(&self, api: &TokenStream) -> (TokenStream, TokenStream) {
        let (names, types) = self.natives(api);
        let native = self.result_native(api);
        let (symbol, erased) = (&self.symbol, self.erased());
        let [body, slots, native_function, bytecode_function] =
            ["body", "slots", "native", "bytecode"].map(|part| self.part(part));
        let passed: Vec<&Ident> =
            names.iter().zip(&self.arguments).filter(|(_, a)| a.plain).map(|(name, _)| name).collect();
        let words: Vec<&Ident> =
            names.iter().zip(&self.arguments).filter(|(_, a)| !a.plain).map(|(name, _)| name).collect();
        let work = if self.noalloc {
            let name = &self.name;
            // The closure is safe code of ours; `body` holds what is the user's.
            quote! {
                let words = unsafe { #api::Words::new([#(#words),*]) };
                unsafe { #api::noalloc(#name, move |lock| #body #erased(lock, words #(, #passed)*)) }
            }
        } else {
            let arguments = quote!([#(#words),*], (#(#passed,)*));
            match self.way() {
                Way::Pure => quote!(unsafe { #api::call(#arguments, #body #erased) }),
                Way::Read => quote!(unsafe { #api::call_read(#arguments, #body #erased) }),
                Way::Write => quote!(unsafe {
                    #api::call_write(#arguments, #slots #erased(), #body #erased)
                }),
            }
        };
        let plain_arguments = self.arguments.iter().filter(|a| a.plain);
        let differs = plain_arguments.clone().any(|a| is_unboxed(&a.ty))
            || (self.result_plain && is_unboxed_result(&self.result));
        let separate = differs || self.arguments.len() > 5;
        let bytecode_symbol = format!("{symbol}_bytecode");
        let bytecode = separate.then(|| {
            let boxed = match self.result_plain {
                true => {
                    let ty = &self.result;
                    quote!(unsafe { <#ty as #api::PlainResult>::boxed(#native_function(#(#names),*)) })
                }
                false => quote!(unsafe { #native_function(#(#names),*) }),
            };
            let unboxed = names.iter().zip(&self.arguments).filter(|(_, a)| a.plain).map(|(name, a)| {
                let ty = &a.ty;
                quote!(let #name = unsafe { <#ty as #api::Plain>::unbox(#name) };)
            });
            if self.arguments.len() > 5 {
                quote! {
                    #[export_name = #bytecode_symbol]
                    unsafe extern "C" fn #bytecode_function(arguments: *const isize, _count: i32) -> isize {
                        let [#(#names),*] = unsafe { #api::Words::of_bytecode(arguments) };
                        #(#unboxed)*
                        #boxed
                    }
                }
            } else if names.is_empty() {
                quote! {
                    #[export_name = #bytecode_symbol]
                    unsafe extern "C" fn #bytecode_function(_unit: isize) -> isize { #boxed }
                }
            } else {
                quote! {
                    #[export_name = #bytecode_symbol]
                    unsafe extern "C" fn #bytecode_function(#(#names: isize),*) -> isize {
                        #(#unboxed)*
                        #boxed
                    }
                }
            }
        });
        let some = match separate {
            true => quote!(::core::option::Option::Some(#bytecode_symbol)),
            false => quote!(::core::option::Option::None),
        };
        let code = quote! {
            #[export_name = #symbol]
            unsafe extern "C" fn #native_function(#(#names: #types),*) -> #native {
                #work
            }
            #bytecode
        };
        (code, some)
    }
}

impl Export {
    /// The constant that stands beside the function, or in an `impl`.
    pub fn item(&self, function: &Function) -> TokenStream {
        let (krate, vis, tokens) = (&self.krate, &function.vis, self.tokens());
        let name = format_ident!("__ocaml_export_{}", ident_text(&function.signature.ident));
        let conditions = conditions(&function.attributes);
        quote! {
            #conditions
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
        let promise = self.promise.map(|span| quote_spanned!(span=> const _: () = unsafe {};));
        quote! {{
            #promise
            #body
            #wrapper
            #describe
            unsafe { #api::Export::new(#name, (#symbol, #bytecode), #noalloc, #doc, #types) }
        }}
    }
}

// SPDX-License-Identifier: MIT
//! The safe function inside a wrapper, which holds what is the user's.
use super::argument::{Argument, Kind};
use super::exported::Export;
use crate::shape::good;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;

/// How the wrapper works.
#[derive(Clone, Copy, PartialEq)]
pub enum Way {
    /// Without a runtime.
    Pure,
    /// With read access, if only for the conversion of arguments.
    Read,
    /// With write access.
    Write,
}

impl Export {
    pub fn way(&self) -> Way {
        let value = |a: &Argument| a.plain || a.ty.last_segment().is_some_and(|name| name == "Value");
        match self.kind {
            Kind::Pure if self.arguments.iter().all(value) => Way::Pure,
            Kind::Write => Way::Write,
            _ => Way::Read,
        }
    }

    pub fn result_native(&self, api: &TokenStream) -> TokenStream {
        let ty = &self.result;
        match (self.noalloc, self.result_plain) {
            (_, true) => quote!(<#ty as #api::PlainResult>::Native),
            _ => quote!(isize),
        }
    }

    /// `fn body`: converts the arguments, calls the function, and its result on the way to OCaml.
    pub fn body(&self, api: &TokenStream) -> TokenStream {
        let (krate, function, turbofish) = (&self.krate, &self.function, self.turbofish());
        let variables = self.variables();
        let values: Vec<&Argument> = self.arguments.iter().filter(|a| !a.plain).collect();
        let count = values.len();
        let plain_names: Vec<Ident> =
            self.arguments.iter().enumerate().filter(|(_, a)| a.plain).map(|(i, _)| format_ident!("a{i}")).collect();
        let plain_types: Vec<TokenStream> = self
            .arguments
            .iter()
            .filter(|a| a.plain)
            .map(|a| {
                let ty = &a.ty;
                quote_spanned!(ty.span()=> <#ty as #api::Plain>::Native)
            })
            .collect();
        let native = self.result_native(api);
        let way = self.way();
        let [body, slots_function, total] = ["body", "slots", "total"].map(|part| self.part(part));
        let (mut lets, mut passed, mut words, mut slots) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut next = 0usize;
        for (i, argument) in self.arguments.iter().enumerate() {
            let (x, a, ty) = (format_ident!("x{i}"), format_ident!("a{i}"), &argument.ty);
            let span = ty.span();
            if argument.plain {
                let convert = match self.noalloc {
                    true => quote_spanned!(span=> #api::total_plain::<#ty>(#a)),
                    false => good(span, quote_spanned!(span=> #api::plain_arg::<#ty>(#a, #i)), quote!()),
                };
                lets.push(quote!(let #x = #convert;));
                passed.push(quote!(#x));
                continue;
            }
            let (place, word) = (next, format_ident!("w{next}"));
            next += 1;
            words.push(word.clone());
            let source = argument.source();
            let convert = match way {
                _ if argument.payload.is_some() => {
                    let payload = &argument.payload;
                    let read = match (argument.generic, self.mixing) {
                        (false, _) => quote!(payload_arg),
                        (true, false) => quote!(payload_arg_erased),
                        (true, true) => quote!(payload_arg_static),
                    };
                    good(span, quote_spanned!(span=> #api::#read::<#payload>(rt, &places[#place], #i)), quote!())
                }
                Way::Pure => quote_spanned!(span=> #api::pure_arg(lock, #word)),
                _ if self.noalloc => quote_spanned!(span=> #api::total_value(rt, &places[#place])),
                Way::Read => {
                    good(span, quote_spanned!(span=> #api::read_arg::<#source>(rt, &places[#place], #i)), quote!())
                }
                Way::Write => {
                    good(span, quote_spanned!(span=> #api::write_arg::<#source>(rt, &places[#place], #i)), quote!())
                }
            };
            let annotation = match self.noalloc || way == Way::Pure {
                true => quote!(: #ty),
                false => quote!(),
            };
            lets.push(quote!(let #x #annotation = #convert;));
            passed.push(match argument.owned {
                Some(_) => quote!(&*#x),
                None => quote!(#x),
            });
            if self.kind == Kind::Write {
                slots.push(match argument.payload {
                    Some(_) => quote!(true),
                    None => quote_spanned!(span=> <#source as #api::WriteArg<'_>>::SLOT),
                });
            }
        }
        let rt = match self.kind {
            Kind::Pure => quote!(),
            _ => quote!(rt,),
        };
        let result_span = self.result.span();
        // A receiver comes before the runtime.
        let call = match self.receiver {
            true => {
                let (first, others) = (&passed[0], &passed[1..]);
                quote!(#function #turbofish(#first, #rt #(#others),*))
            }
            false => quote!(#function #turbofish(#rt #(#passed),*)),
        };
        let ty = &self.result;
        let bind_words = match count {
            0 => quote!(let _ = words;),
            _ => quote!(let [#(#words),*] = words.each();),
        };
        if self.noalloc {
            let asserts = self.arguments.iter().map(|a| {
                let ty = &a.ty;
                quote_spanned!(ty.span()=> #total::<#ty>();)
            });
            let finish = quote_spanned!(result_span=> #api::TotalResult::total(result));
            let work = match way {
                Way::Pure => quote!(#bind_words let lock = &*lock; #(#lets)* let result: #ty = #call; #finish),
                _ => quote! {
                    #api::read_total(lock, words, |rt, places| {
                        let _ = places;
                        #(#lets)*
                        let result: #ty = #call;
                        #finish
                    })
                },
            };
            return quote! {
                #[inline(always)]
                fn #body #variables(
                    lock: &mut #api::Lock, words: #api::Words<#count>, #(#plain_names: #plain_types),*
                ) -> #native {
                    #[allow(dead_code)]
                    fn #total<T: #api::Total>() {}
                    #(#asserts)*
                    #work
                }
            };
        }
        let hold = match self.result_plain {
            true => good(result_span, quote_spanned!(result_span=> #api::plain_result(result)), quote!()),
            false => {
                let split = quote_spanned!(result_span=> #api::Returned(result).split());
                let split = good(result_span, split, quote!());
                quote_spanned!(result_span=> #api::Returned(#split).pending())
            }
        };
        let finish = match (self.result_plain, way) {
            (true, _) => quote!(::core::result::Result::Ok(held)),
            (false, Way::Pure) => quote_spanned!(result_span=> #api::finish_pure(lock, held)),
            (false, _) => quote_spanned!(result_span=> #api::finish(rt, places, held)),
        };
        let (parameters, bind) = match way {
            Way::Pure => (quote!(lock: &mut #api::Lock, words: #api::Words<#count>), bind_words),
            _ => (quote!(rt: &mut #krate::Runtime, places: &#api::Places<#count>), quote!(let _ = places;)),
        };
        let lend = match (way, self.kind) {
            (Way::Pure, _) => quote!(let lock = &*lock; let _ = lock;),
            (_, Kind::Write) => quote!(let rt: &mut #krate::Runtime = &mut *rt; let _ = &rt;),
            _ => quote!(let rt: &#krate::Runtime = &*rt; let _ = rt;),
        };
        let slots = match (way, slots.is_empty()) {
            (Way::Write, empty) => {
                let any = if empty { quote!(false) } else { quote!(#(#slots)||*) };
                quote! {
                    #[inline(always)]
                    fn #slots_function #variables() -> bool {
                        #any
                    }
                }
            }
            _ => quote!(),
        };
        quote! {
            #slots
            #[inline(always)]
            fn #body #variables(
                #parameters, (#(#plain_names,)*): (#(#plain_types,)*)
            ) -> ::core::result::Result<#native, #api::Raise> {
                #[allow(unused_imports)]
                use #api::{Convert as _, Split as _};
                #bind
                let held = {
                    #lend
                    #(#lets)*
                    let result: #ty = #call;
                    #hold
                };
                #finish
            }
        }
    }
}

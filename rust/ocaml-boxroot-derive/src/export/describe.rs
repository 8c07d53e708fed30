// SPDX-License-Identifier: MIT
//! What tells the types, for the OCaml text.
use super::{Export, Kind};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

impl Export {
    /// A function, if one is needed, and the expression of type `Types`.
    pub fn describe(&self, api: &TokenStream) -> (TokenStream, TokenStream) {
        let (krate, variables) = (&self.krate, &self.variables);
        let arguments = self.arguments.iter().map(|argument| {
            if let Some(payload) = &argument.payload {
                return quote_spanned!(argument.ty.span()=> #api::describe_payload::<#payload>);
            }
            let ty = argument.source();
            let function = format_ident!(
                "describe_{}",
                match self.kind {
                    _ if argument.plain => "plain",
                    Kind::Write => "write",
                    _ => "read",
                }
            );
            quote_spanned!(argument.ty.span()=> #api::#function::<#ty>)
        });
        let result = &self.result;
        if self.result_plain {
            let result = quote_spanned!(result.span()=> #api::describe_plain_result::<#result>);
            return (quote!(), quote!({ #variables #api::Types::Table(&[#(#arguments),*], #result) }));
        }
        let marker = quote!(::core::marker::PhantomData);
        let result = quote_spanned! {result.span()=>
            #api::describe_result(#api::ResultType::<#result>(#marker).split())
        };
        let function = quote! {
            fn __ocaml_describe(to: &mut #krate::Definitions) -> #api::Signature {
                #[allow(unused_imports)]
                use #api::SplitType as _;
                #variables
                #api::signature(to, &[#(#arguments),*], #result)
            }
        };
        (function, quote!(#api::Types::Function(__ocaml_describe)))
    }
}

// SPDX-License-Identifier: MIT
//! The function that tells the types, for the OCaml text.
use super::{Export, Kind};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

impl Export {
    /// `fn describe`: the types, for the OCaml text.
    pub fn describe(&self, api: &TokenStream) -> TokenStream {
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
        let result = match self.result_plain {
            true => quote_spanned!(result.span()=> #api::describe_plain_result::<#result>),
            false => {
                let marker = quote!(::core::marker::PhantomData);
                quote_spanned!(result.span()=> #api::describe_result(#api::ResultType::<#result>(#marker).split()))
            }
        };
        quote! {
            fn __ocaml_describe(to: &mut #krate::Definitions) -> #api::Signature {
                #[allow(unused_imports)]
                use #api::SplitType as _;
                #variables
                #api::signature(to, &[#(#arguments),*], #result)
            }
        }
    }
}

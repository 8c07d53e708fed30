// SPDX-License-Identifier: MIT
//! What tells the types, for the OCaml text.
use super::argument::Kind;
use super::exported::Export;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

impl Export {
    /// A function, if one is needed, and the expression of type `Types`.
    pub fn describe(&self, api: &TokenStream) -> (TokenStream, TokenStream) {
        let krate = &self.krate;
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
        let (result, splits) = match self.result_plain {
            true => (quote_spanned!(result.span()=> #api::describe_plain_result::<#result>), quote!()),
            false => {
                let marker = quote!(::core::marker::PhantomData);
                let result = quote_spanned! {result.span()=>
                    #api::describe_result(#api::ResultType::<#result>(#marker).split())
                };
                let splits = quote! {
                    #[allow(unused_imports)]
                    use #api::SplitType as _;
                };
                (result, splits)
            }
        };
        if self.result_plain && self.parameters.is_empty() {
            return (quote!(), quote!(#api::Types::Table(&[#(#arguments),*], #result)));
        }
        let describe = self.part("describe");
        let generics = self.generics(|name| quote!(#krate::OCamlType + #krate::Typed<Type = #name> + #krate::Element));
        let function = quote! {
            fn #describe #generics(to: &mut #krate::Definitions) -> #api::Signature {
                #splits
                #api::signature(to, &[#(#arguments),*], #result)
            }
        };
        if self.parameters.is_empty() {
            return (function, quote!(#api::Types::Function(#describe)));
        }
        let names: Vec<_> = (0..self.parameters.len()).map(|i| format_ident!("Variable{i}")).collect();
        let numbers = (0..self.parameters.len() as u8).map(proc_macro2::Literal::u8_unsuffixed);
        let types = quote! {{
            #krate::__type_variables! { #(#names #numbers)* }
            #api::Types::Function(#describe::<#(#names),*>)
        }};
        (function, types)
    }
}

//! `#[derive(Report)]`: the SQLSTATE and the hint of an error stand at its variant, next to its message.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::ParseStream;
use syn::{Error, Expr, Ident, ItemEnum, LitStr, Member, Result, Token, parse_macro_input};

/// Implements the trait `Report` for an enum; `Report` and `Code` have to be in scope.
///
/// - `#[report(ERRCODE_X)]`: the SQLSTATE, or an expression that gives it.
/// - `#[report(ERRCODE_X => "Call {function}().")]`: also a hint, as `format!` takes it, perhaps with more arguments.
/// - `#[report(ERRCODE_X => hint_of(function))]`: also an expression of the hint, a `String` or an `Option<String>`.
///
/// Each can use the variant's fields, which are references: by their names, or as `_0`, `_1`. A variant with one field
/// and without `#[report]` reports what its field does.
#[proc_macro_derive(Report, attributes(report))]
pub fn derive_report(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    implementation(&parse_macro_input!(input as ItemEnum)).unwrap_or_else(Error::into_compile_error).into()
}

fn implementation(input: &ItemEnum) -> Result<TokenStream> {
    let (mut codes, mut hints) = (Vec::new(), Vec::new());
    for variant in &input.variants {
        let members = variant.fields.members();
        let fields: Vec<Ident> = members.clone().map(variable).collect();
        let (code, hint) = match variant.attrs.iter().find(|attribute| attribute.path().is_ident("report")) {
            Some(attribute) => attribute.parse_args_with(code_and_hint)?,
            None if fields.len() == 1 => (quote!(#(#fields.sqlstate())*), quote!(#(#fields.hint())*)),
            None => return Err(Error::new_spanned(variant, "#[report(ERRCODE_... => hint)] is missing")),
        };
        let name = &variant.ident;
        let pattern = quote!(Self::#name { #(#members: #fields),* });
        codes.push(quote!(#pattern => #code,));
        hints.push(quote!(#pattern => #hint,));
    }
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused, non_shorthand_field_patterns)]
        impl Report for #name {
            fn sqlstate(&self) -> Code {
                use Code::*;
                match self { #(#codes)* }
            }

            fn hint(&self) -> Option<String> {
                match self { #(#hints)* }
            }
        }
    })
}

fn variable(field: Member) -> Ident {
    match field {
        Member::Named(name) => name,
        Member::Unnamed(index) => format_ident!("_{}", index.index),
    }
}

/// What the attribute says: expressions of a `Code` and of an `Option<String>`.
fn code_and_hint(input: ParseStream) -> Result<(TokenStream, TokenStream)> {
    let code: Expr = input.parse()?;
    let arrow: Option<Token![=>]> = input.parse()?;
    let is_text = input.peek(LitStr);
    let hint: TokenStream = input.parse()?;
    let hint = match arrow {
        None => quote!(None),
        Some(_) if is_text => quote!(Some(format!(#hint))),
        Some(_) => quote!(Option::<String>::from(#hint)),
    };
    Ok((quote!(#code), hint))
}

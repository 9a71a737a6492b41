//! The kind of model that a call does not name: it follows from the label.

use choices::Choice as _;
use decode::sample::Values;
use errors::{ArgumentError, Result, TrainingError};
use facts::{LabelMeaning, Meaning, Texts, Variants, quote_text};
use loss::ModelKind;
use options::call::TrainArguments;
use options::loss::Loss;
use pg::catalog::names::quote_identifier;
use pg::catalog::types::base_type;
use pg::executor::custom_scan::Flags;
use pg::values::array::AnyArray;
use pg::values::number::NumberType;
use pgrx::pg_sys;
use scan::Source;

/// What stands for no model that is named.
pub const AUTO: &str = "auto";

/// The source of a call, which names a model afterwards.
pub fn source_and_model(arguments: &mut TrainArguments, flags: Flags) -> Result<Source> {
    let source = Source::resolve(arguments.source.as_deref().ok_or(ArgumentError::NullArgument("source"))?)?;
    choose_model(arguments, &source, !flags.explain_only())?;
    Ok(source)
}

/// Gives a call that names no model one that suits its label, and reports it. The rows are not looked at if they are
/// not going to be read; then numbers with fractions are quantities, and everything else has two classes.
fn choose_model(arguments: &mut TrainArguments, source: &Source, looks: bool) -> Result<()> {
    match arguments.text("model") {
        Some(AUTO) => drop(arguments.take::<String>("model")),
        Some(_) => return Ok(()),
        None => {}
    }
    if let Some(kind) = arguments.text("loss").and_then(Loss::named).and_then(model_of) {
        arguments.set("model", kind.name().into());
        return Ok(());
    }
    let (label, features) = (arguments.label(), arguments.features());
    let mut variants = None;
    // a label that is not there is an error soon
    let Ok(type_oid) = source.type_of(&label) else { return Ok(()) };
    let base = base_type(type_oid);
    let number = NumberType::from_oid(base).filter(|_| base != pg_sys::BOOLOID);
    let meaning = match number {
        // of a compressed source
        _ if AnyArray::new(type_oid).is_some() => return Ok(()),
        Some(number) if !looks && number.has_fractions() => LabelMeaning::Quantities,
        _ if !looks || base == pg_sys::BOOLOID => LabelMeaning::TwoClasses,
        _ => {
            let sample = source.sample(&label, features.as_deref())?;
            match sample.and_then(|sample| sample.column(&label)).map(|column| &column.values) {
                Some(Values::Numbers(numbers)) if numbers.counts.values > 0 => LabelMeaning::of_numbers(numbers),
                Some(Values::Texts(texts)) if are_quantities(texts) => {
                    let expression = texts.meaning.expression(&quote_identifier(&label)).unwrap_or_default();
                    return Err(TrainingError::NumbersAsText { column: label, expression }.into());
                }
                Some(Values::Texts(texts)) if texts.counts.distinct > 2 => {
                    variants = texts.variants.clone();
                    LabelMeaning::Classes(texts.counts.distinct)
                }
                Some(Values::Texts(texts)) if texts.counts.values > 0 => LabelMeaning::TwoClasses,
                // there is nothing to choose by, and for some types no model
                _ => {
                    arguments.has_open_model = true;
                    return Ok(());
                }
            }
        }
    };
    let kind = match meaning {
        LabelMeaning::TwoClasses => ModelKind::Logistic,
        LabelMeaning::Classes(_) => ModelKind::Softmax,
        LabelMeaning::Quantities => ModelKind::Linear,
        LabelMeaning::Unclear => return Err(TrainingError::UnclearModel { column: label }.into()),
    };
    arguments.set("model", kind.name().into());
    arguments.has_open_model = kind == ModelKind::Logistic || !looks;
    // a boolean leaves nothing to choose
    if looks && base != pg_sys::BOOLOID {
        report_model(kind, &label, number.is_some());
    }
    if let Some(Variants { one, other, distinct }) = variants {
        let name = quote_identifier(&label);
        let (one, other) = (quote_text(&one), quote_text(&other));
        pg::notice(
            format!(
                "classes {one} and {other} of label \"{label}\" differ in case or blanks: lower(trim({name})) has \
                 {distinct} classes"
            ),
            "To use an expression, give a query as source, such as 'SELECT expression AS name, ... FROM t'.",
        );
    }
    Ok(())
}

/// Are texts numbers to predict, rather than classes?
fn are_quantities(texts: &Texts) -> bool {
    matches!(&texts.meaning, Meaning::Numbers(numbers) if LabelMeaning::of_numbers(&numbers.numbers) == LabelMeaning::Quantities)
}

/// The model that has this loss, if that says which.
fn model_of(loss: Loss) -> Option<ModelKind> {
    [ModelKind::Svm, ModelKind::Linear].into_iter().find(|kind| loss.of_model(*kind).is_some())
}

/// Reports the choice, and its alternative.
pub fn report_model(kind: ModelKind, label: &str, are_numbers: bool) {
    let what = match kind {
        ModelKind::Logistic => "has two classes",
        ModelKind::Softmax => "has several classes",
        _ => "has numbers to predict",
    };
    let hint = match (kind, are_numbers) {
        (ModelKind::Linear, _) => "Give model to change this: 'softmax', for example, takes each number for a class.",
        (_, true) => "Give model to change this: 'linear', for example, predicts the label as a number.",
        (_, false) => "Give model to change this, for example to 'svm' or 'mlp'.",
    };
    pg::notice(format!("model {kind}: label \"{label}\" {what}"), hint);
}

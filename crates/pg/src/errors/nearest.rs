//! "Did you mean": the known name that is nearest to one that is not.

/// A sentence that offers the known name that was probably meant; None if none is near. Case does not matter.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(given, known).map(|name| format!("Did you mean \"{name}\"?"))
}

/// The known name that is nearest; None if none is near. Case does not matter.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // what is much longer than any name is near to none, and comparing it would take long
    const LONGEST: usize = 64;
    if given.len() > LONGEST {
        return None;
    }
    let given = given.to_lowercase();
    let distance = |name: &str| strsim::osa_distance(&given, &name.to_lowercase());
    let nearest = known.into_iter().map(|name| (distance(name), name)).min_by_key(|(distance, _)| *distance);
    // a third of the letters may be wrong: with more, another name may be as near by chance
    let room = |name: &str| name.chars().count().max(given.chars().count()) / 3;
    nearest.filter(|(distance, name)| *distance <= room(name)).map(|(_, name)| name)
}

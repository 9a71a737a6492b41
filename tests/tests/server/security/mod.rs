//! Who may do what, and who cannot do it in somebody else's name.

mod access;
mod planting;
mod privileges;
mod trojans;

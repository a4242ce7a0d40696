//! Words for owners: values as they are shown, and names that were nearly right.

use serde_json::Value;

/// How much of a value an error shows, in characters.
const SHOWN_MAX: usize = 60;

/// In how many letters a name may differ from what was meant.
#[cfg(not(worker))]
const DIFFER_MAX: usize = 3;

/// In the Worker nobody is there to be helped with spelling; the check has said it before.
#[cfg(worker)]
pub(crate) fn nearest<'a>(_given: &str, _known: &[&'a str]) -> Option<&'a str> {
    None
}

/// The known name that somebody most likely meant: near in spelling, with `totalActiveUsers` read as
/// `total_active_users`. Long names may differ in three letters, short ones in one.
#[cfg(not(worker))]
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let given: String = given.chars().take(SHOWN_MAX).filter(|letter| !matches!(letter, '-' | '_')).collect();
    let given = given.to_ascii_lowercase();
    let (distance, name) = known
        .iter()
        .filter_map(|name| {
            let squeezed = name.replace('_', "");
            let near = lacks(&given, &squeezed).max(lacks(&squeezed, &given)) <= DIFFER_MAX;
            near.then(|| (strsim::osa_distance(&given, &squeezed), *name))
        })
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.len() / 3).min(DIFFER_MAX)).then_some(name)
}

/// How many bytes of a word another one has not, or not as often. Words of ASCII differ in as many letters at least.
#[cfg(not(worker))]
fn lacks(one: &str, other: &str) -> usize {
    let mut counts = [0_usize; 256];
    for byte in other.bytes() {
        counts.get_mut(usize::from(byte)).into_iter().for_each(|count| *count += 1);
    }
    let is_there = |byte: u8| {
        let count = counts.get_mut(usize::from(byte)).filter(|count| **count > 0);
        count.map(|count| *count -= 1).is_some()
    };
    one.len() - one.bytes().map(is_there).filter(|there| *there).count()
}

/// Names in quotes, with `or` before the last one.
pub(crate) fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// A value as errors show it: JSON in one line, cut to [`SHOWN_MAX`] characters.
pub(crate) fn shown(value: &Value) -> String {
    shown_text(&value.to_string())
}

/// Text as errors show it: in one line, without anything that a terminal could obey, cut to [`SHOWN_MAX`] characters.
pub(crate) fn shown_text(text: &str) -> String {
    let mut characters = text.chars();
    let mut shown = String::new();
    for character in characters.by_ref().take(SHOWN_MAX) {
        let turns_text =
            matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns_text {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

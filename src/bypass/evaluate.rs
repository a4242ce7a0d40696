//! Whether an expression is true of a request.

use std::borrow::Cow;

use super::expression::{AddressTest, Condition, Join, Number, NumberTest, Order, Text, TextTest};
use super::fields::Flag;
use super::pattern::is_wild;
use super::request::Request;
use crate::url::path::hex;

impl Condition {
    /// `each`: which of several texts is looked at, within `any` and `all`.
    pub(super) fn matches(&self, request: &Request, each: Option<&str>) -> bool {
        match self {
            Self::Joined(Join::Or, all) => all.iter().any(|one| one.matches(request, each)),
            Self::Joined(Join::And, all) => all.iter().all(|one| one.matches(request, each)),
            Self::Joined(Join::Xor, all) => {
                all.iter().fold(false, |odd, one| odd != one.matches(request, each))
            }
            Self::Not(condition) => !condition.matches(request, each),
            Self::Flag(Flag::Https) => request.https,
            Self::Flag(Flag::VerifiedBot) => request.is_verified_bot(),
            Self::Text(value, test) => test.matches(&value.of(request, each)),
            Self::Number(number, test) => test.matches(number.of(request, each)),
            Self::Address(test) => request.address().is_some_and(|address| match test {
                AddressTest::Is(wanted) => address == *wanted,
                AddressTest::In(networks) => networks.iter().any(|network| network.contains(address)),
            }),
            Self::Starts(text, start) => text.of(request, each).starts_with(&*start.of(request, each)),
            Self::Ends(text, end) => text.of(request, each).ends_with(&*end.of(request, each)),
            Self::OfSeveral { all, of, is } => {
                let mut found = *all;
                request.each(of.map, &of.name, |text| {
                    found = is.matches(request, Some(text));
                    found == *all
                });
                found
            }
        }
    }
}

impl Text {
    fn of<'a>(&'a self, request: &'a Request, each: Option<&'a str>) -> Cow<'a, str> {
        match self {
            Self::Written(text) => Cow::Borrowed(text),
            Self::Field(field) => request.text(*field),
            Self::Item(list, index) => Cow::Owned(request.item(list.map, &list.name, *index)),
            Self::Each(_) => Cow::Borrowed(each.unwrap_or_default()),
            Self::Lower(text) => Cow::Owned(text.of(request, each).to_ascii_lowercase()),
            Self::Upper(text) => Cow::Owned(text.of(request, each).to_ascii_uppercase()),
            Self::UrlDecoded(text) => Cow::Owned(url_decoded(&text.of(request, each))),
        }
    }
}

impl Number {
    fn of(&self, request: &Request, each: Option<&str>) -> u64 {
        match self {
            Self::Network => request.network_number(),
            Self::Length(text) => text.of(request, each).len() as u64,
        }
    }
}

impl TextTest {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Compared(order, wanted) => order.matches(&text, &wanted.as_str()),
            Self::Contains(wanted) => text.contains(wanted.as_str()),
            Self::Matches(pattern) => pattern.is_in(text),
            Self::Wild { pattern, has_case } => is_wild(pattern, text, *has_case),
            Self::In(texts) => texts.iter().any(|wanted| wanted == text),
        }
    }
}

impl NumberTest {
    fn matches(&self, number: u64) -> bool {
        match self {
            Self::Compared(order, wanted) => order.matches(&number, wanted),
            Self::In(ranges) => ranges.iter().any(|(first, last)| (first..=last).contains(&&number)),
        }
    }
}

impl Order {
    fn matches<T: PartialOrd>(self, one: &T, other: &T) -> bool {
        match self {
            Self::Equal => one == other,
            Self::NotEqual => one != other,
            Self::Less => one < other,
            Self::LessOrEqual => one <= other,
            Self::Greater => one > other,
            Self::GreaterOrEqual => one >= other,
        }
    }
}

/// `%41` is `A` and `+` a space, once; what is no text then has replacement characters.
fn url_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, after) = match rest {
            [b'%', high, low, behind @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, behind),
                _ => (*first, after),
            },
            [b'+', ..] => (b' ', after),
            _ => (*first, after),
        };
        decoded.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

//! What an expression says, and how it is written.

use std::fmt::{self, Display, Formatter, Write as _};
use std::net::IpAddr;

use super::fields::{Field, Flag, Map, TextField, name_of};
use super::mistake::ExpressionError;
use super::network::Network;
use super::parser;
use super::pattern::Pattern;
use super::request::Request;

/// A condition on requests, checked and ready to be asked. Displayed with brackets wherever two operators meet, so that
/// it shows how it was understood; parsed again that gives the same expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(pub(super) Condition);

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        parser::parse(text).map(Self)
    }

    /// Whether it is true of a request. What the request does not have is empty text, 0, false, and no address.
    pub fn matches(&self, request: &Request) -> bool {
        self.0.matches(request, None)
    }
}

impl Display for Expression {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What is true or false.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Condition {
    /// Two or more, joined by one operator.
    Joined(Join, Vec<Condition>),
    Not(Box<Condition>),
    Flag(Flag),
    Text(Text, TextTest),
    Number(Number, NumberTest),
    Address(AddressTest),
    Starts(Text, Text),
    Ends(Text, Text),
    /// Whether the condition holds for any of several texts, or for all. Within it [`Text::Each`] is the one looked at.
    OfSeveral {
        all: bool,
        of: List,
        is: Box<Condition>,
    },
}

/// An operator between conditions, from the loosest to the tightest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    Or,
    Xor,
    And,
}

/// What is text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Text {
    Written(String),
    Field(TextField),
    Item(List, usize),
    Each(List),
    Lower(Box<Text>),
    Upper(Box<Text>),
    UrlDecoded(Box<Text>),
}

/// Texts of one name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct List {
    pub map: Map,
    pub name: String,
}

/// What is a whole number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Number {
    Network,
    /// A text's length in bytes.
    Length(Text),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TextTest {
    Compared(Order, String),
    Contains(String),
    Matches(Pattern),
    Wild { pattern: String, has_case: bool },
    In(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NumberTest {
    Compared(Order, u64),
    /// Ranges, both ends included.
    In(Vec<(u64, u64)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum AddressTest {
    Is(IpAddr),
    In(Vec<Network>),
}

/// How one value may stand to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// How they are written: the word, and the sign that means the same.
pub(super) const ORDERS: [(&str, &str, Order); 6] = [
    ("eq", "==", Order::Equal),
    ("ne", "!=", Order::NotEqual),
    ("lt", "<", Order::Less),
    ("le", "<=", Order::LessOrEqual),
    ("gt", ">", Order::Greater),
    ("ge", ">=", Order::GreaterOrEqual),
];
pub(super) const JOINS: [(&str, &str, Join); 3] =
    [("or", "||", Join::Or), ("xor", "^^", Join::Xor), ("and", "&&", Join::And)];

impl Display for Condition {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined(join, all) => {
                let word = JOINS.iter().find(|(_, _, known)| known == join).map_or("", |(word, _, _)| word);
                for (number, condition) in all.iter().enumerate() {
                    if number > 0 {
                        write!(formatter, " {word} ")?;
                    }
                    condition.fmt_within(formatter)?;
                }
                Ok(())
            }
            Self::Not(condition) => {
                formatter.write_str("not ")?;
                condition.fmt_within(formatter)
            }
            Self::Flag(flag) => formatter.write_str(name_of(Field::Flag(*flag))),
            Self::Text(value, test) => write!(formatter, "{value} {test}"),
            Self::Number(number, test) => write!(formatter, "{number} {test}"),
            Self::Address(AddressTest::Is(address)) => {
                write!(formatter, "{} eq {address}", name_of(Field::Address))
            }
            Self::Address(AddressTest::In(networks)) => {
                write!(formatter, "{} in ", name_of(Field::Address))?;
                set(formatter, networks)
            }
            Self::Starts(text, start) => write!(formatter, "starts_with({text}, {start})"),
            Self::Ends(text, end) => write!(formatter, "ends_with({text}, {end})"),
            Self::OfSeveral { all, is, .. } => {
                write!(formatter, "{}({is})", if *all { "all" } else { "any" })
            }
        }
    }
}

impl Condition {
    fn fmt_within(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if matches!(self, Self::Joined(..)) { write!(formatter, "({self})") } else { self.fmt(formatter) }
    }
}

impl Display for Text {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written(text) => quoted(formatter, text),
            Self::Field(field) => formatter.write_str(name_of(Field::Text(*field))),
            Self::Item(list, index) => write!(formatter, "{list}[{index}]"),
            Self::Each(list) => write!(formatter, "{list}[*]"),
            Self::Lower(text) => write!(formatter, "lower({text})"),
            Self::Upper(text) => write!(formatter, "upper({text})"),
            Self::UrlDecoded(text) => write!(formatter, "url_decode({text})"),
        }
    }
}

impl Display for List {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}[", name_of(Field::Map(self.map)))?;
        quoted(formatter, &self.name)?;
        formatter.write_char(']')
    }
}

impl Display for Number {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => formatter.write_str(name_of(Field::NetworkNumber)),
            Self::Length(text) => write!(formatter, "len({text})"),
        }
    }
}

impl Display for TextTest {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compared(order, text) => {
                write!(formatter, "{} ", order.word())?;
                quoted(formatter, text)
            }
            Self::Contains(text) => {
                formatter.write_str("contains ")?;
                quoted(formatter, text)
            }
            Self::Matches(pattern) => {
                formatter.write_str("matches ")?;
                raw(formatter, &pattern.text)
            }
            Self::Wild { pattern, has_case } => {
                formatter.write_str(if *has_case { "strict wildcard " } else { "wildcard " })?;
                quoted(formatter, pattern)
            }
            Self::In(texts) => {
                formatter.write_str("in ")?;
                set(formatter, texts.iter().map(|text| Quoted(text)))
            }
        }
    }
}

impl Display for NumberTest {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compared(order, number) => write!(formatter, "{} {number}", order.word()),
            Self::In(ranges) => {
                formatter.write_str("in ")?;
                set(formatter, ranges.iter().map(|(first, last)| Range(*first, *last)))
            }
        }
    }
}

impl Order {
    pub(super) fn word(self) -> &'static str {
        ORDERS.iter().find(|(_, _, order)| *order == self).map_or("", |(word, _, _)| word)
    }
}

struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        quoted(formatter, self.0)
    }
}

struct Range(u64, u64);

impl Display for Range {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self(first, last) = self;
        if first == last { write!(formatter, "{first}") } else { write!(formatter, "{first}..{last}") }
    }
}

fn quoted(formatter: &mut Formatter<'_>, text: &str) -> fmt::Result {
    formatter.write_char('"')?;
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            formatter.write_char('\\')?;
        }
        formatter.write_char(character)?;
    }
    formatter.write_char('"')
}

/// Without escapes, between as many `#` as it takes.
fn raw(formatter: &mut Formatter<'_>, text: &str) -> fmt::Result {
    let mut hashes = String::new();
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    write!(formatter, "r{hashes}\"{text}\"{hashes}")
}

fn set<T: Display>(formatter: &mut Formatter<'_>, all: impl IntoIterator<Item = T>) -> fmt::Result {
    formatter.write_char('{')?;
    for (number, one) in all.into_iter().enumerate() {
        if number > 0 {
            formatter.write_char(' ')?;
        }
        write!(formatter, "{one}")?;
    }
    formatter.write_char('}')
}

//! From text to a checked expression. Operators bind in this order, the tightest first: `not`, `and`, `xor`, `or`.

use super::expression::{
    AddressTest, Condition, JOINS, Join, List, Number, NumberTest, ORDERS, Order, Text, TextTest,
};
use super::fields::{FIELDS, Field, Map, find};
use super::lexer::Lexer;
use super::mistake::ExpressionError;
use super::network::{BadNetwork, Network};
use super::pattern::Pattern;
use super::{MAX_DEPTH, MAX_LENGTH};
use crate::text::nearest;

type Result<T> = std::result::Result<T, ExpressionError>;

/// The functions, and what they make of what.
const FUNCTIONS: [&str; 8] =
    ["starts_with", "ends_with", "lower", "upper", "url_decode", "len", "any", "all"];

pub(super) fn parse(text: &str) -> Result<Condition> {
    let mut parser = Parser { lexer: Lexer { text, at: 0 }, depth: 0, is_of_several: false, several: None };
    if text.len() > MAX_LENGTH {
        return Err(parser.lexer.mistake(|| {
            (
                format!("the expression has {} bytes, there may be {MAX_LENGTH}", text.len()),
                "split it into several rules: one is enough".to_owned(),
            )
        }));
    }
    let condition = parser.joined(Join::Or)?;
    parser.lexer.skip_space();
    if parser.lexer.rest().is_empty() { Ok(condition) } else { Err(parser.unexpected()) }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// How many brackets and negations are open.
    depth: usize,
    /// Whether this is within `any(...)` or `all(...)`.
    is_of_several: bool,
    /// There: the texts that `[*]` stands for, once they are known.
    several: Option<List>,
}

/// What stands before an operator.
enum Value {
    Text(Text),
    Number(Number),
    Address,
    Condition(Condition),
}

impl Parser<'_> {
    /// Conditions between operators of one kind or tighter ones.
    fn joined(&mut self, join: Join) -> Result<Condition> {
        let next = |parser: &mut Self| match join {
            Join::Or => parser.joined(Join::Xor),
            Join::Xor => parser.joined(Join::And),
            Join::And => parser.single(),
        };
        let first = next(self)?;
        let mut all = Vec::new();
        while self.takes_join(join) {
            all.push(next(self)?);
        }
        if all.is_empty() {
            return Ok(first);
        }
        all.insert(0, first);
        Ok(Condition::Joined(join, all))
    }

    fn takes_join(&mut self, join: Join) -> bool {
        JOINS.iter().any(|(word, sign, known)| {
            *known == join && (self.lexer.takes_word(word) || self.lexer.takes(sign))
        })
    }

    /// A condition without an operator around it, with its negations.
    fn single(&mut self) -> Result<Condition> {
        self.lexer.skip_space();
        let start = self.lexer.at;
        if self.lexer.takes_word("not") || self.lexer.takes("!") {
            return Ok(Condition::Not(Box::new(self.deeper(start, Self::single)?)));
        }
        if self.lexer.takes("(") {
            let condition = self.deeper(start, |parser| parser.joined(Join::Or))?;
            self.closes(start)?;
            return self.truth(condition);
        }
        self.comparison()
    }

    /// Reads something within brackets or a negation that began at `start`.
    fn deeper<T>(&mut self, start: usize, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.lexer.mistake_at(start, || {
                (
                    format!("this is the bracket or negation number {} within one another, there may be {MAX_DEPTH}", MAX_DEPTH + 1),
                    "take brackets away, or split it into several rules".to_owned(),
                )
            }));
        }
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// The bracket that belongs to the one at `start`.
    fn closes(&mut self, start: usize) -> Result<()> {
        if self.lexer.takes(")") {
            return Ok(());
        }
        if self.lexer.rest().is_empty() {
            return Err(self.lexer.mistake_at(start, || {
                ("this bracket is not closed".to_owned(), "add ) where it ends".to_owned())
            }));
        }
        Err(self.unexpected())
    }

    /// What is true or false may be compared with just that.
    fn truth(&mut self, condition: Condition) -> Result<Condition> {
        let before = self.lexer.at;
        let order = self.order();
        if !matches!(order, Some(Order::Equal | Order::NotEqual)) {
            self.lexer.at = before;
            return Ok(condition);
        }
        let wanted = if self.lexer.takes_word("true") {
            true
        } else if self.lexer.takes_word("false") {
            false
        } else {
            return Err(self.lexer.mistake(|| {
                (
                    "what stands before this is true or false".to_owned(),
                    "compare it with true or false, or just write it, or not and it".to_owned(),
                )
            }));
        };
        let is = wanted == (order == Some(Order::Equal));
        Ok(if is { condition } else { Condition::Not(Box::new(condition)) })
    }

    fn comparison(&mut self) -> Result<Condition> {
        let start = self.lexer.at;
        match self.value()? {
            Value::Condition(condition) => self.truth(condition),
            Value::Text(value) => Ok(Condition::Text(value, self.text_test()?)),
            Value::Number(value) => Ok(Condition::Number(value, self.number_test()?)),
            Value::Address => self.address_test(start),
        }
    }

    /// A field, or a function of one.
    fn value(&mut self) -> Result<Value> {
        let word = self.lexer.word();
        let start = self.lexer.at;
        if word.is_empty() || matches!(word, "and" | "or" | "xor") {
            return Err(self.no_value());
        }
        self.lexer.at += word.len();
        let wraps = |wrap: fn(Box<Text>) -> Text, parser: &mut Self| {
            let text = parser.argument(start)?;
            parser.takes_each_again(&text);
            Ok(Value::Text(wrap(Box::new(text))))
        };
        match word {
            "lower" => wraps(Text::Lower, self),
            "upper" => wraps(Text::Upper, self),
            "url_decode" => wraps(Text::UrlDecoded, self),
            "len" => Ok(Value::Number(Number::Length(self.argument(start)?))),
            "starts_with" => self
                .two_arguments(start)
                .map(|(text, part)| Condition::Starts(text, part))
                .map(Value::Condition),
            "ends_with" => self
                .two_arguments(start)
                .map(|(text, part)| Condition::Ends(text, part))
                .map(Value::Condition),
            "any" | "all" => self.of_several(start, word == "all").map(Value::Condition),
            name => match find(name) {
                Some(Field::Text(field)) => Ok(Value::Text(Text::Field(field))),
                Some(Field::Map(map)) => self.named(start, map).map(Value::Text),
                Some(Field::NetworkNumber) => Ok(Value::Number(Number::Network)),
                Some(Field::Address) => Ok(Value::Address),
                Some(Field::Flag(flag)) => Ok(Value::Condition(Condition::Flag(flag))),
                None => Err(self.unknown(start, name)),
            },
        }
    }

    /// What is in the brackets of a function.
    fn within_brackets<T>(&mut self, start: usize, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if !self.lexer.takes("(") {
            return Err(self.lexer.mistake(|| {
                (
                    "a function needs its values in brackets".to_owned(),
                    "write it as in lower(http.host) eq \"shop.example.com\"".to_owned(),
                )
            }));
        }
        let read = self.deeper(start, read)?;
        self.closes(start)?;
        Ok(read)
    }

    /// The one text of a function.
    fn argument(&mut self, start: usize) -> Result<Text> {
        self.within_brackets(start, Self::text)
    }

    fn two_arguments(&mut self, start: usize) -> Result<(Text, Text)> {
        self.within_brackets(start, |parser| {
            let text = parser.text()?;
            if !parser.lexer.takes(",") {
                return Err(parser.lexer.mistake(|| {
                    (
                        "this function needs two texts".to_owned(),
                        "write them with a comma between, as in starts_with(http.request.uri.path, \"/status\")"
                            .to_owned(),
                    )
                }));
            }
            Ok((text, parser.text()?))
        })
    }

    /// Text as a value of a function: written out, a field, or what another function makes.
    fn text(&mut self) -> Result<Text> {
        if let Some(text) = self.lexer.quoted(false)? {
            return Ok(Text::Written(text));
        }
        let start = self.lexer.at;
        match self.value()? {
            Value::Text(text) => Ok(text),
            _ => Err(self.lexer.mistake_at(start, || {
                (
                    "a text is needed here".to_owned(),
                    "take a field that is text, or write one in quotes".to_owned(),
                )
            })),
        }
    }

    /// `["name"]` and what may follow: `[0]` for the first text of this name, `[*]` for each.
    fn named(&mut self, start: usize, map: Map) -> Result<Text> {
        let needs_name = |parser: &Self| {
            parser.lexer.mistake(|| {
                (
                    "this field needs a name".to_owned(),
                    "write it in brackets and quotes, as in http.request.headers[\"x-api-key\"]".to_owned(),
                )
            })
        };
        if !self.lexer.takes("[") {
            return Err(needs_name(self));
        }
        let Some(mut name) = self.lexer.quoted(false)? else { return Err(needs_name(self)) };
        if map == Map::Headers {
            name.make_ascii_lowercase();
        }
        self.ends_index()?;
        let list = List { map, name };
        if !self.lexer.takes("[") {
            return Ok(Text::Item(list, 0));
        }
        self.lexer.skip_space();
        let place = self.lexer.at;
        if !self.lexer.takes("*") {
            let index =
                self.number("[0] is the first text of this name, [*] each within any(...) or all(...)")?;
            self.ends_index()?;
            return Ok(Text::Item(list, usize::try_from(index).unwrap_or(usize::MAX)));
        }
        self.ends_index()?;
        match &self.several {
            None if self.is_of_several => self.several = Some(list.clone()),
            Some(of) if *of == list => {}
            Some(_) => {
                return Err(self.lexer.mistake_at(start, || {
                    (
                        "there are other texts with [*] in these brackets already".to_owned(),
                        "write any(...) or all(...) for each of them, with and or or between".to_owned(),
                    )
                }));
            }
            None => {
                return Err(self.lexer.mistake_at(place, || {
                    (
                        "[*] stands for several texts, and only one can be compared".to_owned(),
                        "put the comparison into any(...) or all(...), or write [0] for the first".to_owned(),
                    )
                }));
            }
        }
        Ok(Text::Each(list))
    }

    fn ends_index(&mut self) -> Result<()> {
        if self.lexer.takes("]") {
            return Ok(());
        }
        Err(self.lexer.mistake(|| ("] is missing here".to_owned(), "add it".to_owned())))
    }

    /// `lower(http.request.headers["x"][*])[*]`: what is made of each text is again one of several.
    fn takes_each_again(&mut self, text: &Text) {
        if text.is_of_each() && self.lexer.takes("[") {
            let before = self.lexer.at - 1;
            if !(self.lexer.takes("*") && self.lexer.takes("]")) {
                self.lexer.at = before;
            }
        }
    }

    /// `any(...)` and `all(...)`.
    fn of_several(&mut self, start: usize, all: bool) -> Result<Condition> {
        if self.is_of_several {
            return Err(self.lexer.mistake_at(start, || {
                (
                    "any and all cannot stand within one another".to_owned(),
                    "write them one after another, with and or or between".to_owned(),
                )
            }));
        }
        self.is_of_several = true;
        let is = self.within_brackets(start, |parser| parser.joined(Join::Or))?;
        self.is_of_several = false;
        match self.several.take() {
            Some(of) => Ok(Condition::OfSeveral { all, of, is: Box::new(is) }),
            None => Err(self.lexer.mistake_at(start, || {
                (
                    "there is nothing with [*] in these brackets".to_owned(),
                    "write it as in any(http.request.headers[\"x-team\"][*] eq \"blue\")".to_owned(),
                )
            })),
        }
    }

    /// An operator that compares.
    fn order(&mut self) -> Option<Order> {
        let word = self.lexer.word();
        if let Some((_, _, order)) = ORDERS.iter().find(|(known, _, _)| *known == word) {
            self.lexer.at += word.len();
            return Some(*order);
        }
        // The longer signs first: `<=` begins with `<`.
        let (_, sign, order) = ORDERS
            .iter()
            .filter(|(_, sign, _)| self.lexer.rest().starts_with(sign))
            .max_by_key(|(_, sign, _)| sign.len())?;
        self.lexer.at += sign.len();
        Some(*order)
    }

    fn text_test(&mut self) -> Result<TextTest> {
        if let Some(order) = self.order() {
            return Ok(TextTest::Compared(order, self.written(false)?));
        }
        let test = match self.lexer.word() {
            "contains" => TextTest::Contains,
            "matches" => return self.pattern("matches"),
            "" if self.lexer.rest().starts_with('~') => return self.pattern("~"),
            "wildcard" => |pattern| TextTest::Wild { pattern, has_case: false },
            "strict" => {
                self.lexer.takes_word("strict");
                if !self.lexer.takes_word("wildcard") {
                    return Err(self.no_operator("strict wildcard"));
                }
                return Ok(TextTest::Wild { pattern: self.written(false)?, has_case: true });
            }
            "in" => {
                self.lexer.takes_word("in");
                return Ok(TextTest::In(self.set(|parser| parser.written(false))?));
            }
            _ => return Err(self.no_operator("eq, ne, contains, matches, wildcard, in, lt, le, gt or ge")),
        };
        let word = self.lexer.word();
        self.lexer.at += word.len();
        Ok(test(self.written(false)?))
    }

    fn pattern(&mut self, operator: &str) -> Result<TextTest> {
        self.lexer.at += operator.len();
        self.lexer.skip_space();
        let start = self.lexer.at;
        let text = self.written(true)?;
        Pattern::new(text).map(TextTest::Matches).map_err(|error| {
            self.lexer.mistake_at(start, || {
                (
                    format!("this regular expression is not valid: {error}"),
                    "correct it; it may not have look-around, references back or \\p{...}".to_owned(),
                )
            })
        })
    }

    fn number_test(&mut self) -> Result<NumberTest> {
        if let Some(order) = self.order() {
            return Ok(NumberTest::Compared(
                order,
                self.number("compare it with a whole number, without quotes")?,
            ));
        }
        if !self.lexer.takes_word("in") {
            return Err(self.no_operator("eq, ne, lt, le, gt, ge or in"));
        }
        Ok(NumberTest::In(self.set(|parser| {
            let fix = "write whole numbers and ranges without quotes, as in {13335 64512..65534}";
            let first = parser.number(fix)?;
            if !parser.lexer.rest().starts_with("..") {
                return Ok((first, first));
            }
            parser.lexer.at += "..".len();
            let place = parser.lexer.at;
            let last = parser.number(fix)?;
            if first <= last {
                return Ok((first, last));
            }
            Err(parser.lexer.mistake_at(place, || {
                ("this range ends before it begins".to_owned(), format!("write {last}..{first}"))
            }))
        })?))
    }

    fn address_test(&mut self, start: usize) -> Result<Condition> {
        match self.order() {
            Some(order @ (Order::Equal | Order::NotEqual)) => {
                self.lexer.skip_space();
                let place = self.lexer.at;
                let Some(address) = self.network()?.only() else {
                    return Err(self.lexer.mistake_at(place, || {
                        (
                            "one address can be compared, not many".to_owned(),
                            "write ip.src in { } with the addresses between the brackets".to_owned(),
                        )
                    }));
                };
                let is = Condition::Address(AddressTest::Is(address));
                Ok(if order == Order::Equal { is } else { Condition::Not(Box::new(is)) })
            }
            Some(_) => Err(self.lexer.mistake_at(start, || {
                (
                    "addresses have no order here".to_owned(),
                    "write ip.src in {192.0.2.1..192.0.2.9} for a range".to_owned(),
                )
            })),
            None if self.lexer.takes_word("in") => {
                Ok(Condition::Address(AddressTest::In(self.set(Self::network)?)))
            }
            None => Err(self.no_operator("eq, ne or in")),
        }
    }

    /// Values between `{` and `}`.
    fn set<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.lexer.skip_space();
        let start = self.lexer.at;
        if !self.lexer.takes("{") {
            let is_list = self.lexer.rest().starts_with('$');
            return Err(self.lexer.mistake(|| {
                let message =
                    if is_list { "named lists are not available" } else { "in needs a set of values" };
                (message.to_owned(), "write the values between { and }, with spaces between".to_owned())
            }));
        }
        let mut all = Vec::new();
        while !self.lexer.takes("}") {
            if self.lexer.rest().is_empty() {
                return Err(self.lexer.mistake_at(start, || {
                    ("this set has no end".to_owned(), "add } where it ends".to_owned())
                }));
            }
            if self.lexer.rest().starts_with(',') {
                return Err(self.lexer.mistake(|| {
                    ("values of a set have no commas between".to_owned(), "write a space instead".to_owned())
                }));
            }
            all.push(one(self)?);
        }
        if all.is_empty() {
            return Err(self.lexer.mistake_at(start, || {
                ("this set is empty".to_owned(), "write at least one value between { and }".to_owned())
            }));
        }
        Ok(all)
    }

    /// Text in quotes.
    fn written(&mut self, keeps_escapes: bool) -> Result<String> {
        if let Some(text) = self.lexer.quoted(keeps_escapes)? {
            return Ok(text);
        }
        let quote = self.lexer.rest().chars().next().filter(|first| "'`´‘’“”„«»".contains(*first));
        let bare = self.lexer.bare();
        Err(self.lexer.mistake(|| match quote {
            Some(quote) => (format!("{quote} is no quote here"), "write texts between \" and \"".to_owned()),
            None if bare.is_empty() => ("a text is missing".to_owned(), "add it in quotes".to_owned()),
            None => (format!("{} must be text in quotes", shown(bare)), format!("write \"{}\"", shown(bare))),
        }))
    }

    fn number(&mut self, fix: &str) -> Result<u64> {
        self.lexer.skip_space();
        let rest = self.lexer.rest();
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let after = rest.get(digits..).unwrap_or_default();
        let ends =
            !after.starts_with(|character: char| character.is_ascii_alphanumeric() || character == '_');
        match rest.get(..digits).and_then(|digits| digits.parse().ok()) {
            Some(number) if ends => {
                self.lexer.at += digits;
                Ok(number)
            }
            _ => Err(self.lexer.mistake(|| ("a whole number is needed here".to_owned(), fix.to_owned()))),
        }
    }

    fn network(&mut self) -> Result<Network> {
        let text = self.lexer.network();
        let network = Network::read(text).map_err(|bad| {
            self.lexer.mistake(|| match bad {
                BadNetwork::Address => (
                    "an IP address is needed here".to_owned(),
                    "write it without quotes, as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32".to_owned(),
                ),
                BadNetwork::Bits { most } => (
                    format!("what follows the / must be a number of bits from 0 to {most}"),
                    "write it as in 192.0.2.0/24 or 2001:db8::/32".to_owned(),
                ),
                BadNetwork::Host { meant } => (
                    "this address has bits of its own behind those that its block has in common".to_owned(),
                    format!("write {meant}, or leave out the / and what follows for one address"),
                ),
                BadNetwork::Range => (
                    "this range must have two addresses of one kind, the smaller one first".to_owned(),
                    "write it as in 192.0.2.1..192.0.2.9".to_owned(),
                ),
            })
        })?;
        self.lexer.at += text.len();
        Ok(network)
    }

    /// Something comes that has no place there.
    fn unexpected(&mut self) -> ExpressionError {
        let word = self.lexer.word();
        let rest = self.lexer.rest();
        let open = self.depth > 0;
        self.lexer.mistake(|| {
            let wanted = if open { "and, or, xor or )" } else { "and, or, xor or the end" };
            let message = format!("{wanted} must come here");
            let fix = match rest.chars().next() {
                Some(sign @ ('&' | '|' | '^')) => format!("write {sign}{sign}"),
                Some(')') => "remove the bracket, or add ( where it begins".to_owned(),
                Some('=') => "write eq or ==; what is true or false needs no comparison".to_owned(),
                _ if ["and", "or", "xor"].contains(&word.to_ascii_lowercase().as_str()) => {
                    format!("write {} in small letters", word.to_ascii_lowercase())
                }
                _ => "join two conditions by and or or".to_owned(),
            };
            (message, fix)
        })
    }

    fn no_operator(&mut self, wanted: &str) -> ExpressionError {
        let word = self.lexer.word();
        let rest = self.lexer.rest();
        self.lexer.mistake(|| {
            let fix = if rest.starts_with('=') {
                "write == or eq".to_owned()
            } else if let Some(meant) = nearest(word, &OPERATORS).filter(|_| !word.is_empty()) {
                format!("did you mean {meant}? It needs to be an operator that fits what stands before it")
            } else {
                "compare what stands before this".to_owned()
            };
            (format!("an operator must come here: {wanted}"), fix)
        })
    }

    fn no_value(&mut self) -> ExpressionError {
        let rest = self.lexer.rest();
        self.lexer.mistake(|| {
            if rest.is_empty() {
                ("a condition is missing at the end".to_owned(), "add one, or remove the operator".to_owned())
            } else {
                let fix = "begin with what is compared, as in http.host eq \"shop.example.com\"";
                ("a field or a function must come here".to_owned(), fix.to_owned())
            }
        })
    }

    fn unknown(&self, start: usize, name: &str) -> ExpressionError {
        self.lexer.mistake_at(start, || {
            let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).chain(FUNCTIONS).collect();
            let fix = match nearest(name, &names) {
                Some(meant) => format!("did you mean {meant}? Write that"),
                None if name.starts_with("cf.bot_management") || name.starts_with("cf.threat_score") => {
                    "write cf.client.bot for verified bots: scores are not available here".to_owned()
                }
                None => "docs/bypass.md has all fields and functions".to_owned(),
            };
            (format!("{} is not a field or function of bypass rules", shown(name)), fix)
        })
    }
}

/// The operators that somebody may have meant.
const OPERATORS: [&str; 10] = ["eq", "ne", "lt", "le", "gt", "ge", "contains", "matches", "wildcard", "in"];

impl Text {
    fn is_of_each(&self) -> bool {
        match self {
            Self::Each(_) => true,
            Self::Lower(text) | Self::Upper(text) | Self::UrlDecoded(text) => text.is_of_each(),
            Self::Written(_) | Self::Field(_) | Self::Item(..) => false,
        }
    }
}

/// A piece of an expression as an error shows it.
fn shown(piece: &str) -> String {
    piece.chars().take(60).collect()
}

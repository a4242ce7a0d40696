//! What of a request a rule can ask for, by its name.

/// A field that is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextField {
    /// The host, in lower case and without port.
    Host,
    /// Path and query.
    Uri,
    /// The path.
    Path,
    /// What follows the last dot of the path's last segment, in lower case.
    Extension,
    /// What follows the path's `?`.
    Query,
    /// Scheme, host, path and query.
    FullUri,
    /// A header, by its name.
    Header(&'static str),
    /// What the platform knows.
    Told(Fact),
}

/// What the platform knows of a request besides its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The method, in capitals.
    Method,
    /// `true` where there is a body, or may be one. No rule asks for it.
    Body,
    /// The visitor's country, two letters.
    Country,
    /// The visitor's continent, two letters.
    Continent,
    /// The number of the visitor's network, in digits.
    Network,
    /// `true` for a bot whose owner is known for certain.
    VerifiedBot,
    /// What kind of bot that is, such as `Search Engine Crawler`.
    BotCategory,
}

/// A field that is true or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// The request came over HTTPS.
    Https,
    /// It comes from a verified bot.
    VerifiedBot,
}

/// A field that holds texts by name, several of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Map {
    /// Headers; their names have no case.
    Headers,
    /// Cookies.
    Cookies,
    /// What the query says: `a=1&b=2`.
    Arguments,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Text.
    Text(TextField),
    /// Texts by name.
    Map(Map),
    /// A whole number: the number of the visitor's network, 0 where it is not known.
    NetworkNumber,
    /// The visitor's IP address.
    Address,
    /// True or false.
    Flag(Flag),
}

/// All fields. Where one has several names, the first is the one it is printed with.
pub const FIELDS: [(&str, Field); 24] = [
    ("http.host", Field::Text(TextField::Host)),
    ("http.request.uri", Field::Text(TextField::Uri)),
    ("http.request.uri.path", Field::Text(TextField::Path)),
    ("http.request.uri.path.extension", Field::Text(TextField::Extension)),
    ("http.request.uri.query", Field::Text(TextField::Query)),
    ("http.request.uri.args", Field::Map(Map::Arguments)),
    ("http.request.full_uri", Field::Text(TextField::FullUri)),
    ("http.request.method", Field::Text(TextField::Told(Fact::Method))),
    ("http.request.headers", Field::Map(Map::Headers)),
    ("http.request.cookies", Field::Map(Map::Cookies)),
    ("http.user_agent", Field::Text(TextField::Header("user-agent"))),
    ("http.referer", Field::Text(TextField::Header("referer"))),
    ("http.cookie", Field::Text(TextField::Header("cookie"))),
    ("http.x_forwarded_for", Field::Text(TextField::Header("x-forwarded-for"))),
    ("ip.src", Field::Address),
    ("ip.src.country", Field::Text(TextField::Told(Fact::Country))),
    ("ip.src.continent", Field::Text(TextField::Told(Fact::Continent))),
    ("ip.src.asnum", Field::NetworkNumber),
    ("ip.geoip.country", Field::Text(TextField::Told(Fact::Country))),
    ("ip.geoip.continent", Field::Text(TextField::Told(Fact::Continent))),
    ("ip.geoip.asnum", Field::NetworkNumber),
    ("cf.client.bot", Field::Flag(Flag::VerifiedBot)),
    ("cf.verified_bot_category", Field::Text(TextField::Told(Fact::BotCategory))),
    ("ssl", Field::Flag(Flag::Https)),
];

/// The field of this name.
pub(super) fn find(name: &str) -> Option<Field> {
    FIELDS.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
}

/// What a field is called.
pub(super) fn name_of(field: Field) -> &'static str {
    FIELDS.iter().find(|(_, known)| *known == field).map_or("", |(name, _)| name)
}

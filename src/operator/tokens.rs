//! The tokens of operators: `ADMIN_TOKEN`, `OPERATOR_TOKENS` with names and roles, and those that were made at run time.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::config::MadeToken;

/// The name of whoever has `ADMIN_TOKEN`.
pub const ADMIN: &str = "admin";
/// The shortest token, in characters. Tokens of this length cannot be guessed one by one, so wrong
/// ones are not counted.
pub const MIN_TOKEN: usize = 16;
/// The most operators: each is compared with every token that comes.
pub const MAX_OPERATORS: usize = 32;
/// A connection that is opened by a token which may be revoked is closed after this time, in milliseconds.
const LISTENS_MS: u64 = 60_000;
/// The longest name of an operator.
const LONGEST_NAME: usize = 32;

/// What an operator may do. The greater one may do all that the smaller one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read everything.
    View,
    /// Change what rooms do.
    Steer,
    /// Make rooms, and change everything about them.
    Configure,
}

impl Role {
    /// The role of a name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "view" => Some(Self::View),
            "steer" => Some(Self::Steer),
            "configure" => Some(Self::Configure),
            _ => None,
        }
    }

    /// The name of the role.
    pub fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Steer => "steer",
            Self::Configure => "configure",
        }
    }
}

/// Whoever has one of the tokens.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Operator {
    /// As it stands in the audit log.
    pub name: String,
    /// What the token is good for.
    pub role: Role,
    /// SHA-256 of the token: of one length for all, and no secret in memory.
    #[serde(skip)]
    token: [u8; 32],
    /// It was made at run time: until when it is good, in milliseconds since the epoch.
    #[serde(skip)]
    made_until: Option<u64>,
}

impl Operator {
    fn new(name: &str, role: Role, token: &str) -> Self {
        Self { name: name.to_owned(), role, token: Sha256::digest(token).into(), made_until: None }
    }

    fn of_made(made: &MadeToken) -> Option<Self> {
        let token = URL_SAFE_NO_PAD.decode(&made.hash).ok()?.try_into().ok()?;
        let made_until = Some(made.ends.unwrap_or(u64::MAX));
        Some(Self { name: made.name.clone(), role: Role::of(&made.role)?, token, made_until })
    }

    fn is_good(&self, now_ms: u64) -> bool {
        self.made_until.is_none_or(|until| now_ms < until)
    }

    /// Until when whoever opens a connection now may listen by this token, in milliseconds since the epoch: one that can be
    /// revoked is looked at again. `None`: as long as it is open.
    pub fn listens_until(&self, now_ms: u64) -> Option<u64> {
        self.made_until.map(|until| until.min(now_ms + LISTENS_MS))
    }

    /// Stands for an operator by a token that can be revoked, as text.
    pub fn listener(&self) -> Option<String> {
        self.made_until.map(|_| URL_SAFE_NO_PAD.encode(self.mark()))
    }

    /// Stands for token, name and role together: a change of any makes another one.
    pub(super) fn mark(&self) -> [u8; 32] {
        let parts = Sha256::new().chain_update(self.token).chain_update(self.role.name());
        parts.chain_update([0]).chain_update(&self.name).finalize().into()
    }
}

/// Shows no token, and nothing made of one.
impl fmt::Debug for Operator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.name, self.role.name())
    }
}

/// All operators of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operators(Vec<Operator>);

impl Operators {
    /// Reads `ADMIN_TOKEN` and `OPERATOR_TOKENS`; of an entry that is wrong a problem comes, one sentence each, and the
    /// others work. A problem names the entry by its number: what stands in it may be a token in the wrong place.
    pub fn parse(admin: Option<&str>, named: Option<&str>) -> (Self, Vec<String>) {
        let mut all = Self::default();
        let mut problems = Vec::new();
        if let Some(token) = admin.map(str::trim).filter(|token| !token.is_empty()) {
            if token.chars().count() < MIN_TOKEN {
                problems.push(format!(
                    "ADMIN_TOKEN needs at least {MIN_TOKEN} characters, or it may be guessed; until then it opens nothing. \
                     Fix: openssl rand -base64 32 | npx wrangler secret put ADMIN_TOKEN"
                ));
            } else {
                all.0.push(Operator::new(ADMIN, Role::Configure, token));
            }
        }
        let entries = named.unwrap_or_default().split(',').map(str::trim).zip(1..);
        for (entry, number) in entries.filter(|(entry, _)| !entry.is_empty()) {
            if let Err(problem) = all.add(entry) {
                problems.push(format!(
                    "OPERATOR_TOKENS: entry {number} {problem}; it is left out. Fix: write anna:steer:TOKEN, \
                     anna:view:TOKEN or anna:configure:TOKEN, with a token from `openssl rand -base64 32`"
                ));
            }
        }
        (all, problems)
    }

    fn add(&mut self, entry: &str) -> Result<(), String> {
        let mut parts = entry.splitn(3, ':').map(str::trim);
        let (Some(name), Some(role), Some(token)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("must be a name, a role and a token with colons between them".to_owned());
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_plain) {
            return Err(format!("needs a name of 1 to {LONGEST_NAME} letters, digits, _ or -"));
        }
        let Some(role) = Role::of(role) else {
            return Err("needs the role view, steer or configure".to_owned());
        };
        if token.chars().count() < MIN_TOKEN || token.contains([':', ' ', '\t', '\r', '\n']) {
            return Err(format!(
                "needs a token of at least {MIN_TOKEN} characters, without comma, colon and space"
            ));
        }
        if name == ADMIN {
            return Err(format!("must have another name: {ADMIN} is whoever has ADMIN_TOKEN"));
        }
        let operator = Operator::new(name, role, token);
        if self.0.iter().any(|other| other.name == operator.name) {
            return Err("has the name of an earlier one".to_owned());
        }
        if self.0.iter().any(|other| other.token == operator.token) {
            return Err("has the token of another one: nobody could tell whose changes they are".to_owned());
        }
        if self.0.len() >= MAX_OPERATORS {
            return Err(format!("is too many: there may be {MAX_OPERATORS} operators"));
        }
        self.0.push(operator);
        Ok(())
    }

    /// Adds tokens that were made at run time. One that is none is left out.
    pub fn add_made(&mut self, made: &[MadeToken]) {
        self.0.extend(made.iter().filter_map(Operator::of_made));
    }

    /// What marks of rehearsals are signed with: SHA-256 of the token of everybody who may steer. `now_ms`: in milliseconds since
    /// the epoch.
    pub fn signers(&self, now_ms: u64) -> impl Iterator<Item = &[u8; 32]> {
        self.0
            .iter()
            .filter(move |operator| operator.role >= Role::Steer && operator.is_good(now_ms))
            .map(|operator| &operator.token)
    }

    /// Whether anybody may make rooms.
    pub fn configures(&self) -> bool {
        self.0.iter().any(|operator| operator.role >= Role::Configure)
    }

    /// Whether there is no token at all: everything is closed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose token this is, at a time in milliseconds since the epoch. It takes the same time for every token of a length, whether
    /// and where it is found.
    pub fn by_token(&self, token: &str, now_ms: u64) -> Option<&Operator> {
        let token: [u8; 32] = Sha256::digest(token).into();
        self.find(|operator| operator.token, &token, now_ms)
    }

    /// Whose mark this is: nobody's once the token, the name or the role has changed.
    pub(super) fn by_mark(&self, mark: &[u8; 32], now_ms: u64) -> Option<&Operator> {
        self.find(Operator::mark, mark, now_ms)
    }

    /// Those whose tokens were made at run time, each as [`Operator::listener`] says.
    pub fn listeners(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(Operator::listener)
    }

    /// Looks at all of them, also behind the one that it is.
    fn find(&self, of: impl Fn(&Operator) -> [u8; 32], wanted: &[u8; 32], now_ms: u64) -> Option<&Operator> {
        let mut found = u32::MAX;
        for (operator, index) in self.0.iter().zip(0..) {
            found.conditional_assign(&index, of(operator).ct_eq(wanted));
        }
        self.0.get(found as usize).filter(|operator| operator.is_good(now_ms))
    }
}

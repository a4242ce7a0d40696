//! What a probe found, judged: from the bytes that came, and from how the connection ended.

use super::check::{Check, SEARCHED_BODY, Target};
use super::{Reason, Waterfall};

/// More headers than this is no answer that a check can read.
const HEADERS_MAX: usize = 100;
/// The longest status line and headers of an answer, in bytes. `edge/probe.js` keeps this much, and more for the body.
const HEAD_MAX: usize = 16_384;
/// Answers that only announce another one (`103 Early Hints`), at most.
const INTERIM_MAX: usize = 8;

/// How the connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The server closed it, or all that it announced was there.
    Complete,
    /// Time ran out.
    TimedOut,
    /// It did not come about, or broke.
    Failed,
    /// The probe ended it: it had read as much as it reads.
    Cut,
}

/// What a probe brings back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// When each stage was over.
    pub waterfall: Waterfall,
    /// How it ended.
    pub ended: Ended,
    /// Whether the platform's `fetch()` was used, because the address is closed to sockets.
    pub by_fetch: bool,
    /// How many bytes came.
    pub received: u64,
    /// The first of them: as they came, or by `fetch()` the status, `Location` and the body.
    pub answer: Vec<u8>,
}

/// What a probe's outcome means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The answer leads elsewhere, and the check goes there.
    Follow {
        /// As the `Location` header has it.
        location: String,
        /// The status code.
        code: u16,
    },
    /// It is as expected, or is not.
    Done {
        /// Why not; [`Reason::NoFailures`] when it is.
        reason: Reason,
        /// The status code, if one came.
        actual_code: Option<u16>,
    },
}

/// Judges what a probe found.
pub fn judge(check: &Check, target: &Target, raw: &Raw) -> Judgement {
    let done = |reason, actual_code| Judgement::Done { reason, actual_code };
    let secure = match target {
        Target::Tcp { .. } if raw.waterfall.tcp_ms.is_some() => return done(Reason::NoFailures, None),
        Target::Tcp { .. } => return done(Reason::TcpConnectionFailed, None),
        Target::Http(url) => url.secure,
    };
    if raw.answer.is_empty() {
        return done(silent(secure, raw), None);
    }
    let Some(head) = Head::read(&raw.answer) else {
        let reason = if raw.ended == Ended::TimedOut { Reason::Timeout } else { Reason::InvalidResponse };
        return done(reason, None);
    };
    if check.http.follow_redirects
        && matches!(head.code, 301 | 302 | 303 | 307 | 308)
        && let Some(location) = head.location
    {
        return Judgement::Follow { location, code: head.code };
    }
    let actual = Some(head.code);
    if !check.expects(head.code) {
        let instead = if raw.by_fetch { in_the_origins_place(head.code) } else { None };
        return done(instead.unwrap_or(Reason::ResponseCodeMismatch), actual);
    }
    let has_body = !check.http.head && !matches!(head.code, 204 | 304);
    let body = raw.answer.get(head.length..).unwrap_or_default();
    let all_kept = raw.received == raw.answer.len() as u64;
    let broke_off = match (raw.ended, head.framing) {
        (Ended::TimedOut, _) => return done(Reason::Timeout, actual),
        (Ended::Failed, _) => true,
        (Ended::Complete, _) if !has_body => false,
        (Ended::Complete, Framing::Length(length)) => {
            raw.received < length.saturating_add(head.length as u64)
        }
        (Ended::Complete, Framing::Chunked) => all_kept && !dechunk(body).1,
        (Ended::Cut, _) | (Ended::Complete, Framing::ToTheEnd) => false,
    };
    if broke_off {
        return done(Reason::InvalidResponse, actual);
    }
    if !check.http.expected_body.is_empty() {
        let plain = match head.framing {
            Framing::Chunked => dechunk(body).0,
            Framing::Length(_) | Framing::ToTheEnd => body.iter().copied().take(SEARCHED_BODY).collect(),
        };
        if !contains(&plain, &check.http.expected_body) {
            return done(Reason::BodyMismatch, actual);
        }
    }
    done(Reason::NoFailures, actual)
}

/// Why no byte came.
fn silent(secure: bool, raw: &Raw) -> Reason {
    let Waterfall { tcp_ms, tls_ms, .. } = raw.waterfall;
    match raw.ended {
        // By fetch() nobody can tell where the time went.
        Ended::TimedOut if raw.by_fetch || tcp_ms.is_some() => Reason::Timeout,
        _ if tcp_ms.is_none() => Reason::TcpConnectionFailed,
        _ if secure && tls_ms.is_none() => Reason::TlsHandshakeFailed,
        _ => Reason::InvalidResponse,
    }
}

/// What the platform says with a status code of its own when the origin does not answer its `fetch()`.
fn in_the_origins_place(code: u16) -> Option<Reason> {
    Some(match code {
        521..=523 => Reason::TcpConnectionFailed,
        524 => Reason::Timeout,
        525 | 526 => Reason::TlsHandshakeFailed,
        520 => Reason::InvalidResponse,
        530 => Reason::UnknownHost,
        _ => return None,
    })
}

/// How an answer tells where its body ends.
#[derive(Clone, Copy)]
enum Framing {
    Length(u64),
    Chunked,
    ToTheEnd,
}

/// An answer's status line and headers.
struct Head {
    code: u16,
    framing: Framing,
    location: Option<String>,
    /// In bytes, with the empty line.
    length: usize,
}

impl Head {
    /// Of the first answer that is not just an announcement. `None`: it is not there, or is not HTTP.
    fn read(answer: &[u8]) -> Option<Self> {
        let mut start = 0;
        for _ in 0..=INTERIM_MAX {
            let rest = answer.get(start..)?;
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut response = httparse::Response::new(&mut headers);
            let Ok(httparse::Status::Complete(length)) = response.parse(rest) else { return None };
            let code = response.code?;
            start += length;
            if start > HEAD_MAX {
                return None;
            }
            if (100..200).contains(&code) && code != 101 {
                continue;
            }
            let find = |name: &str| {
                let header = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
                header.and_then(|header| std::str::from_utf8(header.value).ok())
            };
            let framing =
                if find("transfer-encoding").is_some_and(|value| contains(value.as_bytes(), "chunked")) {
                    Framing::Chunked
                } else {
                    let length = find("content-length").and_then(|length| length.trim().parse().ok());
                    length.map_or(Framing::ToTheEnd, Framing::Length)
                };
            return Some(Self {
                code,
                framing,
                location: find("location").map(str::to_owned),
                length: start,
            });
        }
        None
    }
}

/// As much of a body in chunks as is searched, and whether it ends as it should.
fn dechunk(mut body: &[u8]) -> (Vec<u8>, bool) {
    let mut plain = Vec::new();
    while let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(body) {
        if size == 0 {
            return (plain, true);
        }
        let rest = body.get(start..).unwrap_or_default();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let chunk = rest.get(..size).unwrap_or(rest);
        let wanted = SEARCHED_BODY.saturating_sub(plain.len());
        plain.extend(chunk.iter().take(wanted));
        let Some(next) = size.checked_add(2).and_then(|end| rest.get(end..)) else { break };
        body = next;
    }
    (plain, false)
}

/// Whether a text is there, whatever its case in ASCII.
fn contains(bytes: &[u8], text: &str) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
}

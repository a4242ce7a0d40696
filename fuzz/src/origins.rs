//! What the origin and other services send.

/// A notification of a health check says nothing but what the public page has a place for.
pub mod notices {
    use anteroom::health::webhook::{LONGEST_BODY, LONGEST_TEXT, Notice, read};

    use crate::NOW;

    pub fn run(input: &[u8]) {
        match read(input, NOW) {
            Ok(Notice::Test) => assert!(input.len() <= LONGEST_BODY),
            Ok(Notice::Change { name, change }) => {
                let texts = [&name, change.reason.text(), &change.expected_codes];
                for text in texts {
                    assert!(
                        text.chars().count() <= LONGEST_TEXT && !text.contains(char::is_control),
                        "{text:?}"
                    );
                }
                assert!(!name.is_empty() && !change.reason.text().is_empty());
                assert!(change.at <= NOW + 600_000 && change.actual_code.is_none_or(|code| code >= 100));
            }
            Err(refusal) => {
                assert!(matches!(refusal.status, 400 | 413));
                let is_line = refusal.message.len() <= 400 && !refusal.message.contains(char::is_control);
                assert!(is_line, "{:?}", refusal.message);
            }
        }
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        crate::paragraphs(include_str!("../seeds/notices.txt"))
    }
}

/// Whatever an origin answers to a probe: it ends, asks nobody for what the check does not allow, and tells a check's own
/// headers to nobody else. The first byte of the input says which check and how the connection ended.
pub mod probes {
    use std::sync::LazyLock;

    use anteroom::health::check::{Check, Target, parse_check};
    use anteroom::health::judge::{Ended, Judgement, Raw, judge};
    use anteroom::health::observer::Post;
    use anteroom::health::probe::Probe;
    use anteroom::health::{Reason, Waterfall};
    use serde_json::json;
    use url::Url;

    use crate::NOW;

    static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(|| {
        let url = "http://origin.example.com/health?x=1";
        let header = json!({ "X-Secret": "swordfish" });
        let checks = [
            json!({ "url": url, "header": header }),
            json!({ "url": url, "follow_redirects": true, "expected_codes": ["2xx", "302"], "header": header }),
            json!({ "url": url, "expected_body": "Welcome", "expected_codes": "2xx" }),
            json!({ "url": "https://origin.example.com", "method": "HEAD", "retries": 0 }),
        ];
        checks.iter().map(|check| parse_check("CHECK_A", check).unwrap()).collect()
    });
    const ENDS: [Ended; 4] = [Ended::Complete, Ended::TimedOut, Ended::Failed, Ended::Cut];

    pub fn run(input: &[u8]) {
        let Some((choice, answer)) = input.split_first() else { return };
        let check = &CHECKS[usize::from(choice % 4)];
        let raw = Raw {
            waterfall: Waterfall { tcp_ms: Some(1), ..Waterfall::default() },
            ended: ENDS[usize::from(choice / 4 % 4)],
            by_fetch: choice & 16 != 0,
            received: answer.len() as u64 + u64::from(choice / 32),
            answer: answer.to_vec(),
        };
        if let Judgement::Follow { code, .. } = judge(check, &check.target, &raw) {
            assert!(check.http.follow_redirects && (300..400).contains(&code));
        }
        let mut probe = Probe::new(Post::all(check).next().unwrap(), NOW);
        // Each try may be led on five times, and only what takes too long is tried again.
        let attempts = (1 + check.retries) * 6;
        for _ in 0..attempts {
            let attempt = probe.attempt(NOW);
            let (head, end) = attempt.request.split_once("\r\n\r\n").expect("a request has an end");
            assert!(end.is_empty() && attempt.timeout_ms <= check.timeout_ms());
            let is_plain = |line: &str| line.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            assert!(head.split("\r\n").all(is_plain), "{head:?}");
            let Target::Http(own) = &check.target else { return };
            let is_own = (&attempt.host, attempt.port, attempt.secure) == (&own.host, own.port, own.secure);
            assert!(is_own || !head.contains("swordfish"), "{head:?}");
            let lead = |from: &str, to: &str| Some(Url::parse(from).ok()?.join(to).ok()?.to_string());
            if let Some(result) = probe.take(&raw, NOW + 1, lead) {
                assert_eq!(result.healthy, result.reason == Reason::NoFailures);
                return;
            }
        }
        panic!("it does not end");
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        let answers = crate::paragraphs(include_str!("../seeds/probes.txt"));
        // As they come over the wire, and to each check.
        let sent = answers.iter().map(|seed| String::from_utf8_lossy(seed).replace(['\n', '|'], "\r\n"));
        let sent: Vec<String> = sent.collect();
        let with = |choice: u8| sent.iter().map(move |answer| [&[choice], answer.as_bytes()].concat());
        (0..16).flat_map(with).collect()
    }
}

/// Nobody is taken for a person unless the service says so, of this host and room, or of a key for tests.
pub mod verdicts {
    use std::sync::LazyLock;

    use anteroom::config::parse_room;
    use anteroom::room::Room;
    use anteroom::turnstile::Verdict;
    use serde_json::{Value, json};

    static ROOM: LazyLock<Room> = LazyLock::new(|| {
        let fields =
            json!({ "total_active_users": 1, "new_users_per_minute": 1, "turnstile_sitekey": "0x4AAAAAAA" });
        parse_room("ROOM_SHOP", &fields).unwrap()
    });

    pub fn run(input: &[u8]) {
        let Ok(body) = std::str::from_utf8(input) else { return };
        if Verdict::read(body, &ROOM, "shop.example.com:8443") == Verdict::Passed {
            // A number that no Value holds stands where nobody looks: without it, it is another input.
            let Ok(told) = serde_json::from_str::<Value>(body) else { return };
            let is_for_tests = told["metadata"]["result_with_testing_key"] == true;
            let host = told["hostname"].as_str().unwrap_or_default();
            let is_ours = host.eq_ignore_ascii_case("shop.example.com") && told["action"] == "shop";
            assert!(told["success"] == true && (is_for_tests || is_ours), "{body}");
        }
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        crate::paragraphs(include_str!("../seeds/verdicts.txt"))
    }
}

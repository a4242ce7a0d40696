//! The words for a wait.

/// How long a visitor will wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// About this long.
    Known {
        /// Seconds until the visitor is let in.
        seconds: u64,
    },
    /// Too little is known to say.
    Unknown,
}

/// A wait in words, for the page and for the status answers alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Seconds, when known and when somebody is let in at all.
    pub seconds: Option<u64>,
    /// What stands above the text.
    pub label: &'static str,
    /// The wait itself: `about 2 minutes`.
    pub text: String,
    /// What the visitor may expect.
    pub note: &'static str,
    /// The title of the page, so that a tab in the background tells the wait.
    pub title: String,
}

impl Wait {
    /// Words for the estimate; while nobody is let in, by the owner's wish or because the origin is unhealthy, there is
    /// none.
    pub fn new(estimate: Estimate, queue_all: bool, held: bool) -> Self {
        match estimate {
            _ if queue_all => Self {
                seconds: None,
                label: "Entry is closed for the moment",
                text: "nobody is let in right now".to_owned(),
                note: "Your place is kept. This page tells you as soon as people are let in again.",
                title: "Closed for the moment – waiting room".to_owned(),
            },
            _ if held => Self {
                seconds: None,
                label: "The site is having trouble",
                text: "nobody is let in right now".to_owned(),
                note: "Your place is kept. This page lets you in when the site is well again and it is your turn.",
                title: "Waiting for the site – waiting room".to_owned(),
            },
            Estimate::Unknown => Self {
                seconds: None,
                label: "Estimated wait",
                text: "not known yet".to_owned(),
                note: "It is too early to say how long it takes. \
                       You are let in as soon as it is your turn.",
                title: "In line – waiting room".to_owned(),
            },
            Estimate::Known { seconds } => {
                let text = wait_text(seconds);
                Self {
                    seconds: Some(seconds),
                    label: "Estimated wait",
                    note: "Whoever came first goes in first. You are let in by this page as soon as it is your turn.",
                    title: format!("{} – waiting room", capitalised(&text)),
                    text,
                }
            }
        }
    }
}

/// A known wait in words, rounded up, and coarser the longer it is: nobody minds being early, and a text that changes
/// with every check would claim a precision that no estimate has.
fn wait_text(seconds: u64) -> String {
    let minutes = seconds.div_ceil(60);
    match minutes {
        _ if seconds < 60 => "less than a minute".to_owned(),
        1 => "about 1 minute".to_owned(),
        2..=10 => format!("about {minutes} minutes"),
        11..=55 => format!("about {} minutes", minutes.next_multiple_of(5)),
        56..=60 => "about 1 hour".to_owned(),
        61..=720 => {
            let half_hours = minutes.div_ceil(30);
            let half = if half_hours.is_multiple_of(2) { "" } else { ".5" };
            format!("about {}{half} hours", half_hours / 2)
        }
        _ => "more than 12 hours".to_owned(),
    }
}

/// How many people wait in front of a visitor, as a sentence; nothing when it is not known.
pub fn people_text(people_ahead: Option<u64>) -> String {
    let Some(people_ahead) = people_ahead else { return String::new() };
    match people_ahead {
        0 => "You are among the next to go in.".to_owned(),
        1 => "One person is ahead of you.".to_owned(),
        // Other data centers tell their numbers with a delay of seconds, hence "about".
        _ => format!("About {} people are ahead of you.", with_commas(people_ahead)),
    }
}

/// `1234567` as `1,234,567`.
fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        std::iter::once(first.to_ascii_uppercase()).chain(characters).collect()
    })
}

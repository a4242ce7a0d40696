//! Notifications in words, and on their way to webhooks; push messages to visitors on theirs.

use js_sys::futures::JsFuture;
use js_sys::{Error as JsError, Promise};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::edge::platform::log_error;
use crate::edge::push;
use crate::edge::settings::Settings;
use crate::machines::{Attempt, Outcome, PushAttempt};
use crate::notifications::delivery::{Verdict, verdict};

#[wasm_bindgen(module = "/src/edge/news.js")]
extern "C" {
    /// `news.js` says what they take and give.
    #[wasm_bindgen(catch)]
    fn words(kind: &str, data: &str) -> std::result::Result<String, JsValue>;
    #[wasm_bindgen(catch)]
    fn body(
        format: &str,
        kind: &str,
        at: f64,
        text: &str,
        data: &str,
        dropped: u32,
    ) -> std::result::Result<String, JsValue>;
}

#[wasm_bindgen(module = "/src/edge/webhooks.js")]
extern "C" {
    /// `webhooks.js` says what it takes and gives.
    #[wasm_bindgen(js_name = send)]
    fn start_send(
        url: &str,
        id: &str,
        seconds: &str,
        signature: Option<String>,
        body: &str,
        milliseconds: u32,
    ) -> Promise;
}

/// A notification in one or two plain sentences.
pub fn in_words(kind: &str, data: &str) -> String {
    words(kind, data).unwrap_or_else(|error| {
        log_error(&format!("no words for {kind}: {error:?}"));
        String::new()
    })
}

/// Sends a message to a webhook's receiver.
pub async fn send(settings: &Settings, attempt: &Attempt) -> Outcome {
    let outcome = outcome(post(settings, attempt).await);
    let reason = match &outcome {
        Outcome::Answered { status, .. } if verdict(*status) == Verdict::Delivered => return outcome,
        Outcome::Answered { status, .. } => format!("status {status}"),
        Outcome::Failed { reason } => reason.clone(),
    };
    log_error(&format!("webhook {}: attempt {}: {reason}", attempt.webhook, attempt.tries));
    outcome
}

/// Sends a visitor a push message.
pub async fn push(settings: &Settings, attempt: &PushAttempt) -> Outcome {
    let outcome = outcome(push::send(settings, attempt).await);
    match &outcome {
        // 404 and 410: the browser wants nothing any more.
        Outcome::Answered { status: 200..=299 | 404 | 410, .. } => {}
        Outcome::Answered { status, .. } => log_error(&format!("push message: status {status}")),
        Outcome::Failed { reason } => log_error(&format!("push message: {reason}")),
    }
    outcome
}

fn outcome(answer: std::result::Result<String, JsValue>) -> Outcome {
    match answer {
        Ok(answer) => {
            let (status, after) = answer.split_once(' ').unwrap_or_default();
            let (status, retry_after) = (status.parse().unwrap_or(0), after.parse().unwrap_or(0));
            Outcome::Answered { status, retry_after }
        }
        Err(error) => {
            let reason = error.dyn_ref::<JsError>().map_or_else(String::new, |error| error.message().into());
            Outcome::Failed { reason }
        }
    }
}

/// The status of the answer, and for how many seconds the receiver wants to be left alone.
async fn post(settings: &Settings, attempt: &Attempt) -> std::result::Result<String, JsValue> {
    let Some(receiver) = settings.receivers.get(&attempt.webhook) else {
        return Err(JsError::new("no valid secret or url").into());
    };
    let told = &attempt.notification;
    let body = body(
        attempt.format.name(),
        &told.kind,
        told.at as f64,
        &told.text,
        &told.data,
        attempt.dropped as u32,
    )?;
    let seconds = attempt.at / 1_000;
    let signature = receiver.secrets.as_ref().map(|secrets| secrets.sign(&told.id, seconds, &body));
    let deadline_ms = attempt.deadline_ms as u32;
    let sent = start_send(&receiver.url, &told.id, &seconds.to_string(), signature, &body, deadline_ms);
    Ok(JsFuture::from(sent).await?.as_string().unwrap_or_default())
}

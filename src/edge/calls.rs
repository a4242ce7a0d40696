//! Calls from the Worker to the objects, and between objects.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use js_sys::Uint8Array;
use serde::Serialize;
use serde::de::DeserializeOwned;
use worker::{Env, Error, Request, Response, Result, Stub};

use super::clock::within;
use super::configuration;
use super::settings::Settings;
use crate::protocol::messages::{MAX_BODY, room_and_colo};
use crate::protocol::wire::{self, WireError};
use crate::protocol::{Method, Object};
use crate::room::Location;

/// Bindings of the objects.
pub const GLOBAL: &str = "GLOBAL";
/// See [`GLOBAL`].
pub const HEALTH: &str = "HEALTH";

/// Header of an object's answer: the version of the rooms made at run time that it has heard of.
const VERSION_HEADER: &str = "anteroom-configuration";

/// Sends a message to an object and reads its answer. An object that throws, is overloaded or does not answer in time
/// is an error; the caller falls back and does not retry: the object may have too much to do already.
pub async fn call<A: Serialize, R: DeserializeOwned>(
    env: &Env,
    binding: &'static str,
    name: &str,
    route: &'static str,
    message: &A,
    deadline_ms: u64,
) -> Result<R> {
    let body = wire::encode(message).map_err(unreadable)?;
    let bytes = post(env.clone(), binding, (name.to_owned(), ""), route, body, deadline_ms).await?;
    wire::decode(&bytes).map_err(unreadable)
}

/// Calls a method of an object, as [`call`] does.
pub async fn ask<M: Method>(
    env: &Env,
    name: &str,
    message: &M::Request,
    deadline_ms: u64,
) -> Result<M::Response> {
    call(env, M::OBJECT.binding(), name, M::ROUTE, message, deadline_ms).await
}

/// Calls an object that is made near a location when it is called for the first time. Nothing is told and nothing
/// answered.
pub async fn wake(
    env: &Env,
    binding: &'static str,
    name: String,
    hint: &'static str,
    route: &'static str,
    deadline_ms: u64,
) -> Result<()> {
    post(env.clone(), binding, (name, hint), route, Vec::new(), deadline_ms).await.map(|_| ())
}

/// The way to an object. The first call makes it, and it stays there: near the hint, where there is one, else near the
/// caller. Anywhere and Global have the hint of their room's owner, a region's Counter that of its region.
pub fn stub(env: &Env, binding: &str, name: &str, hint: &'static str) -> Result<Stub> {
    let is_once = [Object::Anywhere.binding(), Object::Global.binding()].contains(&binding);
    let of_room = || Settings::of(env).rooms.get(name).and_then(|room| room.location.hint());
    let hint = if is_once {
        of_room()
    } else if hint.is_empty() {
        Location::hint_of(room_and_colo(name).1)
    } else {
        Some(hint)
    };
    let namespace = env.durable_object(binding)?;
    match hint {
        Some(hint) => namespace.get_by_name_with_location_hint(name, hint),
        None => namespace.get_by_name(name),
    }
}

/// The part of a call that does not depend on the message, compiled once: it is a large part of the Worker otherwise.
pub fn post(
    env: Env,
    binding: &'static str,
    (name, hint): (String, &'static str),
    route: &'static str,
    body: Vec<u8>,
    deadline_ms: u64,
) -> LocalBoxFuture<Result<Vec<u8>>> {
    Box::pin(async move {
        let init = web_sys::RequestInit::new();
        init.set_method("POST");
        init.set_body(&Uint8Array::from(body.as_slice()).into());
        // Objects learn so that rooms were made or changed.
        let address = match configuration::version() {
            0 => format!("https://object{route}"),
            version => format!("https://object{route}?{version}"),
        };
        let request = web_sys::Request::new_with_str_and_init(&address, &init)?.into();
        // A stub that has failed once stays broken, so each call has a new one.
        let stub = stub(&env, binding, &name, hint)?;
        let answered = within(deadline_ms, async {
            let mut response = stub.fetch_with_request(request).await?;
            if let Ok(Some(version)) = response.headers().get(VERSION_HEADER) {
                configuration::hear(&version);
            }
            let status = response.status_code();
            if status == 200 {
                response.bytes().await
            } else {
                Err(failure(format!("status {status}: {}", response.text().await?)))
            }
        })
        .await;
        answered
            .unwrap_or_else(|| Err(failure(format!("no answer within {deadline_ms} ms"))))
            .map_err(|error| failure(format!("{binding} {name}{route}: {error}")))
    })
}

/// A future that borrows and hides its type.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What comes of several futures that run at the same time, in their order.
pub async fn all<T>(mut futures: Vec<Local<'_, T>>) -> Vec<T> {
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(ready) => *result = Some(ready),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// A future of this thread that hides its type.
pub type LocalBoxFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// What cannot be read or written, as the platform's error.
pub fn unreadable(error: WireError) -> Error {
    failure(error.to_string())
}

/// An error of our own.
pub fn failure(message: String) -> Error {
    Error::RustError(message)
}

/// The bytes that an object was sent; more than the bound are refused.
pub async fn body_of(request: &mut Request) -> Result<Vec<u8>> {
    let bytes = request.bytes().await?;
    if bytes.len() > MAX_BODY {
        return Err(failure(format!("a message may be {MAX_BODY} bytes long, this one has {}", bytes.len())));
    }
    Ok(bytes)
}

/// Hears what the caller of an object knows of the rooms that are made at run time.
pub fn hear(request: &Request) {
    let url = request.inner().url();
    configuration::hear(url.split_once('?').map_or("", |(_, query)| query));
}

/// An object's answer, with what the object knows of them.
pub fn with_version(response: Response) -> Result<Response> {
    let version = configuration::version();
    if version > 0 {
        response.headers().set(VERSION_HEADER, &version.to_string())?;
    }
    Ok(response)
}

/// Reads the message that an object was sent.
pub async fn message<A: DeserializeOwned>(request: &mut Request) -> Result<A> {
    wire::decode(&body_of(request).await?).map_err(unreadable)
}

/// An object's answer.
pub fn answer<R: Serialize>(answer: &R) -> Result<Response> {
    Response::from_bytes(wire::encode(answer).map_err(unreadable)?)
}

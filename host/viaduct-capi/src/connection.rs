// SPDX-License-Identifier: Apache-2.0
//! Single routes of a card. The header calls them connections: a `viaduct_route` is an argument of a run.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use host::{Port, Route};

use crate::args;
use crate::card::{CARDS, Card};
use crate::error::{Code, Result, call, fail};
use crate::handle::{Handle, Table};
use crate::types::ConnectionInfo;

/// All connections.
static CONNECTIONS: Table<Connection> = Table::new("connection");

/// A route that lasts until it is closed.
pub struct Connection {
    route: Route,
    /// The card is in use while the connection is open. Dropped last.
    _card: Arc<Card>,
}

/// An end of a route.
///
/// # Safety
///
/// As of [`args::text`].
unsafe fn end(text: *const c_char, what: &str) -> Result<Port> {
    // SAFETY: what this function asks of its caller is what that one asks.
    Ok(unsafe { args::text(text, what)? }.parse()?)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_connect(
    card: Handle<Card>,
    source: *const c_char,
    sink: *const c_char,
    connection: *mut Handle<Connection>,
) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        // SAFETY: the program gives what the header says: two strings, and an exclusive location for a handle.
        let (source, sink, place) =
            unsafe { (end(source, "source")?, end(sink, "sink")?, args::result(connection, "connection")?) };
        let route = card.card.route(source, sink)?;
        place.write(CONNECTIONS.insert(Connection { route, _card: card }));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_connected(connection: Handle<Connection>, connected: *mut c_int) -> c_int {
    call(|| {
        let connection = CONNECTIONS.get(connection)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        let place = unsafe { args::result(connected, "connected")? };
        place.write(connection.route.is_in_effect()?.into());
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn viaduct_disconnect(connection: Handle<Connection>) -> c_int {
    call(|| {
        let Connection { route, _card } = CONNECTIONS.remove(connection)?;
        Ok(route.end().map(drop)?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn viaduct_get_connections(
    card: Handle<Card>,
    connections: *mut ConnectionInfo,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    call(|| {
        let card = CARDS.get(card)?;
        // SAFETY: the program gives what the header says: an exclusive location.
        let place = unsafe { args::result(count, "count")? };
        let routes = card.card.route_states()?;
        if connections.is_null() && capacity > 0 {
            return fail(Code::Argument, "connections is NULL; give an array, or 0 as its capacity");
        }
        place.write(routes.len());
        if routes.len() > capacity {
            let text =
                format!("the card has {} connections, the array has room for {capacity}", routes.len());
            return fail(Code::TooSmall, text);
        }
        for (at, route) in routes.iter().enumerate() {
            // SAFETY: the program gives `capacity` structures of its own, and there are no more routes, as checked above.
            unsafe { connections.add(at).write(ConnectionInfo::new(route)) };
        }
        Ok(())
    })
}

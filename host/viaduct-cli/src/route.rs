// SPDX-License-Identifier: Apache-2.0
//! `--in` and `--out`: endpoints of an app's ports.

use std::str::FromStr;

use viaduct_build::{Manifest, app_lacks};

use crate::fail::{Failure, Result};

/// `[port=]endpoint` as given by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    port: Option<String>,
    /// `file:a`, in the library's form.
    pub endpoint: String,
}

/// The board's Ethernet port, of which there is one.
const ETHERNET: &str = "eth:";
/// The endpoint that is standard input or output.
const STANDARD: &str = "-";

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        // A path may contain an equals sign; a port's name comes before the first colon.
        let scheme_end = text.find(':').unwrap_or(text.len());
        let (port, endpoint) = match text[..scheme_end].split_once('=') {
            Some((port, _)) => (Some(port.to_owned()), &text[port.len() + 1..]),
            None => (None, text),
        };
        let (scheme, place) = endpoint.split_once(':').unwrap_or((endpoint, ""));
        if (scheme.is_empty() || place.is_empty()) && endpoint != STANDARD && endpoint != ETHERNET {
            return Err("write [PORT=]file:PATH, [PORT=]host:SIZE, or [PORT=]- for standard input or output; run --help lists all".to_owned());
        }
        Ok(Route { port, endpoint: endpoint.to_owned() })
    }
}

impl Route {
    /// The path, if the endpoint is a file.
    pub fn file(&self) -> Option<&str> {
        self.endpoint.strip_prefix("file:")
    }

    /// Whether it is standard input or output.
    pub fn is_standard(&self) -> bool {
        self.endpoint == STANDARD || matches!(self.file(), Some("/dev/stdin" | "/dev/stdout"))
    }

    /// Whether it leads to the board's Ethernet port.
    pub fn is_ethernet(&self) -> bool {
        self.endpoint.starts_with(ETHERNET)
    }

    /// Its name for messages: the path of a file.
    pub fn name(&self) -> &str {
        self.file().unwrap_or(&self.endpoint)
    }
}

/// A port of an app that can have a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Port {
    /// The stream with this number.
    Stream(usize),
    /// The memory port.
    Memory,
}

/// Direction of a route, seen from the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `--in`
    In,
    /// `--out`
    Out,
}

impl Way {
    fn option(self) -> &'static str {
        match self {
            Way::In => "--in",
            Way::Out => "--out",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Way::In => "input",
            Way::Out => "output",
        }
    }
}

/// Names of the ports of a direction, in the manifest's order; the memory port last.
pub fn ports(app: &Manifest, way: Way) -> Vec<(&str, Port)> {
    let streams: Vec<&str> = match way {
        Way::In => app.stream_in.iter().map(|s| s.name.as_str()).collect(),
        Way::Out => app.stream_out.iter().map(|s| s.name.as_str()).collect(),
    };
    let streams = streams.into_iter().enumerate().map(|(k, name)| (name, Port::Stream(k)));
    streams.chain(app.memory.iter().map(|m| (m.name.as_str(), Port::Memory))).collect()
}

/// Messages that a port accepts interleaved.
fn lanes(app: &Manifest, way: Way, port: Port) -> u16 {
    match (way, port) {
        (Way::In, Port::Stream(k)) => app.stream_in.get(k).map_or(1, |stream| stream.lanes),
        _ => 1,
    }
}

/// Finds the port of each route. Without a name, the route is for the first port of its direction. Only an input with
/// lanes can have several routes.
pub fn resolve(app: &Manifest, way: Way, routes: &[Route]) -> Result<Vec<(Port, Route)>> {
    let ports = ports(app, way);
    let option = way.option();
    let mut resolved: Vec<(Port, Route)> = Vec::new();
    for route in routes {
        let port = match &route.port {
            None => ports.first().map(|p| p.1).ok_or_else(|| {
                Failure::Usage(format!("app {} has no {}; leave {option} out", app.name, way.noun()))
            })?,
            Some(name) => ports.iter().find(|(n, _)| n == name).map(|p| p.1).ok_or_else(|| {
                let names = ports.iter().map(|p| p.0);
                Failure::Usage(app_lacks(&app.name, way.noun(), name, names))
            })?,
        };
        if lanes(app, way, port) == 1 && resolved.iter().any(|(p, _)| *p == port) {
            let name = ports.iter().find(|(_, p)| *p == port).map_or("", |p| p.0);
            return Err(Failure::Usage(format!(
                "two routes to port {name}: give {option} once for each port"
            )));
        }
        resolved.push((port, route.clone()));
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(ports: &str) -> Manifest {
        let text = format!("[app]\nname='t'\nversion='0.1.0'\nsummary='t'\ntop='t'\n{ports}");
        Manifest::parse("apps/t", &text).unwrap()
    }

    #[test]
    fn routes_are_read() {
        let route = |port: Option<&str>, endpoint: &str| {
            Ok(Route { port: port.map(str::to_owned), endpoint: endpoint.to_owned() })
        };
        assert_eq!("file:a".parse::<Route>(), route(None, "file:a"));
        assert_eq!("in=file:a".parse::<Route>(), route(Some("in"), "file:a"));
        assert_eq!("file:x=y:z".parse::<Route>(), route(None, "file:x=y:z"));
        assert_eq!("in=file:x=y".parse::<Route>(), route(Some("in"), "file:x=y"));
        assert_eq!("-".parse::<Route>(), route(None, "-"));
        assert_eq!("eth:".parse::<Route>(), route(None, "eth:"));
        assert_eq!("in=eth:".parse::<Route>(), route(Some("in"), "eth:"));
        assert_eq!("in=-".parse::<Route>(), route(Some("in"), "-"));
        for bad in ["", "a", "--", "-a", "file:", "in=", "in=a", ":a", "in=:a", "eth", "in=eth"] {
            assert!(bad.parse::<Route>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ports_are_found() {
        let app = app("[[stream_in]]\nname='left'\n[[stream_in]]\nname='right'\n[[memory]]\nname='mem'\n");
        let find = |routes: &[&str]| {
            let routes: Vec<Route> = routes.iter().map(|r| r.parse().unwrap()).collect();
            match resolve(&app, Way::In, &routes) {
                Ok(found) => found.into_iter().map(|(p, r)| format!("{p:?} {}", r.endpoint)).collect(),
                Err(e) => vec![e.message().to_owned()],
            }
        };
        assert_eq!(find(&["file:a"]), ["Stream(0) file:a"]);
        assert_eq!(
            find(&["right=file:a", "file:b", "mem=file:c"]),
            ["Stream(1) file:a", "Stream(0) file:b", "Memory file:c"]
        );
        assert_eq!(
            find(&["file:a", "left=file:b"]),
            ["two routes to port left: give --in once for each port"]
        );
        assert_eq!(find(&["rigth=file:a"]), ["app t has no input \"rigth\"; did you mean right?"]);
        assert_eq!(find(&["zzzzz=file:a"]), ["app t has no input \"zzzzz\"; there are left, right, mem"]);
        let routes = ["file:a".parse().unwrap()];
        assert_eq!(resolve(&app, Way::Out, &routes).unwrap(), [(Port::Memory, routes[0].clone())]);
    }
    #[test]
    fn an_input_with_lanes_takes_many_routes() {
        let app = app("[[stream_in]]\nname='in'\nlanes=8\n[[stream_out]]\nname='out'\n");
        let routes: Vec<Route> = ["file:a", "in=file:b", "file:a"].map(|r| r.parse().unwrap()).into();
        let found = resolve(&app, Way::In, &routes).unwrap();
        assert!(found.iter().all(|(port, _)| *port == Port::Stream(0)));
        assert_eq!(
            found.into_iter().map(|(_, route)| route.endpoint).collect::<Vec<_>>(),
            ["file:a", "file:b", "file:a"]
        );
        assert!(resolve(&app, Way::Out, &routes[..1]).is_ok());
        assert!(resolve(&app, Way::Out, &[routes[0].clone(), routes[0].clone()]).is_err());
    }
}

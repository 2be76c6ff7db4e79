//! Renders requests, probes and loads.

use std::time::Duration;

use super::Expander;
use super::scope::{Known, Reach};
use crate::diagnostic::{Code, Diagnostic, Span, Spanned, suggest};
use crate::plan::{
    AnswerExpect, Axes, Body, Chunked, JsonPath, Load, LoadRequest, LoadStop, Origin, Probe, Protocol, Request, Text,
};
use crate::scenario::{self, EntryName, Field, KeyKind};

const CHUNK: u64 = 16 << 10;
/// The longest body of a request, in bytes.
const MAX_BODY: u64 = 100 << 20;
/// What the generator can do: connections of a load, requests under way on each, the timeout, and requests a second.
const MAX_CONNECTIONS: u64 = 65_535;
const MAX_PIPELINE: u64 = 1024;
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
const MAX_RATE: f64 = 1e9;

impl Expander<'_> {
    pub(super) fn probes(&mut self) -> Vec<Probe> {
        let (scenario, catalog) = (self.scenario, self.catalog);
        let Some(entries) = &scenario.probes else { return Vec::new() };
        let known = Known { server: true, ..Known::default() };
        let mut probes = Vec::new();
        for instance in catalog.probes.list() {
            let Some(entry) = entries.get(catalog.probes.name_of(instance)) else { continue };
            let body = &entry.body;
            if !body.given.has("request") {
                self.missing("request", "the probe", entry.name.span);
            }
            let request = self.request(body.request.as_ref(), entry.name.span, &instance.axes);
            let expect = self.answer_expect(body, &instance.axes);
            let mut reach = self.reach(&instance.axes, known.clone());
            let probe = Probe {
                record: reach.list(body.record.as_ref()),
                same: reach.list(body.same.as_ref()),
                known_differences: reach
                    .list::<String>(body.known_differences.as_ref())
                    .iter()
                    .map(|name| name.to_lowercase())
                    .collect(),
                identity: self.identity(instance, &entry.name, &body.expand),
                request,
                expect,
                request_origin: Origin(body.given.at("request").unwrap_or(entry.name.span)),
            };
            if !probe.known_differences.is_empty() && probe.same.is_empty() {
                let span = body.given.at("known_differences").unwrap_or(entry.name.span);
                self.conflict(span, "`known_differences` belongs to a probe with `same`");
            }
            if !self.weigh(&probe) {
                break;
            }
            probes.push(probe);
        }
        probes
    }

    fn answer_expect(&mut self, probe: &scenario::Probe, axes: &Axes) -> AnswerExpect {
        let Some(expect) = &probe.expect else { return AnswerExpect::default() };
        let mut json_path = Vec::new();
        for entry in expect.json_path.iter().flatten() {
            match JsonPath::parse(&entry.name.value) {
                Ok(path) => {
                    let value = entry.body.get(&mut self.reach(axes, Known::default()));
                    json_path.extend(value.map(|value| (path, value)));
                }
                Err(message) => {
                    let message = format!("this is no JSON path (RFC 9535): {message}");
                    self.problems.push(Diagnostic::error(Code::InvalidPattern, entry.name.span, message));
                }
            }
        }
        let mut reach = self.reach(axes, Known { server: true, ..Known::default() });
        AnswerExpect {
            status: reach.opt(expect.status.as_ref()).and_then(|status| u16::try_from(status.0).ok()),
            bytes: reach.opt(expect.bytes.as_ref()).map(|size| size.0),
            body: reach.opt(expect.body.as_ref()),
            json: reach.opt(expect.json.as_ref()),
            json_path,
            matches: reach.opt(expect.matches.as_ref()),
            headers: headers(expect.headers.as_ref(), &mut reach),
            origin: probe.given.at("expect").map(Origin),
        }
    }

    /// A rendered request; GET / where there is none, which was then reported.
    fn request(&mut self, request: Option<&scenario::Request>, span: Span, axes: &Axes) -> Request {
        match request {
            None => Request {
                method: "GET".to_owned(),
                path: Text::from("/"),
                headers: Vec::new(),
                body: Body::Empty,
                chunked: None,
            },
            Some(scenario::Request::Line(line)) => {
                let line = line.get(&mut self.reach(axes, Known { server: true, ..Known::default() }));
                let (method, path) =
                    line.map_or_else(|| ("GET".to_owned(), Text::from("/")), |line| (line.method, line.path));
                Request { method, path, headers: Vec::new(), body: Body::Empty, chunked: None }
            }
            Some(scenario::Request::Table(table, place)) => {
                self.request_table(table, if place.start == place.end { span } else { *place }, axes)
            }
        }
    }

    fn request_table(&mut self, table: &scenario::RequestTable, span: Span, axes: &Axes) -> Request {
        if !table.given.has("path") {
            self.missing("path", "the request", span);
        }
        let bodies = ["body", "json", "body_repeat"].map(|key| (key, table.given.at(key)));
        self.at_most_one(&bodies);
        if let (Some(chunked), true) = (table.given.at("chunked"), bodies.iter().all(|(_, span)| span.is_none())) {
            self.conflict(chunked, "a request without a body cannot be sent in chunks");
        }
        let mut reach = self.reach(axes, Known { server: true, ..Known::default() });
        let repeated =
            table.body_repeat.as_ref().map(|repeat| (reach.opt(repeat.text.as_ref()), reach.opt(repeat.size.as_ref())));
        let body = match (&table.body, &table.json, repeated) {
            (Some(text), ..) => text.get(&mut reach).map_or(Body::Empty, Body::Text),
            (_, Some(json), _) => json.get(&mut reach).map_or(Body::Empty, Body::Json),
            (_, _, Some((Some(text), Some(size)))) => Body::Repeat { text, size: size.0 },
            _ => Body::Empty,
        };
        let chunked = match &table.chunked {
            Some(scenario::Chunked::Flag(flag)) => {
                flag.get(&mut reach).unwrap_or_default().then_some(Chunked { size: CHUNK, delay: Duration::ZERO })
            }
            Some(scenario::Chunked::Table(chunks)) => Some(Chunked {
                size: reach.opt(chunks.size.as_ref()).map_or(CHUNK, |size| size.0),
                delay: reach.opt(chunks.delay.as_ref()).unwrap_or_default(),
            }),
            None => None,
        };
        let method = reach.opt(table.method.as_ref()).map_or_else(|| "GET".to_owned(), |method| method.0);
        let path = reach.opt(table.path.as_ref()).map_or_else(|| Text::from("/"), |path| path.0);
        let headers = headers(table.headers.as_ref(), &mut reach);
        self.check_body(table, &body, chunked.as_ref(), span);
        Request { method, path, headers, body, chunked }
    }

    fn check_body(&mut self, table: &scenario::RequestTable, body: &Body, chunked: Option<&Chunked>, span: Span) {
        if let Some(repeat) = &table.body_repeat {
            for key in ["text", "size"] {
                if !repeat.given.has(key) {
                    self.missing(key, "`body_repeat`", table.given.at("body_repeat").unwrap_or(span));
                }
            }
        }
        let place = table.given.at("body_repeat").unwrap_or(span);
        match body {
            Body::Repeat { text, .. } if text.is_empty() => self.invalid(place, "an empty text cannot be repeated"),
            Body::Repeat { size, .. } if *size > MAX_BODY => self.invalid(place, "a body is at most 100 MiB"),
            _ => {}
        }
        if chunked.is_some_and(|chunked| chunked.size == 0) {
            self.invalid(table.given.at("chunked").unwrap_or(span), "a chunk has at least one byte");
        }
    }

    pub(super) fn invalid(&mut self, span: Span, message: impl Into<String>) {
        self.problems.push(Diagnostic::error(Code::InvalidValue, span, message));
    }

    pub(super) fn loads(&mut self) -> Vec<Load> {
        let (scenario, catalog) = (self.scenario, self.catalog);
        let Some(entries) = &scenario.loads else { return Vec::new() };
        let mut loads = Vec::new();
        for instance in catalog.loads.list() {
            let Some(entry) = entries.get(catalog.loads.name_of(instance)) else { continue };
            let body = &entry.body;
            let place = |key: &'static str| (key, body.given.at(key));
            self.exactly_one(&["duration", "count"].map(place), "the load", entry.name.span);
            self.exactly_one(&["request", "requests"].map(place), "the load", entry.name.span);
            let requests = self.load_requests(body, entry.name.span, &instance.axes);
            let mut reach = self.reach(&instance.axes, Known::default());
            let duration = reach.opt(body.duration.as_ref()).map(|duration| LoadStop::Duration(duration.0));
            let count = reach.opt(body.count.as_ref()).map(|count| LoadStop::Count(count.number()));
            let rate = reach.opt(body.rate.as_ref());
            let positive = |field: Option<&Field<scenario::Positive>>, reach: &mut Reach<'_>| {
                reach.opt(field).map_or(1, scenario::Whole::number)
            };
            let load = Load {
                requests,
                connections: positive(body.connections.as_ref(), &mut reach),
                stop: duration.or(count).unwrap_or(LoadStop::Count(1)),
                rate,
                pipeline: positive(body.pipeline.as_ref(), &mut reach),
                timeout: reach.opt(body.timeout.as_ref()).map_or(Duration::from_secs(10), |timeout| timeout.0),
                keep_alive: reach.opt(body.keep_alive.as_ref()).unwrap_or(true),
                protocol: reach.opt(body.protocol.as_ref()).unwrap_or(Protocol::Http1),
                threads: positive(body.threads.as_ref(), &mut reach),
                cpus: reach.opt(body.cpus.as_ref()).map(|cpus| cpus.0).unwrap_or_default(),
                identity: self.identity(instance, &entry.name, &body.expand),
            };
            let bounds = [
                ("connections", load.connections > MAX_CONNECTIONS, "a load has at most 65,535 connections"),
                ("pipeline", load.pipeline > MAX_PIPELINE, "at most 1,024 requests are under way on a connection"),
                ("timeout", load.timeout > MAX_TIMEOUT, "a timeout is at most an hour"),
                ("rate", rate.is_some_and(|rate| rate <= 0.0 || rate > MAX_RATE), "a rate is above 0, and at most 1e9"),
            ];
            for (key, broken, rule) in bounds {
                if broken {
                    self.invalid(body.given.at(key).unwrap_or(entry.name.span), rule);
                }
            }
            if let (false, Some(span)) = (load.keep_alive || load.pipeline == 1, body.given.at("pipeline")) {
                self.conflict(span, "`pipeline` needs connections that are kept: keep_alive = true");
            }
            if load.threads > load.connections {
                self.conflict(
                    body.given.at("threads").unwrap_or(entry.name.span),
                    "there are more threads than connections",
                );
            }
            if !self.weigh(&load) {
                break;
            }
            loads.push(load);
        }
        loads
    }

    fn load_requests(&mut self, load: &scenario::Load, span: Span, axes: &Axes) -> Vec<LoadRequest> {
        let good = |expect: Option<&scenario::LoadExpect>, reach: &mut Reach<'_>| {
            let status = expect.map(|expect| reach.list(expect.status.as_ref())).unwrap_or_default();
            let status: Vec<u16> =
                status.into_iter().filter_map(|status: scenario::Status| u16::try_from(status.0).ok()).collect();
            (status, expect.and_then(|expect| reach.opt(expect.bytes.as_ref())).map(|size| size.0))
        };
        let (status, bytes) = good(load.expect.as_ref(), &mut self.reach(axes, Known::default()));
        if let Some(request) = &load.request {
            let request = self.request(Some(request), span, axes);
            return vec![LoadRequest { name: None, weight: 1.0, request, status, bytes }];
        }
        let place = load.given.at("requests").unwrap_or(span);
        if load.requests.as_ref().is_some_and(Vec::is_empty) {
            self.invalid(place, "a mix has at least one request");
        }
        let mut seen: Vec<Spanned<String>> = Vec::new();
        let mut requests = Vec::new();
        for entry in load.requests.iter().flatten() {
            let at = ["name", "weight", "expect"].iter().find_map(|key| entry.given.at(key)).unwrap_or(place);
            let request = self.request_table(&entry.request, at, axes);
            let mut reach = self.reach(axes, Known::default());
            let name: Option<String> = reach.opt(entry.name.as_ref());
            let weight = reach.opt(entry.weight.as_ref()).unwrap_or(1.0);
            let own = entry.expect.as_ref().map(|expect| good(Some(expect), &mut reach));
            let (status, bytes) = own.unwrap_or_else(|| (status.clone(), bytes));
            if weight <= 0.0 {
                self.invalid(entry.given.at("weight").unwrap_or(at), "a weight is above 0");
            }
            match &name {
                None if !entry.given.has("name") => self.missing("name", "a request of a mix", at),
                Some(name) if !EntryName::is(name) => {
                    let wrong =
                        Diagnostic::error(Code::InvalidName, at, format!("`{name}` cannot be a request's name"));
                    self.problems.push(wrong.help(EntryName::RULE));
                }
                Some(name) => match seen.iter().find(|other| other.value == *name) {
                    Some(first) => {
                        let twice = Diagnostic::error(Code::Duplicate, at, format!("`{name}` is twice in the mix"));
                        self.problems.push(twice.also(first.span, "the first one"));
                    }
                    None => seen.push(Spanned::new(name.clone(), at)),
                },
                None => {}
            }
            requests.push(LoadRequest { name, weight, request, status, bytes });
        }
        requests
    }

    /// Says that `metric` is none that there is.
    pub(super) fn unknown_metric(&mut self, metric: &str, span: Span, known: &[&str]) {
        let message = format!("there is no metric `{metric}` here");
        self.problems.push(Diagnostic::error(Code::UnknownMetric, span, message).help(suggest(metric, known)));
    }
}

fn headers<K>(
    table: Option<&scenario::Keyed<K, Field<scenario::OneLine>>>,
    reach: &mut Reach<'_>,
) -> Vec<(String, Text)> {
    let members = table.into_iter().flatten();
    members.filter_map(|entry| Some((entry.name.value.clone(), entry.body.get(reach)?.0))).collect()
}

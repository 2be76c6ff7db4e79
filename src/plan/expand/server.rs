//! Renders servers, and finds what each needs.

use std::collections::HashMap;
use std::time::Duration;

use indexmap::IndexSet;

use super::Expander;
use super::process::Surroundings;
use super::scope::{Known, Reach};
use crate::diagnostic::{Code, Diagnostic, Span, Spanned};
use crate::plan::{
    At, Axes, Builtin, Launch, Origin, Port, Process, Ready, ReadyWhen, Server, ServerCapture, ServerCaptureFrom,
    Signal, Stdin, Stop, Text, Tls,
};
use crate::scenario;

/// Keys of a process that mean nothing where bakeoff starts its own server, or none.
const OF_COMMANDS: [&str; 6] = ["cwd", "env", "stdin", "user", "files", "timeout"];
/// Keys that mean nothing for a server that runs already.
const OF_STARTED: [&str; 5] = ["port", "before", "after", "stop", "caches"];

impl Expander<'_> {
    pub(super) fn servers(&mut self) -> Vec<Server> {
        let (scenario, catalog) = (self.scenario, self.catalog);
        let Some(entries) = &scenario.servers else { return Vec::new() };
        let mut servers = Vec::new();
        for instance in catalog.servers.list() {
            let Some(entry) = entries.get(catalog.servers.name_of(instance)) else { continue };
            let server = self.server(&entry.body, &entry.name, instance);
            if !self.weigh(&server) {
                break;
            }
            servers.push(server);
        }
        self.check_needs(&servers);
        servers
    }

    fn server(&mut self, body: &scenario::Server, name: &Spanned<String>, instance: &super::Instance) -> Server {
        let axes = &instance.axes;
        let needs = self.needs(body.needs.as_ref(), axes);
        let port = self.reach(axes, Known::default()).opt(body.port.as_ref()).unwrap_or(Port::Auto);
        // What listens nowhere has no port and no URL.
        let own = (port != Port::None).then(|| instance.id.clone());
        let known = Known { dir: true, own, needs: self.reachable(&needs), ..Known::default() };
        let launch = self.launch(body, name.span, axes, &known);
        let around = match &launch {
            Launch::Process(process) => Surroundings::from(process.as_ref()),
            Launch::Builtin(_) | Launch::Running(_) => Surroundings::default(),
        };
        let mut reach = self.reach(axes, known.clone());
        let port = match &launch {
            Launch::Running(url) => Port::Fixed(port_of(url)),
            _ => port,
        };
        let stop = Stop {
            signal: body.stop.as_ref().and_then(|stop| reach.opt(stop.signal.as_ref())).unwrap_or(Signal::Term),
            grace: body.stop.as_ref().and_then(|stop| reach.opt(stop.grace.as_ref())).unwrap_or(Duration::from_secs(5)),
        };
        let tls = body.tls.as_ref().map(|tls| Tls {
            ca: reach.opt(tls.ca.as_ref()),
            insecure: reach.opt(tls.insecure.as_ref()).unwrap_or_default(),
            origin: Origin(body.given.at("tls").unwrap_or(name.span)),
        });
        if let Some(tls) = &tls {
            self.check_tls(tls, &launch, port);
        }
        Server {
            ready: self.ready(body, name.span, (axes, &known), (&launch, port)),
            before: self.steps(body.before.as_ref(), &around, axes, &known),
            after: self.steps(body.after.as_ref(), &around, axes, &known),
            capture: self.server_captures(body, axes, &known, &launch),
            caches: self.cache_names(body.caches.as_ref(), axes),
            identity: self.identity(instance, name, &body.expand),
            launch,
            port,
            needs,
            stop,
            tls,
        }
    }

    /// What speaks TLS listens somewhere, and is not the embedded server.
    fn check_tls(&mut self, tls: &Tls, launch: &Launch, port: Port) {
        let span = tls.origin.0;
        if tls.ca.is_some() && tls.insecure {
            self.conflict(span, "`ca` and `insecure` exclude each other");
        }
        match launch {
            Launch::Builtin(_) => self.conflict(span, "the embedded server does not speak TLS"),
            Launch::Running(url) if url.starts_with("http://") => {
                self.conflict(span, "`tls` belongs to a server whose `url` begins with https://");
            }
            Launch::Process(_) if port == Port::None => {
                self.conflict(span, "a server that listens nowhere has no `tls`");
            }
            Launch::Process(_) | Launch::Running(_) => {}
        }
    }

    fn launch(&mut self, body: &scenario::Server, span: Span, axes: &Axes, known: &Known) -> Launch {
        let place = |key: &'static str| (key, body.process.given.at(key).or_else(|| body.given.at(key)));
        self.exactly_one(&["command", "shell", "builtin", "url"].map(place), "the server", span);
        if let Some(span) = body.process.given.at("timeout") {
            self.conflict(span, "a server has no `timeout`: there are `ready.timeout` and `stop.grace`");
        }
        if let Some(url) = &body.url {
            let foreign = OF_COMMANDS
                .iter()
                .chain(&OF_STARTED)
                .chain(&["cpus"])
                .filter_map(|key| place(key).1.map(|span| (*key, span)));
            for (key, span) in foreign.collect::<Vec<_>>() {
                self.conflict(span, format!("`{key}` means nothing for a server that runs already"));
            }
            let url = url.get(&mut self.reach(axes, known.clone())).map(|url| url.0);
            return Launch::Running(url.unwrap_or_default());
        }
        if let Some(builtin) = &body.builtin {
            for (key, span) in
                OF_COMMANDS.iter().filter_map(|key| place(key).1.map(|span| (*key, span))).collect::<Vec<_>>()
            {
                self.conflict(span, format!("`{key}` means nothing for the embedded server"));
            }
            let mut reach = self.reach(axes, known.clone());
            return Launch::Builtin(Builtin {
                delay: reach.opt(builtin.delay.as_ref()).unwrap_or_default(),
                body: reach.opt(builtin.body.as_ref()).map(|size| size.0),
                cpus: reach.opt(body.process.cpus.as_ref()).map(|cpus| cpus.0).unwrap_or_default(),
            });
        }
        let process = if body.process.given.has("command") || body.process.given.has("shell") {
            self.server_process(&body.process, span, axes, known.clone())
        } else {
            no_process(span)
        };
        Launch::Process(Box::new(process))
    }

    fn ready(
        &mut self,
        body: &scenario::Server,
        span: Span,
        site: (&Axes, &Known),
        (launch, port): (&Launch, Port),
    ) -> Ready {
        let (axes, known) = site;
        let mut rendered = Ready {
            when: ReadyWhen::Tcp,
            timeout: Duration::from_secs(30),
            interval: Duration::from_millis(1),
            origin: Origin(body.given.at("ready").unwrap_or(span)),
        };
        let place = rendered.origin.0;
        if let Some(ready) = &body.ready {
            let forms = ["tcp", "http", "output", "command"].map(|key| (key, ready.given.at(key)));
            self.at_most_one(&forms);
            if let (Some(span), None) = (ready.given.at("status"), ready.given.at("http")) {
                self.conflict(span, "`status` belongs to ready = { http = \"/path\" }");
            }
            let around = match launch {
                Launch::Process(process) => Some(process.as_ref().clone()),
                _ => None,
            };
            let mut reach = self.reach(axes, known.clone());
            rendered.when = ready_when(ready, around.as_ref(), place, &mut reach);
            rendered.timeout = reach.opt(ready.timeout.as_ref()).map_or(rendered.timeout, |timeout| timeout.0);
            rendered.interval = reach.opt(ready.interval.as_ref()).map_or(rendered.interval, |interval| interval.0);
            if ready.tcp.as_ref().is_some_and(|_| reach.opt(ready.tcp.as_ref()) == Some(false)) {
                self.invalid(ready.given.at("tcp").unwrap_or(place), "`tcp` is true or absent");
            }
        }
        if port == Port::None && matches!(rendered.when, ReadyWhen::Tcp | ReadyWhen::Http { .. }) {
            let message = "a server that listens nowhere is ready by `output` or `command`";
            let wrong = Diagnostic::error(Code::Conflict, place, message);
            self.problems.push(wrong.help("say how it is known to be ready: ready = { output = 'ready' }"));
        }
        if let (Launch::Running(_), ReadyWhen::Output(_)) = (launch, &rendered.when) {
            self.conflict(place, "the output of a server that runs already cannot be seen");
        }
        rendered
    }

    fn server_captures(
        &mut self,
        body: &scenario::Server,
        axes: &Axes,
        known: &Known,
        launch: &Launch,
    ) -> indexmap::IndexMap<String, ServerCapture> {
        let mut captures = indexmap::IndexMap::new();
        for entry in body.capture.iter().flatten() {
            let capture = &entry.body;
            let forms = ["output", "http"].map(|key| (key, capture.given.at(key)));
            if let (Launch::Running(_), Some(place)) = (launch, capture.given.at("output")) {
                self.conflict(place, "the output of a server that runs already cannot be seen");
            }
            self.exactly_one(&forms, "the capture", entry.name.span);
            match (capture.given.at("http"), capture.given.at("json")) {
                (Some(span), None) => self.missing("json", "a capture over HTTP", span),
                (None, Some(span)) => self.conflict(span, "`json` belongs to a capture with `http`"),
                _ => {}
            }
            let mut reach = self.reach(axes, known.clone());
            let http = reach.opt(capture.http.as_ref()).zip(reach.opt(capture.json.as_ref()));
            let from = match http {
                Some((path, json)) => Some(ServerCaptureFrom::Http { path: path.0, json }),
                None => reach.opt(capture.output.as_ref()).map(ServerCaptureFrom::Output),
            };
            let at = reach.opt(capture.at.as_ref()).unwrap_or(At::After);
            let unit = reach.opt(capture.unit.as_ref());
            if let Some(from) = from {
                let capture = ServerCapture { from, at, unit, origin: Origin(entry.name.span) };
                captures.insert(entry.name.value.clone(), capture);
            }
        }
        captures
    }

    /// Ids of the servers that `references` name, joined with `axes`: each must be left with one.
    pub(super) fn needs(&mut self, references: Option<&scenario::References>, axes: &Axes) -> Vec<String> {
        let references: Vec<Spanned<String>> = self.reach(axes, Known::default()).list(references);
        let catalog = self.catalog;
        let mut ids = IndexSet::new();
        for reference in references {
            if catalog.servers.exhausted() {
                break;
            }
            let Some(selected) = catalog.servers.select(&reference, axes, self.problems) else { continue };
            match selected.as_slice() {
                [one] => {
                    ids.insert(catalog.servers.get(*one).id.clone());
                }
                [] => self.empty_join("server", &reference, axes),
                [first, second, ..] => {
                    let (first, second) = (&catalog.servers.get(*first).id, &catalog.servers.get(*second).id);
                    let message =
                        format!("`{}` is more than one server here: `{first}`, `{second}`, …", reference.value);
                    let help = format!("name one of them, such as `{first}`, or share the axis");
                    self.problems.push(Diagnostic::error(Code::AmbiguousJoin, reference.span, message).help(help));
                }
            }
        }
        ids.into_iter().collect()
    }

    /// Says that a join leaves nothing of `reference`.
    pub(super) fn empty_join(&mut self, kind: &str, reference: &Spanned<String>, axes: &Axes) {
        let values: Vec<String> = axes.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
        let message = format!("the join leaves no {kind} of `{}` where {}", reference.value, values.join(", "));
        let help = "what is joined agrees on the axes that both expand over";
        self.problems.push(Diagnostic::error(Code::EmptyExpansion, reference.span, message).help(help));
    }

    /// What `servers.NAME` can mean where servers with these ids are needed, through others too: ids, and names that are
    /// left with one.
    pub(super) fn reachable(&mut self, needs: &[String]) -> HashMap<String, String> {
        let (scenario, catalog) = (self.scenario, self.catalog);
        let mut ids: IndexSet<String> = IndexSet::new();
        let mut open: Vec<String> = needs.to_vec();
        while let Some(id) = open.pop() {
            if ids.contains(&id) {
                continue;
            }
            if let Some(instance) = catalog.servers.find(&id) {
                let entry =
                    scenario.servers.as_ref().and_then(|servers| servers.get(catalog.servers.name_of(instance)));
                open.extend(self.needs(entry.and_then(|entry| entry.body.needs.as_ref()), &instance.axes));
            }
            ids.insert(id);
        }
        let mut names: HashMap<String, Option<String>> = HashMap::new();
        for id in &ids {
            let name = id.split('/').next().unwrap_or(id).to_owned();
            names.entry(name).and_modify(|known| *known = None).or_insert_with(|| Some(id.clone()));
        }
        let names = names.into_iter().filter_map(|(name, id)| Some((name, id?)));
        ids.iter().map(|id| (id.clone(), id.clone())).chain(names).collect()
    }

    /// No server needs itself, not even by way of others.
    fn check_needs(&mut self, servers: &[Server]) {
        let index: HashMap<&str, usize> =
            servers.iter().enumerate().map(|(at, server)| (server.identity.id.as_str(), at)).collect();
        // 0: not seen, 1: on the way, 2: done.
        let mut state = vec![0_u8; servers.len()];
        for start in 0..servers.len() {
            let mut path: Vec<(usize, usize)> = if state[start] == 0 { vec![(start, 0)] } else { Vec::new() };
            while let Some((at, next)) = path.last_mut() {
                state[*at] = 1;
                let Some(need) = servers[*at].needs.get(*next) else {
                    state[*at] = 2;
                    path.pop();
                    continue;
                };
                *next += 1;
                let Some(need) = index.get(need.as_str()).copied() else { continue };
                if state[need] == 1 {
                    let from = path.iter().position(|(at, _)| *at == need).unwrap_or(0);
                    let cycle: Vec<usize> = path[from..].iter().map(|(at, _)| *at).collect();
                    self.needs_cycle(servers, &cycle);
                } else if state[need] == 0 {
                    path.push((need, 0));
                }
            }
        }
    }

    fn needs_cycle(&mut self, servers: &[Server], cycle: &[usize]) {
        let scenario = self.scenario;
        let place = |at: usize| {
            let server = &servers[at].identity;
            let entry = scenario.servers.as_ref().and_then(|servers| servers.get(&server.name));
            entry.and_then(|entry| entry.body.given.at("needs")).unwrap_or(server.origin.0)
        };
        let names: Vec<&str> = cycle.iter().chain(&cycle[..1]).map(|at| servers[*at].identity.id.as_str()).collect();
        let message = format!("servers need each other in a circle: {}", names.join(" → "));
        let mut problem = Diagnostic::error(Code::NeedsCycle, place(cycle[0]), message);
        for next in &cycle[1..] {
            problem = problem.also(place(*next), "by way of this");
        }
        self.problems.push(problem);
    }
}

fn ready_when(ready: &scenario::Ready, around: Option<&Process>, span: Span, reach: &mut Reach<'_>) -> ReadyWhen {
    if let Some(path) = reach.opt(ready.http.as_ref()) {
        let status = reach.opt(ready.status.as_ref()).and_then(|status| u16::try_from(status.0).ok());
        return ReadyWhen::Http { path: path.0, status: status.unwrap_or(200) };
    }
    if let Some(pattern) = reach.opt(ready.output.as_ref()) {
        return ReadyWhen::Output(pattern);
    }
    let Some(argv) = reach.opt(ready.command.as_ref()) else { return ReadyWhen::Tcp };
    let base = around.cloned().unwrap_or_else(|| no_process(span));
    ReadyWhen::Command(Box::new(Process {
        argv: argv.0,
        stdin: Stdin::Nothing,
        files: indexmap::IndexMap::new(),
        files_origin: None,
        cpus: Vec::new(),
        timeout: Some(Duration::from_secs(10)),
        origin: Origin(span),
        ..base
    }))
}

/// A process with nothing in it.
fn no_process(span: Span) -> Process {
    Process {
        argv: Vec::<Text>::new(),
        cwd: None,
        env: indexmap::IndexMap::new(),
        stdin: Stdin::Nothing,
        user: None,
        cpus: Vec::new(),
        timeout: None,
        files: indexmap::IndexMap::new(),
        origin: Origin(span),
        files_origin: None,
        user_origin: None,
    }
}

/// The port of a URL that was checked.
fn port_of(url: &str) -> u16 {
    let (default, rest) = match url.strip_prefix("https://") {
        Some(rest) => (443, rest),
        None => (80, url.strip_prefix("http://").unwrap_or(url)),
    };
    let port = rest.rsplit_once(':').filter(|_| !rest.ends_with(']')).and_then(|(_, port)| port.parse().ok());
    port.unwrap_or(default)
}

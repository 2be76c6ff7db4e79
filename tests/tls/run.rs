//! Whole runs with servers that speak TLS: probes and loads, and what is said where the certificate is not checked.

use serde_json::Value as Json;

use super::file;
use super::program::{result, run, scenario, stderr};
use super::secure::{Authority, Identity, LOCAL, Secure};

/// Runs a probe and a load on a server whose `tls` says this; gives the exit code, stderr and the result.
fn ran(server: &Secure, tls: &str) -> (Option<i32>, String, Json) {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        r#"
        format = 1
        name = "secure"
        [servers.s]
        url = "{}"
        {tls}
        ready = {{ http = "/ready", timeout = "5s" }}
        [probes.p]
        request = "GET /probed"
        expect = {{ status = 200, body = "GET /probed HTTP/1.1" }}
        [loads.l]
        request = "GET /loaded"
        connections = 3
        count = 50
        [measures.m]
        servers = ["s"]
        probes = ["p"]
        load = "l"
        starts = 1
        warmup = 0
        "#,
        server.url()
    );
    let out = folder.path().join("out");
    let output = run(&["run", &scenario(folder.path(), &text), "--out", out.to_str().unwrap(), "--quiet"]);
    (output.status.code(), stderr(&output), result(&out))
}

/// A server that answers with the first line of each request.
fn telling(identity: &Identity) -> Secure {
    Secure::start(identity, &["http/1.1"], |head| super::ok(head.lines().next().unwrap_or_default()))
}

fn codes(result: &Json) -> Vec<&str> {
    result["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

#[test]
fn a_private_authority_is_believed_by_readiness_probes_and_loads() {
    let authority = Authority::new("private");
    let server = telling(&authority.issue(&LOCAL));
    let (_folder, path) = file(&authority.pem());
    let (exit, said, result) = ran(&server, &format!("tls = {{ ca = {:?} }}", path.to_str().unwrap()));
    assert_eq!(exit, Some(0), "{said}");
    let metrics = &result["runs"][0]["metrics"];
    assert_eq!((metrics["requests"].as_f64(), metrics["errors.total"].as_f64()), (Some(50.0), Some(0.0)));
    assert!(!codes(&result).contains(&"tls-insecure"));
    // One connection for readiness, one for each probe, three for the load.
    assert_eq!(server.handshakes().len(), 6);
}

#[test]
fn what_is_not_checked_is_said() {
    let server = telling(&Identity::self_signed(&["elsewhere.test"], false));
    let (exit, said, result) = ran(&server, "tls = { insecure = true }");
    assert_eq!(exit, Some(0), "{said}");
    assert!(codes(&result).contains(&"tls-insecure"), "{:?}", codes(&result));
}

#[test]
fn a_server_that_is_not_believed_fails_its_cell_and_says_why() {
    let server = telling(&Authority::new("unknown").issue(&LOCAL));
    let (_folder, path) = file(&Authority::new("other").pem());
    let (exit, said, _) = ran(&server, &format!("tls = {{ ca = {:?} }}", path.to_str().unwrap()));
    assert_eq!(exit, Some(1));
    assert!(said.contains("the certificate is not trusted"), "{said}");
}

//! What is believed: files of certificates, and the names of hosts.

use bakeoff::trust::{Error, Trust, server_name};

use super::file;
use super::secure::{Authority, LOCAL};

/// Why a file with this text gives nothing to believe, without its path.
fn wrong(text: &str) -> String {
    let (_folder, path) = file(text);
    let error = Trust::Authority(path.clone()).config(&[]).unwrap_err();
    error.to_string().replace(path.to_str().unwrap(), "FILE")
}

#[test]
fn files_that_give_nothing_to_believe_say_why() {
    assert_eq!(wrong(""), "FILE holds no certificate in PEM form");
    assert_eq!(wrong("\u{1}\u{2}"), "FILE holds no certificate in PEM form");
    let authority = Authority::new("a");
    assert_eq!(wrong(&authority.issue(&LOCAL).key_pem()), "FILE holds no certificate in PEM form");
    let pem = authority.pem();
    let (start, _) = pem.split_once("-----END").unwrap();
    assert_eq!(wrong(start), "FILE holds a damaged certificate: it breaks off before its END line");
    let torn = pem.replacen("MII", "M!I", 1);
    assert_ne!(torn, pem);
    assert_eq!(wrong(&torn), "FILE holds a damaged certificate: what stands between BEGIN and END is no base64");
    // The first byte of a certificate says that it is a sequence (0x30).
    let other = pem.replacen("\nMI", "\nAI", 1);
    assert_ne!(other, pem);
    assert_eq!(wrong(&other), "FILE holds a damaged certificate: the certificate cannot be read");
    assert_eq!(wrong(&format!("{pem}{other}")), "FILE holds a damaged certificate: the certificate cannot be read");
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let error = Trust::Authority("/no/such/file.pem".into()).config(&[]).unwrap_err();
    assert_eq!(error.to_string(), "/no/such/file.pem: No such file or directory (os error 2)");
    assert!(matches!(error, Error::Unreadable { .. }));
    assert!(matches!(Trust::Authority("/dev".into()).config(&[]), Err(Error::Unreadable { .. })));
    // One without an end.
    let error = Trust::Authority("/dev/zero".into()).config(&[]).unwrap_err();
    assert_eq!(error.to_string(), "/dev/zero: it is larger than 16 MiB");
}

#[test]
fn a_config_offers_the_protocols_in_their_order() {
    let (_folder, path) = file(&format!("text before\n{}{}", Authority::new("a").pem(), Authority::new("a").pem()));
    for trust in [Trust::Authority(path), Trust::Anything] {
        let config = trust.config(&[b"h2", b"http/1.1"]).unwrap();
        assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    }
}

#[test]
fn hosts_are_names_or_addresses() {
    for host in ["localhost", "127.0.0.1", "::1", "a.example.org"] {
        assert_eq!(server_name(host).unwrap().to_str(), host);
    }
    for host in ["", "[::1]", "a b", "a:1", "bücher.example"] {
        let error = server_name(host).unwrap_err();
        assert_eq!(error.to_string(), format!("{host:?} is no name that a certificate could be for"));
    }
}

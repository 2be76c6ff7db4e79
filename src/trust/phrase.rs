//! What a user is told of a TLS connection that failed.

use std::error::Error;
use std::io;
use std::time::{Duration, UNIX_EPOCH};

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, InvalidMessage, PeerIncompatible};

/// How many names of a certificate are told.
const NAMES: usize = 5;

/// What went wrong, as the end of a sentence: `the certificate is not trusted: its issuer is unknown`. None where neither
/// the error nor what caused it is one of TLS: then the connection failed in another way.
#[must_use]
pub fn phrase(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(of_tls(error));
        }
        // An error within one of the system is passed over by its `source`.
        let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = within.map(|error| error as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

const NO_TLS: &str = "the other side does not speak TLS";
const NO_VERSION: &str = "there is no version of TLS in common: 1.2 and 1.3 are spoken here";
const NO_PROTOCOL: &str = "the other side speaks none of the protocols that were offered";

fn of_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => format!("the certificate {}", of_certificate(error)),
        rustls::Error::NoCertificatesPresented => "the other side shows no certificate".to_owned(),
        rustls::Error::InvalidMessage(
            InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::MessageTooLarge
            | InvalidMessage::InvalidEmptyPayload,
        )
        | rustls::Error::PeerSentOversizedRecord => NO_TLS.to_owned(),
        rustls::Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13 | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => NO_VERSION.to_owned(),
        rustls::Error::NoApplicationProtocol => NO_PROTOCOL.to_owned(),
        rustls::Error::General(text) => text.clone(),
        rustls::Error::AlertReceived(alert) => of_alert(*alert),
        other => format!("the handshake failed: {other}"),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::ProtocolVersion => NO_VERSION.to_owned(),
        AlertDescription::NoApplicationProtocol => NO_PROTOCOL.to_owned(),
        AlertDescription::CertificateRequired => "the other side asks for a certificate of the client".to_owned(),
        AlertDescription::UnrecognisedName => "the other side has nothing for this name".to_owned(),
        other => format!("the other side refused with the alert {other:?}"),
    }
}

/// What is wrong with a certificate, beginning with a verb.
fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => "is not trusted: its issuer is unknown".to_owned(),
        CertificateError::BadSignature => {
            "is not trusted: an authority of its issuer's name is known, but with another key".to_owned()
        }
        CertificateError::Expired => "has expired".to_owned(),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("has expired: it was valid until {}", at(*not_after))
        }
        CertificateError::NotValidYet => "is not valid yet".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("is not valid yet: it will be from {} on", at(*not_before))
        }
        CertificateError::NotValidForName => "is for another name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("is not valid for {}: {}", expected.to_str(), of_names(presented))
        }
        CertificateError::Revoked => "has been revoked".to_owned(),
        CertificateError::BadEncoding => "cannot be read".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is not meant for servers".to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "is signed in a way that is not supported".to_owned()
        }
        CertificateError::Other(other) => match other.to_string().as_str() {
            "UnsupportedCertVersion" => "is of an old version: X.509 version 3 is needed".to_owned(),
            "CaUsedAsEndEntity" => "is one of an authority, not of a server".to_owned(),
            other => format!("cannot be used: {other}"),
        },
        other => format!("cannot be used: {other}"),
    }
}

/// Whom a certificate is for, by names such as `DnsName("localhost")` and `IpAddress(127.0.0.1)`.
fn of_names(presented: &[String]) -> String {
    let plain = |name: &String| {
        let bare = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
        bare.trim_matches('"').escape_debug().to_string()
    };
    let names: Vec<String> = presented.iter().take(NAMES).map(plain).collect();
    match presented.len() {
        0 => "it names no host as a subject alternative name".to_owned(),
        count if count > NAMES => format!("it is for {} and {} more", names.join(", "), count - NAMES),
        _ => format!("it is for {}", names.join(", ")),
    }
}

fn at(time: UnixTime) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(time.as_secs())).to_string()
}

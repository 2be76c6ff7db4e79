//! Which certificates are believed, and what is said of a connection that cannot be trusted.
//!
//! In: a [`Trust`] and the protocols that are offered (ALPN). Out: the [`ClientConfig`] that every TLS connection is made
//! with, the [`server_name`] of a host, and, of a failed connection, a [`phrase()`] for people. TLS 1.2 and 1.3 are spoken.
//!
//! Every connection makes a whole handshake: no session is resumed, so that none is cheaper than the one before it.
//!
//! To add something that can be trusted, add it to [`Trust`] and to `verifier`; what verifies stands in `trust/verify`.

mod phrase;
mod verify;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

pub use phrase::phrase;

/// The largest file of certificates that is read, in bytes: the bundles of systems have a quarter of one MiB.
const BOUND: u64 = 16 << 20;

/// Which certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// What the system's root certificates vouch for. SSL_CERT_FILE and SSL_CERT_DIR name others.
    System,
    /// What the certificates of this PEM file vouch for, and these themselves.
    Authority(PathBuf),
    /// Any certificate. That the other side has the key of the one it shows is still checked.
    Anything,
}

/// Why it is not known what to believe.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file without a certificate.
    #[error("{} holds no certificate in PEM form", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A file with a certificate that cannot be understood.
    #[error("{} holds a damaged certificate: {text}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        text: String,
    },
    /// The system has no root certificates, or they cannot be read.
    #[error("no root certificate of this system can be read: {text}")]
    NoSystemRoots {
        /// Why.
        text: String,
    },
    /// A host that no certificate could be for.
    #[error("{host:?} is no name that a certificate could be for")]
    Name {
        /// The host as given.
        host: String,
    },
}

impl Trust {
    /// What a client needs that offers these protocols, such as `http/1.1`, in this order of preference. Files are read
    /// each time.
    ///
    /// # Errors
    /// Every variant of [`Error`] but `Name`.
    pub fn config(&self, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, Error> {
        let provider = Arc::new(ring::default_provider());
        let verifier = self.verifier(&provider)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has ciphers for TLS 1.2 and 1.3")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        let chains = |roots| WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
        match self {
            Trust::System => {
                let chains = chains(system()?).map_err(|error| Error::NoSystemRoots { text: error.to_string() })?;
                Ok(Arc::new(verify::Named::new(chains, Vec::new())))
            }
            Trust::Authority(path) => {
                let (roots, own) = authority(path)?;
                let chains = chains(roots).map_err(|_| Error::NoCertificate { path: path.clone() })?;
                Ok(Arc::new(verify::Named::new(chains, own)))
            }
            Trust::Anything => Ok(Arc::new(verify::Anything::new(provider.signature_verification_algorithms))),
        }
    }
}

/// The name under which a host is asked for its certificate: a DNS name, or an IP address (without brackets).
///
/// # Errors
/// [`Error::Name`].
pub fn server_name(host: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(host.to_owned()).map_err(|_| Error::Name { host: host.to_owned() })
}

/// The system's root certificates. One that cannot be understood, as old systems have them, is left out.
fn system() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let text = match found.errors.first() {
            Some(error) => error.to_string(),
            None => "there is none where they are looked for, and SSL_CERT_FILE names no file with one".to_owned(),
        };
        return Err(Error::NoSystemRoots { text });
    }
    Ok(roots)
}

/// The certificates of a file, as roots and as they are.
fn authority(path: &Path) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), Error> {
    let damaged = |text: String| Error::Damaged { path: path.to_owned(), text };
    let bytes = read(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
    let own = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let own = own.map_err(|error| damaged(in_words(&error)))?;
    let mut roots = RootCertStore::empty();
    for certificate in &own {
        roots.add(certificate.clone()).map_err(|error| damaged(phrase(&error).unwrap_or_default()))?;
    }
    if own.is_empty() {
        return Err(Error::NoCertificate { path: path.to_owned() });
    }
    Ok((roots, own))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BOUND + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BOUND {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 16 MiB"));
    }
    Ok(bytes)
}

/// What is wrong with the form of a file.
fn in_words(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "it breaks off before its END line".to_owned(),
        pem::Error::IllegalSectionStart { .. } => "its BEGIN line is not whole".to_owned(),
        pem::Error::Base64Decode(_) => "what stands between BEGIN and END is no base64".to_owned(),
        other => other.to_string(),
    }
}

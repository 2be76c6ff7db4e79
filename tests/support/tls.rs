//! A TLS server of tests, and certificates for it: made by an authority or by themselves, good ones and bad ones.
//!
//! It shares no code with the crate. Connections end by themselves once the server is dropped.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The names of a certificate that is good for a server of this machine.
pub(crate) const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Who vouches for certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

fn parameters(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

impl Authority {
    /// Makes one of this name.
    pub(crate) fn new(name: &str) -> Self {
        let mut parameters = parameters(&[]);
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its certificate.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for these names, DNS or IP.
    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        self.sign(&parameters(names))
    }

    /// One that is good for this machine and was valid until 2020-01-01.
    pub(crate) fn issue_expired(&self) -> Identity {
        let mut parameters = parameters(&LOCAL);
        parameters.not_after = date_time_ymd(2020, 1, 1);
        self.sign(&parameters)
    }

    fn sign(&self, parameters: &CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        Identity::of(&parameters.signed_by(&key, &self.0).unwrap(), key)
    }
}

impl Identity {
    /// One for these names that vouches for itself; if asked to, it says that it is an authority.
    pub(crate) fn self_signed(names: &[&str], is_authority: bool) -> Self {
        let mut parameters = parameters(names);
        if is_authority {
            parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        Self::of(&parameters.self_signed(&key).unwrap(), key)
    }

    fn of(certificate: &rcgen::Certificate, key: KeyPair) -> Self {
        Self { certificate: certificate.der().clone(), pem: certificate.pem(), key }
    }

    /// The same certificate with these bytes instead, which need not be one.
    pub(crate) fn showing(self, bytes: &[u8]) -> Self {
        Self { certificate: bytes.to_vec().into(), ..self }
    }

    /// The same certificate with another key than its own.
    pub(crate) fn with_another_key(self) -> Self {
        Self { key: KeyPair::generate().unwrap(), ..self }
    }

    /// A server that shows it, and agrees on the first of these protocols that a client offers; without any, on none.
    pub(crate) fn config(&self, protocols: &[&str]) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::from_pem_slice(self.key_pem().as_bytes()).unwrap();
        let key = provider.key_provider.load_private_key(key).unwrap();
        // Whether the two belong together is not asked.
        let shown = SingleCertAndKey::from(CertifiedKey::new(vec![self.certificate.clone()], key));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(shown));
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// The certificate.
    pub(crate) fn pem(&self) -> String {
        self.pem.clone()
    }

    /// Its key.
    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }
}

/// A connection whose handshake is done.
pub(crate) type Session = StreamOwned<ServerConnection, TcpStream>;

/// What a handshake came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handshake {
    /// The name that was asked for (SNI).
    pub(crate) name: Option<String>,
    /// The protocol that was agreed on (ALPN).
    pub(crate) protocol: Option<String>,
    /// Whether it was a whole one, no session resumed.
    pub(crate) is_whole: bool,
}

struct Inner {
    config: Arc<ServerConfig>,
    serve: Box<dyn Fn(Session) + Send + Sync>,
    handshakes: Mutex<Vec<Handshake>>,
    over: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

/// A server on a free port of 127.0.0.1.
pub(crate) struct Secure {
    pub(crate) address: SocketAddr,
    inner: Arc<Inner>,
    accepting: Option<JoinHandle<()>>,
}

impl Secure {
    /// Starts one that speaks HTTP/1.1 without bodies of requests: a head (without its empty line) gets these bytes.
    pub(crate) fn start(
        identity: &Identity,
        protocols: &[&str],
        answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::with_sessions(identity, protocols, move |mut session| {
            while let Some(head) = read_head(&mut session) {
                if session.write_all(&answer(&head)).and_then(|()| session.flush()).is_err() {
                    break;
                }
            }
        })
    }

    /// Starts one that does this with each connection. It agrees on the first of `protocols` that a client offers; without
    /// any, on none.
    pub(crate) fn with_sessions(
        identity: &Identity,
        protocols: &[&str],
        serve: impl Fn(Session) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            config: identity.config(protocols),
            serve: Box::new(serve),
            handshakes: Mutex::default(),
            over: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let its = Arc::clone(&inner);
        let accepting = std::thread::spawn(move || accept(&listener, &its));
        Self { address, inner, accepting: Some(accepting) }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The handshakes that were done, in the order of their ends.
    pub(crate) fn handshakes(&self) -> Vec<Handshake> {
        self.inner.handshakes.lock().unwrap().clone()
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.inner.over.store(true, SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
        for stream in self.inner.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, inner: &Arc<Inner>) {
    while let Ok((stream, _)) = listener.accept() {
        if inner.over.load(SeqCst) {
            break;
        }
        stream.set_nodelay(true).unwrap();
        inner.streams.lock().unwrap().push(stream.try_clone().unwrap());
        let inner = Arc::clone(inner);
        std::thread::spawn(move || {
            // The clones of a stream keep its connection alive.
            let end = stream.try_clone().unwrap();
            shake(stream, &inner);
            let _ = end.shutdown(Shutdown::Both);
        });
    }
}

/// Does the handshake and what follows. A client that refuses the certificate ends it.
fn shake(mut stream: TcpStream, inner: &Inner) {
    let mut connection = ServerConnection::new(Arc::clone(&inner.config)).unwrap();
    while connection.is_handshaking() {
        if connection.complete_io(&mut stream).is_err() {
            return;
        }
    }
    let handshake = Handshake {
        name: connection.server_name().map(str::to_owned),
        protocol: connection.alpn_protocol().map(|name| String::from_utf8(name.to_vec()).unwrap()),
        is_whole: connection.handshake_kind() != Some(rustls::HandshakeKind::Resumed),
    };
    inner.handshakes.lock().unwrap().push(handshake);
    (inner.serve)(StreamOwned::new(connection, stream));
}

/// Reads the head of a request; none at the end of the connection.
pub(crate) fn read_head(session: &mut Session) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        session.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    head.truncate(head.len() - 4);
    Some(String::from_utf8(head).unwrap())
}

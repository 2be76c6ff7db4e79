//! What looks at the certificate that a server shows.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Believes what certain certificates vouch for, and those of `own` themselves when a server shows one of them.
///
/// That is what a self-signed certificate needs: as `openssl req -x509` makes it, it says of itself that it is an
/// authority, and a chain may not end in one of these.
#[derive(Debug)]
pub(super) struct Named {
    chains: Arc<WebPkiServerVerifier>,
    own: Vec<CertificateDer<'static>>,
}

impl Named {
    pub(super) fn new(chains: Arc<WebPkiServerVerifier>, own: Vec<CertificateDer<'static>>) -> Self {
        Self { chains, own }
    }
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            // The time is looked at before the kind of certificate and its issuer are, and has an error of its own.
            Err(Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_),
            )) if self.own.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        of_handshake(self.chains.verify_tls12_signature(message, cert, dss))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        of_handshake(self.chains.verify_tls13_signature(message, cert, dss))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// Believes any certificate. The signature that shows that the server has its key is checked, unless the certificate is of
/// a form that cannot be read (version 1, as old instructions make them).
#[derive(Debug)]
pub(super) struct Anything {
    algorithms: WebPkiSupportedAlgorithms,
}

impl Anything {
    pub(super) fn new(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { algorithms }
    }
}

/// The verdict on the signature of a handshake. A wrong one has the error of a certificate that its issuer did not sign, and
/// is another thing.
fn of_handshake(verdict: Result<HandshakeSignatureValid, Error>) -> Result<HandshakeSignatureValid, Error> {
    verdict.map_err(|error| match error {
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            Error::General("the other side does not have the key of the certificate that it shows".to_owned())
        }
        other => other,
    })
}

/// Whether it can be known which key a certificate is for.
fn has_known_key(certificate: &CertificateDer<'_>) -> bool {
    ParsedCertificate::try_from(certificate).is_ok()
}

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if !has_known_key(cert) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        of_handshake(verify_tls12_signature(message, cert, dss, &self.algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if !has_known_key(cert) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        of_handshake(verify_tls13_signature(message, cert, dss, &self.algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

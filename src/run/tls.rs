//! Which certificates are believed of a server: what its `tls` says, and the system's where only its URL is https.

use super::blame::failure;
use super::fill::Names;
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::{Server, Tls};
use crate::trust::{self, Trust};

/// What is believed of a server; none where it speaks no TLS.
pub(super) fn trust(server: &Server, names: &Names<'_>) -> Option<Trust> {
    if !server.is_secure() {
        return None;
    }
    Some(match &server.tls {
        Some(Tls { insecure: true, .. }) => Trust::Anything,
        Some(Tls { ca: Some(ca), .. }) => Trust::Authority(names.path(ca, names.scenario_dir)),
        Some(Tls { ca: None, .. }) | None => Trust::System,
    })
}

/// Says that it is not known what to believe of a server.
pub(super) fn unreadable(server: &Server, error: &trust::Error) -> Diagnostic {
    let origin = server.tls.as_ref().map_or(server.identity.origin, |tls| tls.origin);
    let message = format!("the certificates to trust for `{}` cannot be read: {error}", server.identity.id);
    failure(Code::CertificatesUnreadable, origin, message)
}

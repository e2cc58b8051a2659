use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// DNS names and URIs of a certificate (subject alternative names, RFC 5280, 4.2.1.6). Its common name
/// does not count, RFC 9525, 2.
pub(super) fn names(chain: Option<&[CertificateDer<'_>]>) -> Vec<String> {
    let Some(certificate) = chain.and_then(<[_]>::first) else { return Vec::new() };
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Vec::new() };
    let names = certificate.valid_dns_names().chain(certificate.valid_uri_names());
    names.map(str::to_owned).collect()
}

//! Who a process is on the network: keys and certificates that exist for one job.
//!
//! The job's secret yields the key of a certificate authority that all its holders can compute.
//! Each process makes a fresh key and has that authority sign it, so showing a valid certificate
//! proves holding the secret, in both directions. Nothing here is stored, and the certificates'
//! names carry no authority of their own: a holder of the secret can make any. The transport
//! therefore also pins the [`Fingerprint`] that the peer had when it joined.
//!
//! Only TLS 1.3, no resumption and no early data: connections of a job are few and long, so a
//! replayed first flight buys nothing. Names do not contain the job: a process of another job that
//! holds the same secret is told so when it joins, which a failed handshake could not do.

use std::fmt;
use std::sync::Arc;

use hkdf::Hkdf;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ED25519,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};

use crate::endpoint::Protocol;
use crate::{Fingerprint, JobSecret, Rank};

/// Separates this use of the secret from any other, and this version from later ones.
const AUTHORITY_KEY_INFO: &[u8] = b"lockstep job authority, Ed25519, version 1";

/// The PKCS #8 (RFC 8410) frame of an Ed25519 private key; the 32 bytes of its seed follow.
const ED25519_PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The name a process shows in its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerName {
    /// The host of the rendezvous.
    Coordinator,
    /// A process of the job.
    Rank(Rank),
}

/// A process's key and certificate, and what it needs to verify those of its peers.
#[derive(Clone)]
pub struct Identity {
    name: PeerName,
    provider: Arc<CryptoProvider>,
    authority: Arc<RootCertStore>,
    certificate: CertificateDer<'static>,
    key: Arc<PrivateKeyDer<'static>>,
}

/// Why an identity could not be made from a secret.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate for {name}: {detail}")]
pub struct IdentityError {
    name: PeerName,
    detail: String,
}

impl Identity {
    /// A new key and certificate for `name`, valid among the holders of `secret`.
    ///
    /// # Errors
    /// When the cryptographic library refuses, which no input causes.
    pub fn new(secret: &JobSecret, name: PeerName) -> Result<Self, IdentityError> {
        let error = |detail: &dyn fmt::Display| IdentityError { name, detail: detail.to_string() };
        let authority_key = authority_key(secret).map_err(|e| error(&e))?;
        let authority_params = authority_params(&authority_key);
        let mut roots = RootCertStore::empty();
        let root = authority_params.self_signed(&authority_key).map_err(|e| error(&e))?;
        roots.add(root.der().clone()).map_err(|e| error(&e))?;

        let key = KeyPair::generate_for(&PKCS_ED25519).map_err(|e| error(&e))?;
        let params = CertificateParams::new([name.to_string()]).map_err(|e| error(&e))?;
        let issuer = Issuer::from_params(&authority_params, authority_key);
        let certificate = params.signed_by(&key, &issuer).map_err(|e| error(&e))?;
        Ok(Self {
            name,
            provider: Arc::new(provider()),
            authority: Arc::new(roots),
            certificate: certificate.der().clone(),
            key: Arc::new(PrivatePkcs8KeyDer::from(key.serialize_der()).into()),
        })
    }

    /// The name in the certificate.
    pub fn name(&self) -> PeerName {
        self.name
    }

    /// What peers pin.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// How to accept connections of `protocol`: any holder of the secret may connect.
    pub(crate) fn server(&self, protocol: Protocol) -> Result<QuicServerConfig, IdentityError> {
        let error = |detail: &dyn fmt::Display| self.error(detail);
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::clone(&self.authority),
            Arc::clone(&self.provider),
        )
        .build()
        .map_err(|e| error(&e))?;
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|e| error(&e))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .map_err(|e| error(&e))?;
        tls.alpn_protocols = vec![protocol.alpn().to_vec()];
        tls.send_tls13_tickets = 0;
        tls.max_early_data_size = 0;
        QuicServerConfig::try_from(tls).map_err(|e| error(&e))
    }

    /// How to connect for `protocol`; with `pin`, only to the holder of that certificate.
    pub(crate) fn client(
        &self,
        protocol: Protocol,
        pin: Option<Fingerprint>,
    ) -> Result<QuicClientConfig, IdentityError> {
        let error = |detail: &dyn fmt::Display| self.error(detail);
        let chain = WebPkiServerVerifier::builder_with_provider(
            Arc::clone(&self.authority),
            Arc::clone(&self.provider),
        )
        .build()
        .map_err(|e| error(&e))?;
        let mut tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|e| error(&e))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(PinningVerifier { chain, pin }))
            .with_client_auth_cert(vec![self.certificate.clone()], self.key.clone_key())
            .map_err(|e| error(&e))?;
        tls.alpn_protocols = vec![protocol.alpn().to_vec()];
        tls.resumption = rustls::client::Resumption::disabled();
        tls.enable_early_data = false;
        QuicClientConfig::try_from(tls).map_err(|e| error(&e))
    }

    fn error(&self, detail: &dyn fmt::Display) -> IdentityError {
        IdentityError { name: self.name, detail: detail.to_string() }
    }
}

impl Fingerprint {
    /// The fingerprint of a certificate.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Coordinator => f.write_str("coordinator.lockstep"),
            Self::Rank(rank) => write!(f, "rank-{}.lockstep", rank.0),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("name", &self.name)
            .field("fingerprint", &self.fingerprint())
            .finish_non_exhaustive()
    }
}

/// Verifies chain and name as usual, and then that the certificate is the pinned one.
#[derive(Debug)]
struct PinningVerifier {
    chain: Arc<WebPkiServerVerifier>,
    pin: Option<Fingerprint>,
}

impl ServerCertVerifier for PinningVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.chain.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )?;
        match self.pin {
            Some(pin) if pin != Fingerprint::of(end_entity) => {
                Err(rustls::CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(verified),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// The cryptography of all connections. AES with 128 bits comes first: it is no less safe here, and
/// the cost of encryption bounds the speed between hosts. So it is *ring*'s, which encrypts packets
/// of an Ethernet frame twice as fast as aws-lc where a processor has VAES and not AVX-512.
fn provider() -> CryptoProvider {
    use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites.sort_by_key(|suite| *suite != TLS13_AES_128_GCM_SHA256);
    provider
}

/// The authority's key: the same for all holders of the secret.
fn authority_key(secret: &JobSecret) -> Result<KeyPair, rcgen::Error> {
    let mut pkcs8 = [0; ED25519_PKCS8_PREFIX.len() + 32];
    let (prefix, seed) = pkcs8.split_at_mut(ED25519_PKCS8_PREFIX.len());
    prefix.copy_from_slice(&ED25519_PKCS8_PREFIX);
    Hkdf::<Sha256>::new(None, secret.as_bytes())
        .expand(AUTHORITY_KEY_INFO, seed)
        .map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    let pkcs8 = PrivatePkcs8KeyDer::from(pkcs8.as_slice());
    KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519)
}

fn authority_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    // The name tells authorities apart, so that another secret is an unknown issuer, which the
    // error can say, and not a bad signature, which could be anything.
    let name = Fingerprint(Sha256::digest(key.public_key_raw()).into());
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("lockstep job {name}"));
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_secret_is_one_authority_and_another_is_another() {
        let (one, other) = (JobSecret::generate().unwrap(), JobSecret::generate().unwrap());
        let public = |secret: &JobSecret| authority_key(secret).unwrap().public_key_raw().to_vec();
        assert_eq!(public(&one), public(&one.clone()));
        assert_ne!(public(&one), public(&other));
    }

    #[test]
    fn each_identity_has_its_own_certificate() {
        let secret = JobSecret::generate().unwrap();
        let name = PeerName::Rank(Rank(3));
        let (one, other) =
            (Identity::new(&secret, name).unwrap(), Identity::new(&secret, name).unwrap());
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_eq!(one.name().to_string(), "rank-3.lockstep");
    }
}

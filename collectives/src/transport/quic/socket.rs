//! The UDP socket at which a process's peers reach it, with the kernel's offloads.
//!
//! A batch of packets goes to the kernel in one call, and comes from it so, where it can. A path
//! on which that fails (some drivers say so only when asked to send) gets its packets one by one.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use rustix::io::Errno;

use crate::EndpointError;
use crate::endpoint::bind_socket;

/// The most that one UDP datagram, or one batch of them, holds over IPv4.
const LARGEST_BATCH_BYTES: usize = 65_507;

/// Bytes of messages that one batch carries in frames of 1500 bytes, and in frames of 9000.
pub(super) const BATCH_CONTENT_BYTES: usize = 61 << 10;

/// What every path carries.
pub(super) const SMALLEST_PACKET_BYTES: u16 = 1200;

/// The socket of a process's transport. Its peers learn the address from the topology.
#[derive(Debug)]
pub struct PeerSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    address: SocketAddr,
    /// Whether batches are sent in one call.
    offload: AtomicBool,
    /// Makes every batch fail as a driver without the offload does.
    #[cfg(test)]
    pub(super) refuse_batches: AtomicBool,
    /// Makes the first hop take no larger packets.
    #[cfg(test)]
    pub(super) largest_packet_bytes: std::sync::atomic::AtomicU16,
}

impl PeerSocket {
    /// Opens a UDP socket at `address`; port 0: any free one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn bind(address: SocketAddr) -> Result<Self, EndpointError> {
        let bind = || {
            let socket = bind_socket(address)?;
            let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
            let address = socket.local_addr()?;
            Ok(Self {
                socket,
                state,
                address,
                offload: AtomicBool::new(true),
                #[cfg(test)]
                refuse_batches: AtomicBool::new(false),
                #[cfg(test)]
                largest_packet_bytes: u16::MAX.into(),
            })
        };
        bind().map_err(|source| EndpointError::Bind { address, source })
    }

    /// Where it is bound.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Whether packets are never cut on the way, so that the path's limit can be found.
    pub(super) fn keeps_packets_whole(&self) -> bool {
        !self.state.may_fragment()
    }

    /// How many packets of a size may be sent in one call.
    pub(super) fn batch(&self, packet_bytes: u16) -> usize {
        if !self.offload.load(Ordering::Relaxed) {
            return 1;
        }
        let fitting = LARGEST_BATCH_BYTES / usize::from(packet_bytes.max(1));
        fitting.clamp(1, self.state.max_gso_segments().max(1))
    }

    /// The largest packet that the first hop towards `peer` takes.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "a test's socket has a limit"))]
    pub(super) fn largest_packet_bytes(&self, peer: SocketAddr) -> u16 {
        let largest = whole_blocks(largest_packet_bytes(peer));
        #[cfg(test)]
        let largest = largest.min(self.largest_packet_bytes.load(Ordering::Relaxed));
        largest
    }

    /// Sends a batch; false if the socket is full. What the kernel drops is lost as on the way.
    pub(super) fn send(&self, transmit: &Transmit, buffer: &[u8]) -> bool {
        let contents = buffer.get(..transmit.size).unwrap_or(buffer);
        let datagrams = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        let Err(error) = self.try_send(&datagrams) else { return true };
        if error.kind() == io::ErrorKind::WouldBlock {
            return false;
        }
        match (Errno::from_io_error(&error), transmit.segment_size) {
            (Some(Errno::IO | Errno::INVAL), Some(packet_bytes)) if packet_bytes > 0 => {
                if self.offload.swap(false, Ordering::Relaxed) {
                    tracing::warn!(
                        "the path to {} takes no batches of packets ({error}): it gets them one \
                         by one, which costs speed",
                        transmit.destination
                    );
                }
                for contents in contents.chunks(packet_bytes) {
                    let datagram =
                        quinn_udp::Transmit { contents, segment_size: None, ..datagrams.clone() };
                    // A packet that does not go out is sent again like any that is lost.
                    let _ = self.try_send(&datagram);
                }
            }
            _ => tracing::debug!("a packet to {} is lost: {error}", transmit.destination),
        }
        true
    }

    fn try_send(&self, transmit: &quinn_udp::Transmit<'_>) -> io::Result<()> {
        #[cfg(test)]
        if transmit.segment_size.is_some() && self.refuse_batches.load(Ordering::Relaxed) {
            return Err(Errno::IO.into());
        }
        self.state.try_send(UdpSockRef::from(&self.socket), transmit)
    }

    /// Receives a batch into `buffer`, of packets as long as the stride; `None` if there is none.
    ///
    /// # Errors
    /// When the socket is broken.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<RecvMeta>> {
        let mut meta = [RecvMeta::default()];
        let socket = UdpSockRef::from(&self.socket);
        match self.state.recv(socket, &mut [IoSliceMut::new(buffer)], &mut meta) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(meta[0])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // What an ICMP message says of an earlier packet: nobody listens there, yet.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for PeerSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What quinn reads the mark of congestion from.
pub(super) fn congestion_mark(meta: &RecvMeta) -> Option<EcnCodepoint> {
    meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8))
}

/// Bytes of a packet that are not its content, in a burst: flags, connection id, packet number and
/// authentication tag.
const PACKET_OVERHEAD_BYTES: u16 = 1 + 8 + 2 + 16;

/// The largest packet up to `bytes` whose content is whole blocks of the cipher, which takes longer
/// for a part of a block than for several.
fn whole_blocks(bytes: u16) -> u16 {
    const BLOCK_BYTES: u16 = 16;
    let part = bytes.saturating_sub(PACKET_OVERHEAD_BYTES) % BLOCK_BYTES;
    (bytes - part).max(SMALLEST_PACKET_BYTES)
}

/// The MTU of the route towards `peer`, less what is not a packet's.
fn largest_packet_bytes(peer: SocketAddr) -> u16 {
    const IPV4_AND_UDP_BYTES: u32 = 28;
    const IPV6_AND_UDP_BYTES: u32 = 48;
    let mtu = || {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        // Connecting a UDP socket sends nothing; it makes the kernel choose the route.
        let socket = UdpSocket::bind(any)?;
        socket.connect(peer)?;
        Ok::<u32, io::Error>(match peer {
            SocketAddr::V4(_) => {
                rustix::net::sockopt::ip_mtu(&socket)?.saturating_sub(IPV4_AND_UDP_BYTES)
            }
            SocketAddr::V6(_) => {
                rustix::net::sockopt::ipv6_mtu(&socket)?.saturating_sub(IPV6_AND_UDP_BYTES)
            }
        })
    };
    let largest = mtu().map_or(SMALLEST_PACKET_BYTES.into(), |bytes| bytes as usize);
    let largest = largest.clamp(SMALLEST_PACKET_BYTES.into(), LARGEST_BATCH_BYTES);
    u16::try_from(largest).unwrap_or(SMALLEST_PACKET_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (PeerSocket, PeerSocket) {
        let bind = || PeerSocket::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        (bind(), bind())
    }

    /// All packets that come, until there are as many bytes.
    fn packets(socket: &PeerSocket, bytes: usize) -> Vec<Vec<u8>> {
        let (mut packets, mut received) = (Vec::new(), 0);
        let mut buffer = vec![0; 1 << 16];
        while received < bytes {
            let Some(meta) = socket.receive(&mut buffer).unwrap() else { continue };
            packets.extend(buffer[..meta.len].chunks(meta.stride).map(<[u8]>::to_vec));
            received += meta.len;
        }
        packets
    }

    #[test]
    fn a_batch_arrives_as_its_packets_with_the_offload_and_without() {
        let contents: Vec<u8> = (0..5500_u32).map(|n| (n % 251) as u8).collect();
        let expected: Vec<_> = contents.chunks(1200).map(<[u8]>::to_vec).collect();
        let (from, to) = pair();
        let transmit = Transmit {
            destination: to.local_address(),
            ecn: None,
            size: contents.len(),
            segment_size: Some(1200),
            src_ip: None,
        };
        assert!(from.send(&transmit, &contents));
        assert_eq!(packets(&to, contents.len()), expected);
        assert!(from.batch(1200) > 1);
        from.refuse_batches.store(true, Ordering::Relaxed);
        assert!(from.send(&transmit, &contents));
        assert_eq!(packets(&to, contents.len()), expected);
        assert_eq!(from.batch(1200), 1);
    }

    #[test]
    fn a_batch_is_what_one_call_takes() {
        let (socket, _) = pair();
        assert_eq!(socket.batch(65_507), 1);
        assert_eq!(socket.batch(8972), 7);
        assert_eq!(socket.batch(1472), 44);
        assert_eq!(socket.batch(1), socket.state.max_gso_segments());
    }

    #[test]
    fn packets_hold_whole_blocks_as_far_as_they_may() {
        for bytes in SMALLEST_PACKET_BYTES..9000 {
            let packet_bytes = whole_blocks(bytes);
            assert!((bytes.saturating_sub(15)..=bytes).contains(&packet_bytes), "{bytes}");
            let is_whole = (packet_bytes - PACKET_OVERHEAD_BYTES).is_multiple_of(16);
            assert!(is_whole || packet_bytes == SMALLEST_PACKET_BYTES, "{bytes}");
        }
    }

    #[test]
    fn a_batch_carries_its_content_and_little_more() {
        // What is before a piece of a message below 1 GiB, and an acknowledgement beside it.
        const FRAME_BYTES: usize = 1 + 4 + 4 + 2;
        const ACKNOWLEDGEMENT_BYTES: usize = 40;
        for packet_bytes in [1467, 8971] {
            let content_bytes = packet_bytes - usize::from(PACKET_OVERHEAD_BYTES) - FRAME_BYTES;
            let packets = LARGEST_BATCH_BYTES / packet_bytes;
            let carried_bytes = packets * content_bytes - ACKNOWLEDGEMENT_BYTES;
            let rest_bytes = carried_bytes.checked_sub(BATCH_CONTENT_BYTES);
            assert!(rest_bytes.is_some_and(|rest| rest < packet_bytes), "{rest_bytes:?}");
        }
    }

    #[test]
    fn loopback_takes_the_largest_packets() {
        let largest = largest_packet_bytes((Ipv4Addr::LOCALHOST, 9).into());
        assert!(usize::from(largest) > LARGEST_BATCH_BYTES / 2, "{largest}");
    }
}

//! Addresses: paths in one spelling, hosts, and whole URLs.

pub mod path;

pub(crate) const URL_MAX: usize = 2_048;
const HOST_MAX: usize = 253;

/// A URL in its parts, as a probe needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// `https`.
    pub secure: bool,
    /// A name or an address, IPv6 in brackets; in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query, as they are sent.
    pub path: String,
}

impl Url {
    /// Reads a URL that is written as it is sent: ASCII, without user and fragment. `None` for anything else.
    pub fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let (address, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = match host_and_port(address) {
            Some((host, port)) => (host, port),
            None => (is_host(address).then_some(address)?, if secure { 443 } else { 80 }),
        };
        // The slash that is missing is written.
        let length = text.len() + usize::from(!path.starts_with('/'));
        let fits = length <= URL_MAX && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        fits.then(|| Self { secure, host: host.to_ascii_lowercase(), port, path })
    }

    /// As the `Host` header names it: with its port, unless that is the usual one.
    pub(crate) fn authority(&self) -> String {
        let usual = if self.secure { 443 } else { 80 };
        if self.port == usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// Whether both are on one server.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (self.secure, &self.host, self.port) == (other.secure, &other.host, other.port)
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(formatter, "{scheme}://{}{}", self.authority(), self.path)
    }
}

/// `host:port` with a port that can be.
pub(crate) fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    // The last colon of a bare IPv6 address is not a port's.
    let digits = !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| digits && *port > 0)?;
    is_host(host).then_some((host, port))
}

/// A name, an IPv4 address, or an IPv6 address in brackets.
pub(crate) fn is_host(host: &str) -> bool {
    let fits = (1..=HOST_MAX).contains(&host.len());
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return fits && address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    fits && host.strip_suffix('.').unwrap_or(host).split('.').all(label)
}

/// A `Host` header's name without port and without the dot that may end a complete name.
pub(crate) fn bare_host(host: &str) -> &str {
    let end = if host.starts_with('[') { host.find(']').map(|at| at + 1) } else { host.find(':') };
    end.and_then(|end| host.get(..end)).unwrap_or(host).trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::bare_host;

    #[test]
    fn a_host_loses_port_and_last_dot() {
        assert_eq!(bare_host("shop.example:8787"), "shop.example");
        assert_eq!(bare_host("shop.example."), "shop.example");
        assert_eq!(bare_host("shop.example.:443"), "shop.example");
        assert_eq!(bare_host("[::1]:8787"), "[::1]");
        assert_eq!(bare_host("[::1"), "[::1");
        assert_eq!(bare_host(""), "");
    }
}

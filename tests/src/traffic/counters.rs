//! What the client's kernel counted: connections that were asked for, whoever asked.

use std::fs;

use anyhow::{Context as _, Result};

use crate::topology::Node;

/// TCP counters of a node, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Connections that were opened towards others (`Tcp: ActiveOpens`).
    pub opened: u64,
    /// SYNs that had to be sent again (`TcpExt: TCPSynRetrans`).
    pub syns_repeated: u64,
}

impl ClientCounters {
    /// Reads them.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn read(node: &Node) -> Result<Self> {
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/thread-self/net/{name}"))
                .with_context(|| format!("read {name}"))
        };
        let (snmp, netstat) = node.enter(|| (read("snmp"), read("netstat")))?;
        Ok(Self {
            opened: field(&snmp?, "Tcp:", "ActiveOpens")?,
            syns_repeated: field(&netstat?, "TcpExt:", "TCPSynRetrans")?,
        })
    }

    /// SYNs that left the node.
    pub fn syns(&self) -> u64 {
        self.opened + self.syns_repeated
    }

    /// What was counted since an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            opened: self.opened - earlier.opened,
            syns_repeated: self.syns_repeated - earlier.syns_repeated,
        }
    }
}

/// A table of these files is two lines with the same first word: names, then values.
fn field(text: &str, table: &str, name: &str) -> Result<u64> {
    let mut rows = text.lines().filter(|line| line.split(' ').next() == Some(table));
    let names = rows.next().with_context(|| format!("no {table}"))?.split(' ');
    let values = rows.next().with_context(|| format!("no values of {table}"))?.split(' ');
    let value = names.zip(values).find(|(found, _)| *found == name);
    value.with_context(|| format!("{table} has no {name}"))?.1.parse().context("counter")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_table_and_name() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: MaxConn ActiveOpens\nTcp: -1 42\n";
        assert_eq!(field(text, "Tcp:", "ActiveOpens").unwrap(), 42);
        assert!(field(text, "Tcp:", "Forwarding").is_err());
        assert!(field(text, "Udp:", "ActiveOpens").is_err());
    }
}

//! An end of a link that puts VLAN tags on packets to VIPs and takes those off that come back, for kernels
//! without VLAN devices: by the kernel's own helpers, in classifiers at tc's hook.

use anyhow::Result;

use super::Node;
use super::object::{self, instruction};

/// Registers: what a helper answers, and the packet.
const ANSWER: u8 = 0;
const PACKET: u8 = 6;
/// Numbers of helpers (include/uapi/linux/bpf.h).
const VLAN_PUSH: u32 = 18;
const VLAN_POP: u32 = 19;
/// Most tags that come back.
const MOST: usize = 2;

/// Puts the tags on, `[EtherType, TCI]` from the outermost, whatever was put on before.
pub(super) fn attach(node: &Node, interface: &str, tags: &[[u16; 2]]) -> Result<()> {
    node.run("tc", ["qdisc", "replace", "dev", interface, "clsact"])?;
    for (hook, name, program) in [("egress", "push", push(tags)), ("ingress", "pop", pop())] {
        let file = object::write(node, name, "tc", &program)?;
        let filter = ["filter", "replace", "dev", interface, hook, "pref", "1", "handle", "1"];
        let program = ["bpf", "direct-action", "object-file", &file, "section", "tc"];
        node.run("tc", [&filter[..], &program].concat())?;
    }
    Ok(())
}

/// What is to 203.0.113.0/24 or 2001:db8:f::/48, where all VIPs are.
fn push(tags: &[[u16; 2]]) -> Vec<[u8; 8]> {
    let half_at = |at| instruction(0x28, (0, 0), 0, at);
    let word_at = |at| instruction(0x20, (0, 0), 0, at);
    let unless = |number, skipped| instruction(0x55, (ANSWER, 0), skipped, number);
    let calls: Vec<_> = tags
        .iter()
        .rev()
        .flat_map(|[ether_type, tci]| {
            [
                instruction(0xbf, (1, PACKET), 0, 0),
                instruction(0xb7, (2, 0), 0, ether_type.to_be().into()),
                instruction(0xb7, (3, 0), 0, (*tci).into()),
                instruction(0x85, (0, 0), 0, VLAN_PUSH),
            ]
        })
        .collect();
    let end = calls.len() as i16;
    let mut program = vec![
        instruction(0xbf, (PACKET, 1), 0, 0),
        half_at(12),
        instruction(0x15, (ANSWER, 0), 6, 0x0800),
        unless(0x86dd, end + 8),
        word_at(14 + 24),
        unless(0x2001_0db8, end + 6),
        half_at(14 + 28),
        unless(0x000f, end + 4),
        instruction(0x05, (0, 0), 3, 0),
        word_at(14 + 16),
        instruction(0x77, (ANSWER, 0), 0, 8),
        unless(0x00cb_0071, end),
    ];
    program.extend(calls);
    program.extend(go_on());
    program
}

fn pop() -> Vec<[u8; 8]> {
    let call = [instruction(0xbf, (1, PACKET), 0, 0), instruction(0x85, (0, 0), 0, VLAN_POP)];
    let mut program = vec![instruction(0xbf, (PACKET, 1), 0, 0)];
    program.extend([call; MOST].as_flattened());
    program.extend(go_on());
    program
}

/// `TC_ACT_OK`.
const fn go_on() -> [[u8; 8]; 2] {
    [instruction(0xb7, (ANSWER, 0), 0, 0), instruction(0x95, (0, 0), 0, 0)]
}

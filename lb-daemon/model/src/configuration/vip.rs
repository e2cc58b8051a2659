use super::named_value::named_values;

named_values! {
    /// What becomes of packets for a VIP that no service of it takes.
    pub enum Unserved, default Auto {
        /// Drop them if the VIP is no address of this host and the host does not forward packets; else leave them to the host
        Auto = "auto",
        /// Leave them to the host
        Pass = "pass",
        /// Drop them
        Drop = "drop",
    }
}

//! The enums of the configuration and their numbers in the API: the one place that names both.

use lb_model::overrides::Kind as OverrideKind;
use lb_model::{
    AdminState, Affinity, EncapsulationKind, Fragments, HostProbe, Isolation, MemberState,
    Protocol, UdpMode, Unserved, Via, WhenFull,
};
use spillway_proto::v1;

/// A number of an enum that has no meaning in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a value that this version knows")]
pub struct UnknownNumber(pub i32);

/// An enum that is an enum of the API too.
pub trait ApiEnum: Copy {
    /// The enum of the API.
    type Message: Into<i32>;

    /// The value as the API has it.
    fn to_api(self) -> Self::Message;

    /// The value of a number; `None`: it is left to the default.
    ///
    /// # Errors
    /// [`UnknownNumber`]: a newer version gave it.
    fn from_api(number: i32) -> Result<Option<Self>, UnknownNumber>;
}

/// The number of a value; 0 leaves it to the default.
pub fn to_number<E: ApiEnum>(value: Option<E>) -> i32 {
    value.map_or(0, |value| value.to_api().into())
}

macro_rules! api_enums {
    ($($type:ident = $message:ident { $($value:ident),+ })+) => {$(
        impl ApiEnum for $type {
            type Message = v1::$message;

            fn to_api(self) -> v1::$message {
                match self {
                    $(Self::$value => v1::$message::$value,)+
                }
            }

            fn from_api(number: i32) -> Result<Option<Self>, UnknownNumber> {
                match v1::$message::try_from(number) {
                    Ok(v1::$message::Unspecified) => Ok(None),
                    $(Ok(v1::$message::$value) => Ok(Some(Self::$value)),)+
                    Err(_) => Err(UnknownNumber(number)),
                }
            }
        }
    )+};
}

api_enums! {
    AdminState = AdminState { Active, Drain, Disabled }
    Affinity = Affinity { Connection, Client, Port }
    EncapsulationKind = Encapsulation { IpInIp, Gue, Direct }
    Fragments = Fragments { Dropped, Served }
    HostProbe = HostProbe { Auto, Neighbour, Icmp, Tcp }
    Isolation = Isolation { None, OnFailure, Strict }
    MemberState = BackendState { Pending, Up, Unhealthy, HeldDown, Unreachable, Draining, Disabled }
    OverrideKind = OverrideKind { Drain, Disable, Weight, Scale }
    Protocol = Protocol { Tcp, Udp }
    UdpMode = UdpMode { Stateless, Tracked }
    Unserved = Unserved { Auto, Pass, Drop }
    Via = Via { Address, Tunnel }
    WhenFull = WhenFull { Nearest, Reject }
}

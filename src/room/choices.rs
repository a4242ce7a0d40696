//! What an owner chooses by name.

/// An enum whose values owners write by name. The first one is what holds where nothing is written.
macro_rules! choices {
    (
        $(#[$meta:meta])*
        $name:ident {
            $(#[$first_meta:meta])* $first:ident = $first_text:literal,
            $($(#[$other_meta:meta])* $other:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $(#[$first_meta])*
            #[default]
            $first,
            $($(#[$other_meta])* $other,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[Self::$first, $(Self::$other),+];
            /// Their names in configurations, in the same order.
            pub const NAMES: &'static [&'static str] = &[$first_text, $($text),+];

            /// Its name in configurations.
            pub fn name(self) -> &'static str {
                match self {
                    Self::$first => $first_text,
                    $(Self::$other => $text,)+
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

pub(super) use choices;

choices! {
    /// Which requests of visitors who are not in take a slot or wait (`count`).
    Count {
        /// All.
        All = "all",
        /// Those for pages; the others go to the origin uncounted.
        Navigations = "navigations",
    }
}

choices! {
    /// Whether anybody has to wait (`mode`).
    Mode {
        /// Whoever the limits have no room for waits.
        Enforce = "enforce",
        /// Everybody is judged and counted, and passes.
        Observe = "observe",
    }
}

choices! {
    /// What those who wait see once a room that was made at run time is deleted (`when_deleted`).
    WhenDeleted {
        /// What they came for, as everybody does.
        Origin = "origin",
        /// Once, a page that says that the line has ended.
        Page = "page",
    }
}

choices! {
    /// Which minutes `new_users_per_minute` holds for.
    RateWindow {
        /// Each calendar minute.
        Minute = "minute",
        /// Any 60 seconds; of `leases` only.
        Sliding = "sliding",
    }
}

choices! {
    /// What a ticket is bound to: for somebody else it is no ticket.
    BindTicket {
        /// Nothing: whoever has it may use it.
        None = "none",
        /// The network of the visitor's address.
        Address = "address",
        /// The header `User-Agent`.
        UserAgent = "user_agent",
        /// Both.
        Both = "both",
    }
}

choices! {
    /// Who of those who are not active is let in.
    QueueingMethod {
        /// Oldest minute-bucket first.
        Fifo = "fifo",
        /// Drawn among all who wait.
        Random = "random",
        /// Everybody enters and is counted; the limits are not looked at.
        Passthrough = "passthrough",
        /// Nobody new enters, and nobody waits.
        Reject = "reject",
    }
}

choices! {
    /// How slots are handed out (articles of 2021 and 2023).
    SlotStrategy {
        /// Permits leased by the data center's Counter from one pool, Anywhere.
        Leases = "leases",
        /// 2023: numbers from the data center's Counter, then from Anywhere.
        Counters = "counters",
        /// 2023: `worker_slots` with the worker count multiplied by utilisation to the power of the curve factor.
        AdaptedWorkerSlots = "adapted_worker_slots",
        /// 2021: the data center's slots divided by its workers, plus the Anywhere slots divided by all workers.
        WorkerSlots = "worker_slots",
    }
}

choices! {
    /// Where the objects are made that a room has once, Anywhere and Global (`location`): the platform's location hints.
    Location {
        /// Near the room's first visitor.
        Auto = "auto",
        /// Western North America.
        WesternNorthAmerica = "wnam",
        /// Eastern North America.
        EasternNorthAmerica = "enam",
        /// South America.
        SouthAmerica = "sam",
        /// Western Europe.
        WesternEurope = "weur",
        /// Eastern Europe.
        EasternEurope = "eeur",
        /// Asia and the Pacific.
        AsiaPacific = "apac",
        /// Oceania.
        Oceania = "oc",
        /// Africa.
        Africa = "afr",
        /// The Middle East.
        MiddleEast = "me",
    }
}

choices! {
    /// What happens to new users when neither the objects nor a cached state answer.
    OnError {
        /// Let them in.
        Admit = "admit",
        /// Queue them.
        Queue = "queue",
    }
}

choices! {
    /// What happens to new users while the origin is unhealthy.
    OnUnhealthy {
        /// They enter as ever.
        Ignore = "ignore",
        /// They wait. When the origin is back they enter slowly at first.
        Hold = "hold",
    }
}

choices! {
    /// Whether there is something to see of Turnstile (`turnstile_mode`).
    TurnstileMode {
        /// Nothing.
        Invisible = "invisible",
        /// A widget that needs nothing done.
        VisibleNonInteractive = "visible_non_interactive",
        /// A widget that may ask for a click.
        VisibleManaged = "visible_managed",
    }
}

choices! {
    /// What becomes of visitors who fail Turnstile (`turnstile_action`).
    TurnstileAction {
        /// It is logged.
        Log = "log",
        /// They wait for ever, and are not counted.
        InfiniteQueue = "infinite_queue",
    }
}

/// How Cloudflare's Turnstile tests waiting visitors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turnstile {
    /// Whether there is something to see.
    pub mode: TurnstileMode,
    /// What becomes of those who fail.
    pub action: TurnstileAction,
    /// The widget's site key: letters, digits, `_`, `-` and `.`.
    pub sitekey: String,
}

/// How far the limits of a room follow its origin's health (`limits = "adaptive"`). The most is in
/// [`Room::total_active_users`](super::Room::total_active_users) and
/// [`Room::new_users_per_minute`](super::Room::new_users_per_minute).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdaptiveRange {
    /// The least that `total_active_users` shrinks to, at least 1.
    pub least_active_users: u32,
    /// The least that `new_users_per_minute` shrinks to, at least 1.
    pub least_new_users: u32,
    /// An origin that takes longer to its first byte than this is overloaded, in milliseconds; `None`: three times as
    /// long as when it has little to do.
    pub slow_ms: Option<u32>,
}

/// What differs between the strategies, once for all who ask.
impl SlotStrategy {
    /// Whether Counters lease permits from the pool, which alone decides who enters. Else numbers are compared with
    /// limits.
    pub fn leases_permits(self) -> bool {
        match self {
            Self::Leases => true,
            Self::Counters | Self::WorkerSlots | Self::AdaptedWorkerSlots => false,
        }
    }

    /// Whether colos own shares of a minute's numbers, and say how many they gave.
    pub fn owns_shares(self) -> bool {
        match self {
            Self::Counters => true,
            Self::Leases | Self::WorkerSlots | Self::AdaptedWorkerSlots => false,
        }
    }

    /// Whether each worker counts for itself, and nobody is asked. The limits are then kept on average only.
    pub fn counts_alone(self) -> bool {
        match self {
            Self::WorkerSlots | Self::AdaptedWorkerSlots => true,
            Self::Leases | Self::Counters => false,
        }
    }
}

impl Location {
    /// What the platform is told; `None`: nothing, and it chooses.
    pub fn hint(self) -> Option<&'static str> {
        (self != Self::Auto).then(|| self.name())
    }

    /// The location hint that a name is; `None`: it is none, as the code of a colo.
    pub fn hint_of(name: &str) -> Option<&'static str> {
        Self::NAMES.iter().skip(1).copied().find(|hint| *hint == name)
    }

    /// The location hint that is nearest to a place on Earth, in degrees north and east (`request.cf.latitude`, `longitude`).
    pub fn nearest(latitude: f64, longitude: f64) -> &'static str {
        // As on a flat map: near enough for a choice of nine.
        let squared = |(north, east): (f64, f64)| {
            let around = (longitude - east).abs();
            let (north, east) = (latitude - north, around.min(360.0 - around));
            north * north + east * east
        };
        let (mut nearest, mut least) = ("", f64::INFINITY);
        for (hint, city) in Self::NAMES.iter().skip(1).zip(Self::CITIES) {
            if squared(city) < least {
                (nearest, least) = (hint, squared(city));
            }
        }
        nearest
    }

    /// A city in the middle of each but the first, in degrees north and east.
    const CITIES: [(f64, f64); Self::ALL.len() - 1] = [
        (37.4, -121.9),
        (38.9, -77.5),
        (-23.4, -46.5),
        (51.5, -0.5),
        (50.0, 14.3),
        (1.4, 104.0),
        (-33.9, 151.2),
        (-26.1, 28.2),
        (25.3, 55.4),
    ];
}

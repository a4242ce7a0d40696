//! Where things stand on the planet, and how long light takes from one to another.

use std::sync::LazyLock;

use anteroom::room::Location;

/// The cities of data centers: code, latitude, longitude, name.
const CITIES: &str = include_str!("../../../static/dashboard/colos.txt");

/// The busiest cities, the busiest first; all others follow in the order of their codes, which mixes the continents.
const BUSIEST: [&str; 30] = [
    "IAD", "FRA", "NRT", "LAX", "LHR", "GRU", "SIN", "BOM", "ORD", "CDG", "SYD", "DFW", "AMS", "HKG", "JNB",
    "DXB", "MIA", "MAD", "ICN", "YYZ", "DEL", "WAW", "SEA", "EZE", "IST", "MXP", "CGK", "MEX", "ARN", "LOS",
];

/// The cities where objects live, by location hint.
pub const LOCATIONS: [(&str, &[&str]); 9] = [
    ("wnam", &["SJC", "LAX", "SEA", "DEN"]),
    ("enam", &["IAD", "EWR", "ORD", "ATL"]),
    ("sam", &["GRU", "SCL"]),
    ("weur", &["LHR", "AMS", "CDG", "MAD"]),
    ("eeur", &["FRA", "VIE", "WAW"]),
    ("apac", &["SIN", "NRT", "HKG", "BOM"]),
    ("oc", &["SYD", "MEL"]),
    ("afr", &["JNB"]),
    ("me", &["DXB"]),
];

/// One way between two machines of one city, in microseconds: no call takes less than five milliseconds.
pub const NEAR_MICROS: u64 = 2_500;
/// One way for each kilometer: light takes 5 microseconds in glass, and a cable is half as long again as the way.
const MICROS_PER_KM: f64 = 7.5;
/// One way through routers and machines, however far.
const ENDS_MICROS: f64 = 1_000.0;
const EARTH_RADIUS_KM: f64 = 6_371.0;
/// Half of the messages take longer than the way says, one in 200 more than five times as long: so of calls, which are two
/// messages, one in a hundred takes three times the median.
const TAIL: f64 = 0.6;
/// No message is faster than this part of it.
const FASTEST: f64 = 0.8;

/// One way between places, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways {
    /// Between a colo's workers and its objects.
    pub to_objects: u64,
    /// Between a colo's objects and those of the room.
    pub from_objects: u64,
    /// Between a colo's workers and the objects of the room.
    pub to_room: u64,
    /// The location hint of the colo's region.
    pub region: &'static str,
    /// Between a colo's workers and its region's Counter.
    pub to_region: u64,
    /// Between a colo's objects and its region's Counter.
    pub objects_to_region: u64,
}

impl Ways {
    /// How long a call from a colo's workers takes at least, in milliseconds, to the room's objects or those of the region,
    /// whichever are nearer.
    pub fn least_shared_ms(&self) -> u64 {
        (2.0 * FASTEST * self.to_room.min(self.to_region) as f64 / 1_000.0) as u64
    }
}

#[derive(Debug, Clone, Copy)]
struct City {
    code: &'static str,
    /// In radians.
    latitude: f64,
    longitude: f64,
}

impl City {
    fn of(line: &'static str) -> Option<Self> {
        let mut fields = line.split(' ');
        let code = fields.next()?;
        let mut radians = || Some(fields.next()?.parse::<f64>().ok()?.to_radians());
        Some(Self { code, latitude: radians()?, longitude: radians()? })
    }

    fn kilometers(self, other: Self) -> f64 {
        let half = |from: f64, to: f64| ((to - from) / 2.0).sin().powi(2);
        let north = half(self.latitude, other.latitude);
        let east = half(self.longitude, other.longitude) * self.latitude.cos() * other.latitude.cos();
        2.0 * EARTH_RADIUS_KM * (north + east).sqrt().min(1.0).asin()
    }

    fn micros(self, other: Self) -> u64 {
        ((self.kilometers(other) * MICROS_PER_KM + ENDS_MICROS) as u64).max(NEAR_MICROS)
    }

    fn nearest(self, of: &[Self]) -> Self {
        of.iter().copied().min_by_key(|city| self.micros(*city)).unwrap_or(self)
    }
}

fn all() -> Vec<City> {
    CITIES.lines().filter_map(City::of).collect()
}

fn busiest(all: &[City]) -> impl Iterator<Item = &City> {
    BUSIEST.iter().filter_map(|code| all.iter().find(|city| city.code == *code))
}

/// The cities where objects may live, at a location hint or anywhere.
fn living(all: &[City], hint: Option<&str>) -> Vec<City> {
    let here = LOCATIONS.iter().filter(|(name, _)| hint.is_none_or(|hint| hint == *name));
    let codes: Vec<&str> = here.flat_map(|(_, codes)| codes.iter().copied()).collect();
    all.iter().filter(|city| codes.contains(&city.code)).copied().collect()
}

/// Where the room's own objects live: near the busiest city, or at a location hint.
fn room(all: &[City], location: Option<&str>) -> City {
    let first = busiest(all).next().unwrap_or(&all[0]);
    first.nearest(&living(all, location))
}

/// The ways of the first `colos` colos, where the room's own objects live near the busiest of them, or at a location hint.
pub fn ways(colos: usize, location: Option<&str>) -> Vec<Ways> {
    let all = all();
    let others = all.iter().filter(|city| !BUSIEST.contains(&city.code));
    let cities: Vec<City> = busiest(&all).chain(others).copied().collect();
    let objects = living(&all, None);
    let room = room(&all, location);
    let homes = regions(&all);
    // More colos than cities: some cities have two.
    let ways = cities.iter().cycle().take(colos).map(|city| {
        let home = city.nearest(&objects);
        let region = Location::nearest(city.latitude.to_degrees(), city.longitude.to_degrees());
        let region_home = homes.iter().find(|(of, _)| *of == region).map_or(home, |(_, city)| *city);
        Ways {
            to_objects: city.micros(home),
            from_objects: home.micros(room),
            to_room: city.micros(room),
            region,
            to_region: city.micros(region_home),
            objects_to_region: home.micros(region_home),
        }
    });
    ways.collect()
}

/// Where the Counters of the regions live: in the first city of each.
fn regions(all: &[City]) -> Vec<(&'static str, City)> {
    let home = |(hint, codes): &(&'static str, &[&str])| {
        Some((*hint, *all.iter().find(|city| codes.first() == Some(&city.code))?))
    };
    LOCATIONS.iter().filter_map(home).collect()
}

/// One way between the Counter of each region and the room's objects, in microseconds, with its location hint. See [`ways`].
pub fn region_ways(location: Option<&str>) -> Vec<(&'static str, u64)> {
    let all = all();
    let room = room(&all, location);
    regions(&all).into_iter().map(|(hint, city)| (hint, city.micros(room))).collect()
}

/// How much longer than its way a message takes, in 256ths, with equal chances: a log-logistic tail.
pub fn delays() -> [u32; 256] {
    std::array::from_fn(|index| {
        let (below, above) = (index as f64 + 0.5, 255.5 - index as f64);
        (256.0 * (FASTEST + (1.0 - FASTEST) * (below / above).powf(TAIL))) as u32
    })
}

/// How long calls take, in 512ths of a way there and back, the shortest first, all with equal chances.
static CALLS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let delays = delays();
    let mut calls: Vec<u32> =
        delays.iter().flat_map(|there| delays.iter().map(move |back| there + back)).collect();
    calls.sort_unstable();
    calls
});

/// Half of all calls to a place so many microseconds away take longer than this, in milliseconds.
pub fn median_call_ms(way_micros: u64) -> u64 {
    way_micros * u64::from(CALLS[CALLS.len() / 2]) / 256_000
}

/// The part of the calls to a place so many microseconds away that take longer than so many milliseconds.
pub fn calls_longer_than(milliseconds: u64, way_micros: u64) -> f64 {
    let shorter = CALLS.partition_point(|call| way_micros * u64::from(*call) <= milliseconds * 256_000);
    1.0 - shorter as f64 / CALLS.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cities_are_known() {
        let known = |code: &&str| CITIES.lines().any(|line| line.starts_with(&format!("{code} ")));
        let homes = LOCATIONS.iter().flat_map(|(_, codes)| codes.iter());
        assert_eq!(BUSIEST.iter().chain(homes).find(|code| !known(code)), None);
    }

    #[test]
    fn ways_are_as_long_as_the_planet_is_large() {
        let ways = ways(300, None);
        // A Counter is some 5 to 40 milliseconds away, there and back.
        let mut calls: Vec<u64> = ways.iter().map(|way| 2 * way.to_objects / 1_000).collect();
        calls.sort_unstable();
        assert_eq!(calls[0], 5);
        assert!((5..20).contains(&calls[150]), "{calls:?}");
        assert!(calls[285] < 70, "{calls:?}");
        // From Sydney to Washington it is 15,700 km.
        assert!((110_000..125_000).contains(&ways[10].from_objects), "{ways:?}");
        let at_home = super::ways(300, Some("oc"));
        assert_eq!(at_home[10].from_objects, NEAR_MICROS);
    }

    #[test]
    fn one_call_in_a_hundred_takes_three_times_the_median() {
        let part = |part: usize| f64::from(CALLS[CALLS.len() * part / 100]) / 512.0;
        assert!((0.95..1.1).contains(&part(50)), "{}", part(50));
        let tail = part(99) / part(50);
        assert!((2.8..3.3).contains(&tail), "{tail}");
    }

    #[test]
    fn half_of_the_calls_take_longer_than_the_median_and_none_less_than_the_fastest() {
        let longer = |milliseconds| calls_longer_than(milliseconds, 500_000);
        assert!(longer(790) > 0.999_99);
        let median = longer(median_call_ms(500_000));
        assert!((0.495..0.505).contains(&median), "{median}");
        assert!((0.005..0.015).contains(&longer(3 * median_call_ms(500_000))));
        assert!(longer(100_000) < 0.000_01);
    }
}

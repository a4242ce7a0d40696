//! Runs a target on an input in a file, so many times over: `once paths slowest/00001200 11`. What is counted beneath it, as
//! by valgrind, grows with the times by what the target does, and by nothing else.

use anteroom_fuzz::TARGETS;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, file, times] = &arguments[..] else { panic!("three arguments: target, file, times") };
    let target = TARGETS.iter().find(|target| target.name == name).expect("there is such a target");
    let input = std::fs::read(file).expect("the file can be read");
    for _ in 0..times.parse().expect("times is a number") {
        (target.run)(std::hint::black_box(&input));
    }
}

//! Writes the behaviour corpus' commands as seeds for the fuzzer: `seeds CORPUS.jsonl DIRECTORY`.

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(corpus), Some(directory)) = (arguments.next(), arguments.next()) else {
        panic!("usage: seeds CORPUS.jsonl DIRECTORY");
    };
    std::fs::create_dir_all(&directory).expect("the directory can be made");
    let text = std::fs::read_to_string(corpus).expect("the corpus can be read");
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).expect("a case is JSON");
        let (Some(id), Some(command)) = (case["id"].as_str(), case["command"].as_str()) else { continue };
        // The first byte chooses the world the command is decided in.
        std::fs::write(format!("{directory}/{id}"), format!("\0{command}")).expect("a seed can be written");
    }
}

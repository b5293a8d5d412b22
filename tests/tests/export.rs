//! Transcripts as documents, and the page in a real browser.

use std::fs;
use std::process::Command;

use harness::ctl::code;
use harness::model_server::Reply;
use harness::scene::Scene;

/// What a page must never do: run, load, or open anything that a model or a tool wrote.
const HOSTILE: &str = "</pre></details><script>document.title='owned'; console.error('owned')</script>\
    <img src=x onerror=\"document.title='owned'\"><svg onload=alert(1)>";

fn exported(scene: &mut Scene, form: &str) -> String {
    let session = scene.session.to_string();
    let output = scene.machine.ctl(&["export", &session, form]).start().finish().expect(code::DONE);
    output.stdout
}

fn scene() -> Scene {
    let mut scene = Scene::new();
    fs::write(scene.machine.work().join("evil.txt"), HOSTILE).unwrap();
    scene.server.script(Reply::bash("cat evil.txt"));
    scene.server.script(Reply::text(&format!("# Title\n\n{HOSTILE}\n\n[a](javascript:document.title='owned')\n")));
    scene.turn(HOSTILE);
    scene
}

#[test]
fn a_transcript_is_exported_in_three_forms() {
    let mut scene = scene();
    let markdown = exported(&mut scene, "--markdown");
    assert!(markdown.contains("**$ cat evil.txt** · exit 0"), "{markdown}");
    let rows = exported(&mut scene, "--json");
    let first: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!(first["session"]["id"], scene.session.to_string());
    assert_eq!(rows.lines().count(), scene.client.log(scene.session).len() + 1);
    let page = exported(&mut scene, "--html");
    assert!(page.contains("cat evil.txt") && !page.contains("<script"), "{page}");
}

#[test]
fn a_browser_shows_the_page_without_an_error_and_runs_nothing_of_it() {
    if Command::new("chromium").arg("--version").output().is_err() {
        println!("skipped: there is no chromium here (Debian: apt-get install chromium)");
        return;
    }
    let mut scene = scene();
    let page = scene.machine.work().join("page.html");
    fs::write(&page, exported(&mut scene, "--html")).unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--enable-logging=stderr",
        ])
        .arg(format!("--user-data-dir={}", scene.machine.work().join("browser").display()))
        .args(["--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let (dom, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("CONSOLE"), "the page reports something: {said}");
    assert!(dom.contains("<h3>Title</h3>") && dom.contains("exit 0"), "{dom}");
    for bad in ["<title>owned", "<script", "<img", "<svg", "href=\"javascript"] {
        assert!(!dom.contains(bad), "{bad} is in the page: {dom}");
    }
}

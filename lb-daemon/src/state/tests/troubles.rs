use std::fs;

use super::*;

/// What is wrong, by subject.
async fn troubles(daemon: &Daemon) -> Vec<(String, String)> {
    let troubles = daemon.status().await.troubles;
    troubles.into_iter().map(|trouble| (trouble.subject, trouble.cause)).collect()
}

#[tokio::test]
async fn a_source_address_is_missed_where_a_backend_needs_it() {
    let daemon = Daemon::new();
    assert_eq!(troubles(&daemon).await, []);
    daemon.apply(WEB).await.unwrap();
    let missing = |family: &str| {
        let cause = format!(
            "there is none, so packets to {family} backends are dropped; give the interface an \
             address, or one with --source, and start again"
        );
        (format!("{family} source address"), cause)
    };
    assert_eq!(troubles(&daemon).await, [missing("IPv4")]);
    daemon.apply(&web("10.0.0.2", "fd00::2")).await.unwrap();
    assert_eq!(troubles(&daemon).await, [missing("IPv4"), missing("IPv6")]);
    daemon.apply("# nothing").await.unwrap();
    assert_eq!(troubles(&daemon).await, []);
}

#[tokio::test]
async fn names_that_cannot_be_written_are_a_trouble_until_they_are() {
    let daemon = Daemon::new();
    // A folder stands where the file is to go.
    let file = daemon.directory.path().join("directory.json");
    fs::create_dir_all(file.join("in the way")).unwrap();
    daemon.apply("[[region]]\nname = \"eu\"\n").await.unwrap();
    let (subject, cause) = troubles(&daemon).await.remove(0);
    assert_eq!(subject, "names for the command line");
    let stale = format!("are stale, and its tables may show wrong ones: {}: ", file.display());
    assert!(cause.starts_with(&stale), "{cause}");
    fs::remove_dir_all(&file).unwrap();
    daemon.apply("# nothing").await.unwrap();
    assert_eq!(troubles(&daemon).await, []);
}

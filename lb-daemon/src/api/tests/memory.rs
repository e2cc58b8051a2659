use tonic::Code;

use super::*;

/// One table of 31 slots: its words fit a page, and its head has another.
const TABLE: u64 = 2 * 4096;

fn budget(limit: u64) -> Budget {
    let made = vec![("POOLS".into(), 1 << 20), ("SIZED_TABLES".into(), 32_768)];
    Budget { made, limit: Some(limit) }
}

fn memory(needed: u64, peak: u64, limit: u64) -> v1::MapMemory {
    let bytes = |map: &str, bytes| v1::MapBytes { map: map.into(), bytes };
    let tables = needed - (1 << 20);
    v1::MapMemory {
        needed_bytes: needed,
        peak_bytes: peak,
        limit_bytes: Some(limit),
        maps: vec![bytes("POOLS", 1 << 20), bytes("SIZED_TABLES", tables)],
    }
}

#[tokio::test]
async fn a_dry_run_shows_the_memory_and_the_limit_holds() {
    const MADE: u64 = (1 << 20) + 32_768;
    let limit = MADE + 2 * TABLE;
    let daemon = Daemon::with(budget(limit));
    let mut client = daemon.client().await;
    let dry_run = v1::ApplyRequest { dry_run: true, ..apply(configuration()) };
    let dry = client.apply(dry_run).await.unwrap().into_inner();
    assert_eq!(dry.memory, Some(memory(MADE + TABLE, MADE + TABLE, limit)));
    let applied = client.apply(apply(configuration())).await.unwrap().into_inner();
    assert_eq!(applied.memory, dry.memory);
    let again = client.apply(apply(configuration())).await.unwrap().into_inner();
    assert_eq!((again.generation, again.memory), (1, None));

    // Another table in place of the first: both are there for a while.
    let mut other = configuration();
    other.pools[0].slots = 37;
    let dry_run = v1::ApplyRequest { dry_run: true, ..apply(other.clone()) };
    let dry = client.apply(dry_run).await.unwrap().into_inner();
    assert_eq!(dry.memory, Some(memory(MADE + TABLE, MADE + 2 * TABLE, limit)));

    // Two more are beyond it for as long as the first is there.
    let mut more = other.pools[0].clone();
    (more.name, more.slots) = ("more".into(), 41);
    other.pools.push(more);
    for dry_run in [true, false] {
        let request = v1::ApplyRequest { dry_run, ..apply(other.clone()) };
        let status = client.apply(request).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(
            status.message(),
            "the maps would take 1105920 bytes, more than the 1097728 of map-memory-limit; 1097728 \
             once earlier tables are gone"
        );
    }
    let status = client.status(v1::StatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.generation, 1);
}

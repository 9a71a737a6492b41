//! Geometry and sizes hold their promises for any table.

use proptest::prelude::*;
use shuffle::{
    BlockSize, BufferSize, CHEAP_BLOCK_BYTES, FEW_BLOCKS, Geometry, MAX_BLOCK_BYTES, MIN_BLOCKS_IN_BUFFER, Seeks, Sizes,
};

fn page_bytes() -> impl Strategy<Value = u32> {
    prop::sample::select(&[1024, 8192, 32_768][..])
}

fn buffer_size() -> impl Strategy<Value = BufferSize> {
    prop_oneof![Just(BufferSize::Auto), given_buffer_size()]
}

fn given_buffer_size() -> impl Strategy<Value = BufferSize> {
    prop_oneof![
        (0.001..=100.0).prop_map(BufferSize::Percent),
        (1..=100_u8).prop_map(|percent| BufferSize::Percent(percent.into())),
        (0..40_u32, 1.0..2.0).prop_map(|(power, factor)| BufferSize::Bytes(((1_u64 << power) as f64 * factor) as u64)),
    ]
}

/// Block sizes that are valid for pages of `page_bytes`.
fn block_size(page_bytes: u32) -> impl Strategy<Value = BlockSize> {
    prop_oneof![Just(BlockSize::Auto), (page_bytes.into()..=20 * MAX_BLOCK_BYTES).prop_map(BlockSize::Bytes),]
}

fn seeks() -> impl Strategy<Value = Seeks> {
    prop::sample::select(&[Seeks::Cheap, Seeks::Expensive][..])
}

fn sizes(block: BlockSize, buffer: BufferSize, seeks: Seeks) -> Sizes {
    Sizes { block, buffer, seeks, pages_per_block: None }
}

fn pages() -> impl Strategy<Value = u32> {
    prop_oneof![0..300_u32, 0..100_000_u32]
}

prop_compose! {
    fn geometry_of(buffers: impl Strategy<Value = BufferSize>)
        (page_bytes in page_bytes(), buffer in buffers)
        (page_bytes in Just(page_bytes), pages in pages(), block in block_size(page_bytes), buffer in Just(buffer),
         seeks in seeks())
        -> (u32, BlockSize, BufferSize, Geometry)
    {
        (page_bytes, block, buffer, Geometry::new(pages, page_bytes, &sizes(block, buffer, seeks)).unwrap())
    }
}

fn geometry() -> impl Strategy<Value = (u32, BlockSize, BufferSize, Geometry)> {
    geometry_of(buffer_size())
}

/// Pages that the buffer may hold of a table of `pages`, and whole blocks, as few as one.
fn room(buffer: BufferSize, pages: u32, page_bytes: u32, pages_per_block: u32) -> (u32, u32) {
    let buffer_pages = match buffer {
        BufferSize::Auto => unreachable!("what is automatic has no fixed room"),
        BufferSize::Percent(percent) => (f64::from(pages) * percent / 100.0).ceil(),
        BufferSize::Bytes(bytes) => (bytes as f64 / f64::from(page_bytes)).floor(),
    };
    let buffer_pages = buffer_pages.min(pages.into()) as u32;
    let blocks = if buffer_pages == pages { pages.div_ceil(pages_per_block) } else { buffer_pages / pages_per_block };
    (buffer_pages, blocks.max(1))
}

/// How many buffers an epoch takes if each but the last holds `buffer_blocks`.
fn buffers(blocks: u32, buffer_blocks: u32) -> u32 {
    blocks.div_ceil(buffer_blocks)
}

proptest! {
    #[test]
    fn every_page_is_in_exactly_one_block((_, _, _, geometry) in geometry()) {
        let mut next = 0;
        for block in 0..geometry.blocks {
            let pages = geometry.pages_of(block);
            prop_assert_eq!(pages.start, next);
            prop_assert!(!pages.is_empty() && pages.len() <= geometry.pages_per_block as usize);
            prop_assert!(pages.len() == geometry.pages_per_block as usize || block == geometry.blocks - 1);
            next = pages.end;
        }
        prop_assert_eq!(next, geometry.pages);
        prop_assert!(geometry.pages_of(geometry.blocks).is_empty());
    }

    #[test]
    fn a_block_is_as_large_as_asked_for((page_bytes, block, _, geometry) in geometry()) {
        let bytes = u64::from(geometry.pages_per_block) * u64::from(page_bytes);
        prop_assert!(geometry.pages_per_block >= 1);
        match block {
            BlockSize::Bytes(asked) => prop_assert!(bytes <= asked && asked - bytes < page_bytes.into()),
            BlockSize::Auto => prop_assert!(bytes <= MAX_BLOCK_BYTES),
        }
    }

    #[test]
    fn as_few_buffers_as_the_room_allows_are_filled_evenly(
        (page_bytes, _, buffer, geometry) in geometry_of(given_buffer_size())
    ) {
        let Geometry { pages, pages_per_block, blocks, buffer_blocks } = geometry;
        let (buffer_pages, room) = room(buffer, pages, page_bytes, pages_per_block);
        prop_assert!(buffer_blocks >= 1 && buffer_blocks <= blocks.max(1) && buffer_blocks <= room);
        prop_assert!(buffer_blocks == 1 || pages.min(buffer_blocks * pages_per_block) <= buffer_pages);
        prop_assert_eq!(buffers(blocks, buffer_blocks), buffers(blocks, room));
        // one block less per buffer would not do
        prop_assert!(buffer_blocks == 1 || buffers(blocks, buffer_blocks - 1) > buffers(blocks, room));
    }

    /// Ten buffers, but of a table of up to 64 MB one, and each has at least 256 pages.
    #[test]
    fn where_seeks_are_expensive_an_automatic_buffer_is_a_tenth_of_all_but_small_tables(
        page_bytes in page_bytes(), pages in prop_oneof![0..3000_u32, 0..5_000_000_u32]
    ) {
        let automatic = sizes(BlockSize::Auto, BufferSize::Auto, Seeks::Expensive);
        let geometry = Geometry::new(pages, page_bytes, &automatic).unwrap();
        let (smallest, asked) = (geometry.blocks / geometry.buffers().max(1), automatic.buffer_pages(pages, page_bytes));
        prop_assert!(smallest >= (MIN_BLOCKS_IN_BUFFER - 1).min(pages), "{geometry:?}");
        let is_small = u64::from(pages) * u64::from(page_bytes) <= 64 << 20;
        if is_small {
            prop_assert!(asked == pages && geometry.buffers() <= 1, "{geometry:?}");
        } else {
            prop_assert!(pages < 2560 || geometry.buffers() == 10, "{geometry:?}");
        }
        let is_least = (MIN_BLOCKS_IN_BUFFER..2 * MIN_BLOCKS_IN_BUFFER).contains(&asked);
        prop_assert!(asked == pages || is_least || asked == pages.div_ceil(10));
        // by less than a block; the buffer of an empty table is one of them
        let asked = asked.max(1);
        prop_assert!(geometry.buffer_blocks * geometry.pages_per_block < asked + geometry.pages_per_block, "{geometry:?}");
    }

    /// As many blocks of 64 kB as mix, and no more, of any but small tables; each is filled within a block of the
    /// others.
    #[test]
    fn where_seeks_are_cheap_an_automatic_buffer_has_256_blocks_of_64_kb(
        page_bytes in page_bytes(), pages in prop_oneof![0..3000_u32, 0..5_000_000_u32]
    ) {
        let geometry = |seeks| {
            let automatic = sizes(BlockSize::Auto, BufferSize::Auto, seeks);
            Geometry::new(pages, page_bytes, &automatic).unwrap()
        };
        let found = geometry(Seeks::Cheap);
        if u64::from(pages) * u64::from(page_bytes) <= 64 << 20 {
            prop_assert_eq!(found, geometry(Seeks::Expensive));
            return Ok(());
        }
        prop_assert_eq!(u64::from(found.pages_per_block) * u64::from(page_bytes), CHEAP_BLOCK_BYTES);
        // a 4th more of a table of 4 buffers, less of larger ones
        let smallest = found.blocks / found.buffers();
        prop_assert!(smallest >= MIN_BLOCKS_IN_BUFFER, "{found:?}");
        prop_assert!(found.buffer_blocks <= MIN_BLOCKS_IN_BUFFER + MIN_BLOCKS_IN_BUFFER / found.buffers() + 1, "{found:?}");
    }

    /// Unless the table has fewer, or the buffer is smaller by its size in bytes.
    #[test]
    fn an_automatic_buffer_holds_ten_blocks_of_any_size_and_at_most_a_tenth_more_than_a_tenth(
        page_bytes in page_bytes(), pages in 0..1_000_000_u32, bytes in 32_768..=20 * MAX_BLOCK_BYTES, seeks in seeks()
    ) {
        let asked = sizes(BlockSize::Bytes(bytes), BufferSize::Auto, seeks);
        let geometry = Geometry::new(pages, page_bytes, &asked).unwrap();
        let smallest = geometry.blocks / geometry.buffers().max(1);
        prop_assert!(smallest >= geometry.blocks.min(FEW_BLOCKS), "{geometry:?}");
        let is_small = u64::from(pages) * u64::from(page_bytes) <= 64 << 20;
        let tenth = geometry.blocks.div_ceil((pages / MIN_BLOCKS_IN_BUFFER).clamp(1, 10));
        prop_assert!(is_small || geometry.buffer_blocks <= tenth.max(2 * FEW_BLOCKS - 1), "{geometry:?}");
    }

    /// At most one block per buffer is missing from the last one.
    #[test]
    fn the_last_of_ten_buffers_is_no_scrap(
        page_bytes in page_bytes(),
        pages in 1000..5_000_000_u32,
        buffer in prop::sample::select(&[BufferSize::Auto, BufferSize::Percent(10.0)][..]),
    ) {
        let geometry = Geometry::new(pages, page_bytes, &sizes(BlockSize::Auto, buffer, Seeks::Expensive)).unwrap();
        let in_last = (geometry.blocks - 1) % geometry.buffer_blocks + 1;
        prop_assert!(f64::from(in_last) >= 0.8 * f64::from(geometry.buffer_blocks), "{in_last} in {geometry:?}");
    }

    #[test]
    fn the_automatic_block_is_the_largest_that_leaves_enough_in_the_buffer(
        page_bytes in page_bytes(), pages in 0..2_000_000_u32, buffer in buffer_size(), seeks in seeks()
    ) {
        let automatic = sizes(BlockSize::Auto, buffer, seeks);
        let geometry = Geometry::new(pages, page_bytes, &automatic).unwrap();
        let chosen = geometry.pages_per_block;
        prop_assert!(chosen == 1 || geometry.buffer_blocks >= MIN_BLOCKS_IN_BUFFER, "{geometry:?}");
        let is_whole = buffer == BufferSize::Auto && u64::from(pages) * u64::from(page_bytes) <= 64 << 20;
        let most = if seeks == Seeks::Cheap && !is_whole { CHEAP_BLOCK_BYTES } else { MAX_BLOCK_BYTES };
        let maximum = (most / u64::from(page_bytes)) as u32;
        prop_assert!(chosen <= maximum, "{geometry:?}");
        for larger in chosen + 1..=maximum {
            let other = Geometry::new(pages, page_bytes, &Sizes { pages_per_block: Some(larger), ..automatic }).unwrap();
            prop_assert!(other.buffer_blocks < MIN_BLOCKS_IN_BUFFER, "{other:?} is better than {geometry:?}");
        }
    }

    #[test]
    fn a_size_that_is_written_is_read_as_the_same(
        bytes in prop_oneof![1..=u64::MAX, (0..64_u32).prop_map(|power| 1 << power)],
        percent in prop_oneof![Just(f64::MIN_POSITIVE), 0.0..=100.0_f64]
    ) {
        let block = BlockSize::Bytes(bytes);
        prop_assert_eq!(block.to_string().parse(), Ok(block));
        let buffer = BufferSize::Bytes(bytes);
        prop_assert_eq!(buffer.to_string().parse(), Ok(buffer));
        prop_assume!(percent > 0.0);
        let buffer = BufferSize::Percent(percent);
        prop_assert_eq!(buffer.to_string().parse(), Ok(buffer));
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "\\PC{0,12}", number in "[-+.0-9]{0,25}", unit in " ?(%|[kmgtKMGT]?[bB])?") {
        for text in [&text, &format!("{number}{unit}")] {
            if let Ok(BlockSize::Bytes(bytes)) = text.parse() {
                prop_assert!(bytes > 0);
            }
            match text.parse() {
                Ok(BufferSize::Percent(percent)) => prop_assert!(percent > 0.0 && percent <= 100.0),
                Ok(BufferSize::Bytes(bytes)) => prop_assert!(bytes > 0),
                Ok(BufferSize::Auto) => prop_assert!(text.trim().eq_ignore_ascii_case("auto")),
                Err(_) => {}
            }
        }
    }
}

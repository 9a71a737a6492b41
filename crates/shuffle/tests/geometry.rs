//! Geometry and sizes hold their promises for any table.

use proptest::prelude::*;
use shuffle::{BlockSize, BufferSize, Geometry, MAX_BLOCK_BYTES, MIN_BLOCKS_IN_BUFFER};

fn page_bytes() -> impl Strategy<Value = u32> {
    prop::sample::select(&[1024, 8192, 32_768][..])
}

fn buffer_size() -> impl Strategy<Value = BufferSize> {
    prop_oneof![
        (0.001..=100.0).prop_map(BufferSize::Percent),
        (1..=100_u8).prop_map(|percent| BufferSize::Percent(percent.into())),
        (0..40_u32, 1.0..2.0).prop_map(|(power, factor)| BufferSize::Bytes(((1_u64 << power) as f64 * factor) as u64)),
    ]
}

/// Block sizes that are valid for pages of `page_bytes`.
fn block_size(page_bytes: u32) -> impl Strategy<Value = BlockSize> {
    prop_oneof![Just(BlockSize::Auto), (page_bytes.into()..=MAX_BLOCK_BYTES).prop_map(BlockSize::Bytes),]
}

fn pages() -> impl Strategy<Value = u32> {
    prop_oneof![0..300_u32, 0..100_000_u32]
}

prop_compose! {
    fn geometry()(page_bytes in page_bytes())
        (page_bytes in Just(page_bytes), pages in pages(), block in block_size(page_bytes), buffer in buffer_size())
        -> (u32, BlockSize, BufferSize, Geometry)
    {
        (page_bytes, block, buffer, Geometry::new(pages, page_bytes, block, buffer).unwrap())
    }
}

/// Pages that the buffer may hold of a table of `pages`.
fn buffer_pages(buffer: BufferSize, pages: u32, page_bytes: u32) -> f64 {
    match buffer {
        BufferSize::Percent(percent) => f64::from(pages) * percent / 100.0,
        BufferSize::Bytes(bytes) => bytes as f64 / f64::from(page_bytes),
    }
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
        prop_assert!(geometry.pages_per_block >= 1 && bytes <= MAX_BLOCK_BYTES);
        if let BlockSize::Bytes(asked) = block {
            prop_assert!(bytes <= asked && asked - bytes < page_bytes.into());
        }
    }

    #[test]
    fn the_buffer_holds_all_the_blocks_that_fit_and_no_more((page_bytes, _, buffer, geometry) in geometry()) {
        let Geometry { pages, pages_per_block, blocks, buffer_blocks } = geometry;
        prop_assert!(buffer_blocks >= 1 && buffer_blocks <= blocks.max(1));
        let fits = buffer_pages(buffer, pages, page_bytes).floor().min(pages.into());
        let held = f64::from(pages.min(buffer_blocks.saturating_mul(pages_per_block)));
        prop_assert!(buffer_blocks == 1 || held <= fits, "{held} pages held, {fits} fit");
        prop_assert!(buffer_blocks == blocks || held + f64::from(pages_per_block) > fits, "{held} held, {fits} fit");
    }

    #[test]
    fn the_automatic_block_is_the_largest_that_leaves_64_in_the_buffer(
        page_bytes in page_bytes(), pages in 0..5_000_000_u32, buffer in buffer_size()
    ) {
        let geometry = Geometry::new(pages, page_bytes, BlockSize::Auto, buffer).unwrap();
        let block_pages = geometry.pages_per_block;
        prop_assert!(block_pages == 1 || geometry.buffer_blocks >= MIN_BLOCKS_IN_BUFFER, "{geometry:?}");
        let larger = u64::from(block_pages + 1) * u64::from(page_bytes);
        let fits = buffer_pages(buffer, pages, page_bytes).floor().min(pages.into());
        let in_buffer = (fits / f64::from(block_pages + 1)).floor();
        prop_assert!(larger > MAX_BLOCK_BYTES || in_buffer < MIN_BLOCKS_IN_BUFFER.into(), "{geometry:?}");
    }

    #[test]
    fn a_size_that_is_written_is_read_as_the_same(
        bytes in prop_oneof![1..=u64::MAX, 1..=MAX_BLOCK_BYTES, (0..64_u32).prop_map(|power| 1 << power)],
        percent in prop_oneof![Just(f64::MIN_POSITIVE), 0.0..=100.0_f64]
    ) {
        let block = BlockSize::Bytes(bytes.min(MAX_BLOCK_BYTES));
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
                prop_assert!((1..=MAX_BLOCK_BYTES).contains(&bytes));
            }
            match text.parse() {
                Ok(BufferSize::Percent(percent)) => prop_assert!(percent > 0.0 && percent <= 100.0),
                Ok(BufferSize::Bytes(bytes)) => prop_assert!(bytes > 0),
                Err(_) => {}
            }
        }
    }
}

//! Any rows: every bit comes back from every encoding, and the smallest is not larger than DEN.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toc::{Encoding, Rows};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[columns, kinds], rest)) = bytes.split_first_chunk() else { return };
    let columns = usize::from(columns) % 40 + 1;
    // a byte for each entry: mostly small numbers, some with bits of their own
    let mut rest = rest.iter().copied();
    let mut rows = Rows::new(columns);
    'rows: loop {
        let mut row = Vec::with_capacity(columns);
        for _ in 0..columns {
            let Some(byte) = rest.next() else { break 'rows };
            row.push(match (byte, kinds % 4) {
                (0, _) => 0.0,
                (255, 0) => {
                    let bits = std::array::from_fn(|_| rest.next().unwrap_or(0));
                    f64::from_le_bytes(bits)
                }
                (255, 1) => -0.0,
                (byte, 2) => f64::from(byte) / 100.0,
                (byte, 3) => f64::from(byte % 3),
                (byte, _) => f64::from(byte),
            });
        }
        rows.push_dense(&row).expect("as long as there are columns");
    }
    let mut den = 0;
    for encoding in Encoding::ALL {
        let bytes = toc::encode(&rows, encoding).expect("it is within the limits");
        if encoding == Encoding::Den {
            den = bytes.len();
        }
        assert!(toc::decode(&bytes).expect("it was just encoded") == rows);
    }
    let smallest = toc::encode_smallest(&rows).expect("it is within the limits");
    assert!(smallest.len() <= den);
    assert!(toc::decode(&smallest).expect("it was just encoded") == rows);
});

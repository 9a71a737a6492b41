//! Any bytes, with a checksum that is right: all that can be done with them does no harm.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if bytes.len() < 16 {
        assert!(toc::info(bytes).is_err() && toc::decode(bytes).is_err());
        return Corpus::Reject;
    }
    let mut bytes = bytes.to_vec();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..12]);
    hasher.update(&bytes[16..]);
    bytes[12..16].copy_from_slice(&hasher.finalize().to_le_bytes());

    let Ok(info) = toc::info(&bytes) else { return Corpus::Keep };
    let opened = toc::open::<f32>(&bytes);
    assert_eq!(opened.is_ok(), toc::matrix(&bytes).is_ok());
    let decoded = toc::decode(&bytes);
    assert_eq!(opened.is_ok(), decoded.is_ok());
    let (Ok(opened), Ok(rows)) = (opened, decoded) else { return Corpus::Keep };
    assert_eq!((opened.rows(), opened.columns()), (info.rows, info.columns));
    assert_eq!((rows.len(), rows.columns()), (info.rows, info.columns));
    // what follows takes time and memory as the rows and columns are many
    if info.rows > 1 << 12 || info.columns > 1 << 12 || info.entries() > 1 << 20 {
        return Corpus::Reject;
    }

    let (n, columns) = (info.rows, info.columns);
    let scratch = &mut Vec::new();
    let mut sums = vec![0.0; n];
    opened.times_vector(&vec![1.0; columns], &mut sums, scratch);
    opened.vector_times(&vec![1.0; n], &mut vec![0.0; columns], scratch);
    let mut products = vec![0.0; n * 5];
    opened.times_matrix(&vec![1.0; columns * 5], 5, &mut products, scratch);
    opened.transposed_times_matrix(&vec![1.0; n * 5], 5, &mut vec![0.0; columns * 5], scratch);
    // a matrix of ones has the sums of rows in each of its columns; DEN sums in another order
    if info.encoding == toc::Encoding::Toc {
        let same = |a: f32, b: f32| a == b || a.is_nan() && b.is_nan();
        assert!(products.chunks(5).zip(&sums).all(|(row, sum)| row.iter().all(|x| same(*x, *sum))));
    }
    if n > 0 && columns > 0 {
        opened.each_entry_of_row(n - 1, &mut |column, value| {
            let got = opened.get(n - 1, column as usize);
            assert!(got.to_bits() == value.to_bits() || got.is_nan() && value.is_nan());
        });
    }
    for encoding in toc::Encoding::ALL {
        let again = toc::encode(&rows, encoding).expect("it is within the limits");
        assert!(toc::decode(&again).expect("it was just encoded") == rows);
    }
    toc::map_values(&bytes, |x| x * 2.0).expect("it could be opened");
    Corpus::Keep
});

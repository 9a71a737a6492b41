//! Every operation of every encoding against a plain computation with all entries in f64, and bytes that no one wrote.

use crate::opened::{Opens, open_tree};
use proptest::prelude::*;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;
use tuples::PackedMatrix;

use crate::stored::{HEADER, seal};
use crate::{
    Encoding, Error, Function, Layout, Number, Operations, Rows, encode, encode_in, encode_smallest, info, open,
};

/// Rows, often repetitive, of values from few to all bit patterns.
pub(crate) fn any_rows() -> impl Strategy<Value = Rows> {
    let value = prop_oneof![
        3 => Just(0.0),
        3 => Just(1.0),
        2 => (0..4u8).prop_map(|x| f64::from(x) * 0.5),
        1 => Just(-0.0),
        1 => any::<u32>().prop_map(crate::number::widen),
        1 => any::<u64>().prop_map(f64::from_bits),
    ];
    rows_of(value)
}

/// The same of numbers that can be summed in any order without an error of rounding.
fn small_rows() -> impl Strategy<Value = Rows> {
    rows_of(prop_oneof![2 => Just(0.0), 2 => Just(1.0), 1 => (-8i8..8).prop_map(|x| f64::from(x) / 4.0)])
}

fn rows_of(value: impl Strategy<Value = f64> + 'static) -> impl Strategy<Value = Rows> {
    let pool = (0..12usize).prop_flat_map(move |columns| (Just(columns), 1..6usize));
    let value = value.boxed();
    pool.prop_flat_map(move |(columns, distinct)| {
        let row = prop::collection::vec(value.clone(), columns);
        let pool = prop::collection::vec(row, distinct);
        // rows of a small pool, here and there with a number of another
        let picks =
            prop::collection::vec((0..distinct, prop::option::of((0..distinct, any::<prop::sample::Index>()))), 0..20);
        (pool, picks).prop_map(move |(pool, picks)| {
            let mut rows = Rows::new(columns);
            for (pick, change) in picks {
                let mut row = pool[pick].clone();
                if let Some((other, place)) = change.filter(|_| columns > 0) {
                    let place = place.index(columns);
                    row[place] = pool[other][place];
                }
                rows.push_dense(&row).unwrap();
            }
            rows
        })
    })
}

fn dense(rows: &Rows) -> Vec<Vec<f64>> {
    let mut all = vec![0.0; rows.entries() as usize];
    rows.write_dense(&mut all);
    (0..rows.len()).map(|i| all[i * rows.columns()..(i + 1) * rows.columns()].to_vec()).collect()
}

/// Quarters from -4 to 4.
fn numbers<T: Number>(n: usize, seed: usize) -> Vec<T> {
    (0..n).map(|i| T::from_f64((((i + seed) * 7919 + seed * 31) % 33) as f64 / 4.0 - 4.0)).collect()
}

fn check_operations<T: Opens>(rows: &Rows, bytes: &[u8], width: usize, scratch: &mut Vec<T>) {
    check_opened(rows, &*open(bytes).unwrap(), width, scratch);
    if info(bytes).unwrap().encoding == Encoding::Toc {
        // also where it saves nothing
        check_opened(rows, &*open_tree(bytes, false), width, scratch);
        check_opened(rows, &*open_tree(bytes, true), width, scratch);
    }
}

fn check_opened<T: Opens>(rows: &Rows, opened: &dyn Operations<T>, width: usize, scratch: &mut Vec<T>) {
    let a = dense(rows);
    let (n, columns) = (rows.len(), rows.columns());
    assert_eq!((opened.rows(), opened.columns()), (n, columns));
    let exact = |x: f64| T::from_f64(x);

    let v = numbers::<T>(columns, 1);
    let mut out = numbers::<T>(n, 2);
    opened.times_vector(&v, &mut out, scratch);
    for (out, a) in out.iter().zip(&a) {
        assert_eq!(*out, exact(a.iter().zip(&v).map(|(a, v)| a * v.to_f64()).sum()));
    }

    let v = numbers::<T>(n, 3);
    let before = numbers::<T>(columns, 4);
    let mut out = before.clone();
    opened.vector_times(&v, &mut out, scratch);
    for (j, out) in out.iter().enumerate() {
        let sum: f64 = a.iter().zip(&v).map(|(a, v)| a[j] * v.to_f64()).sum();
        assert_eq!(*out, exact(before[j].to_f64() + sum));
    }

    let m = numbers::<T>(columns * width, 5);
    let mut out = numbers::<T>(n * width, 6);
    opened.times_matrix(&m, width, &mut out, scratch);
    for (at, out) in out.iter().enumerate() {
        let (i, k) = (at / width, at % width);
        assert_eq!(*out, exact((0..columns).map(|j| a[i][j] * m[j * width + k].to_f64()).sum()));
    }

    let m = numbers::<T>(n * width, 7);
    let before = numbers::<T>(columns * width, 8);
    let mut out = before.clone();
    opened.transposed_times_matrix(&m, width, &mut out, scratch);
    for (at, out) in out.iter().enumerate() {
        let (j, k) = (at / width, at % width);
        let sum: f64 = (0..n).map(|i| a[i][j] * m[i * width + k].to_f64()).sum();
        assert_eq!(*out, exact(before[at].to_f64() + sum));
    }

    for (i, a) in a.iter().enumerate() {
        let mut entries = Vec::new();
        opened.each_entry_of_row(i, &mut |column, value| entries.push((column, value)));
        let expected: Vec<(u32, T)> =
            rows.row(i).0.iter().zip(rows.row(i).1).map(|(column, value)| (*column, exact(*value))).collect();
        assert_eq!(entries, expected);
        for (j, a) in a.iter().enumerate() {
            assert_eq!(opened.get(i, j), exact(*a));
        }
    }
}

proptest! {
    #[test]
    fn every_bit_comes_back(rows in any_rows()) {
        for encoding in Encoding::ALL {
            for layout in [Layout::Bits, Layout::Bytes] {
                let bytes = encode_in(&rows, encoding, layout).unwrap();
                let info = info(&bytes).unwrap();
                prop_assert_eq!((info.encoding, info.rows, info.columns), (encoding, rows.len(), rows.columns()));
                let decoded = crate::decode(&bytes).unwrap();
                prop_assert!(decoded == rows, "{}: {:?} from {:?}", encoding, decoded, rows);
                let all = crate::decode_dense(&bytes).unwrap();
                let bits = |x: &f64| x.to_bits();
                prop_assert!(all.iter().map(bits).eq(dense(&rows).concat().iter().map(bits)));
            }
        }
    }

    #[test]
    fn products_are_those_of_all_entries(rows in small_rows(), width in prop::sample::select(vec![1usize, 3, 16, 20, 45])) {
        // the memory that is lent has something in it
        let (mut scratch32, mut scratch64) = (numbers::<f32>(50, 9), numbers::<f64>(50, 9));
        for encoding in Encoding::ALL {
            let bytes = encode(&rows, encoding).unwrap();
            check_operations(&rows, &bytes, width, &mut scratch32);
            check_operations(&rows, &bytes, width, &mut scratch64);
        }
    }

    #[test]
    fn a_matrix_is_the_same_as_its_operations(rows in small_rows()) {
        for encoding in Encoding::ALL {
            let bytes = encode(&rows, encoding).unwrap();
            let (opened, matrix) = (open::<f32>(&bytes).unwrap(), crate::matrix(&bytes).unwrap());
            prop_assert_eq!((matrix.rows(), matrix.columns()), (rows.len(), rows.columns()));
            prop_assert!(matrix.bytes() <= opened.bytes());
            let v = numbers(rows.columns(), 1);
            let mut outs = [vec![0.0; rows.len()], vec![1.0; rows.len()]];
            opened.times_vector(&v, &mut outs[0], &mut Vec::new());
            matrix.times_vector(&v, &mut outs[1], &mut Vec::new());
            prop_assert_eq!(&outs[0], &outs[1]);
            // bytes that are kept are the same matrix whenever they are opened
            let (packed, matrix, all_finite) = crate::Packed::check(&bytes).unwrap();
            prop_assert!(all_finite && packed.bytes() > bytes.len());
            for matrix in [matrix, packed.open(), packed.open()] {
                matrix.times_vector(&v, &mut outs[1], &mut Vec::new());
                prop_assert_eq!(&outs[0], &outs[1]);
            }
        }
    }

    #[test]
    fn infinite_entries_and_nans_are_found(rows in small_rows(), place: prop::sample::Index, number in 0..4usize) {
        let number = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e39][number];
        let mut all = dense(&rows).concat();
        if let Some(i) = (!all.is_empty()).then(|| place.index(all.len())) {
            all[i] = number;
            let mut with = Rows::new(rows.columns());
            all.chunks(rows.columns()).for_each(|row| with.push_dense(row).unwrap());
            for encoding in Encoding::ALL {
                prop_assert!(!crate::Packed::check(&encode(&with, encoding).unwrap()).unwrap().2, "{}", encoding);
            }
        }
    }

    #[test]
    fn the_smallest_is_the_smallest(rows in any_rows()) {
        let smallest = encode_smallest(&rows).unwrap();
        let rivals = [Encoding::Den, Encoding::Csr, Encoding::Cvi, Encoding::Dvi, Encoding::Toc];
        let sizes = rivals.map(|encoding| encode(&rows, encoding).unwrap().len());
        prop_assert_eq!(smallest.len(), *sizes.iter().min().unwrap());
        prop_assert!(crate::decode(&smallest).unwrap() == rows);
    }

    #[test]
    fn values_are_mapped_where_they_are(rows in any_rows(), to_zero: bool) {
        let f = |x: f64| if to_zero && x == 1.0 { 0.0 } else { x * 3.0 };
        let mut expected = Rows::new(rows.columns());
        for (indices, values) in rows.iter() {
            expected.push_sparse(indices, &values.iter().map(|x| f(*x)).collect::<Vec<_>>()).unwrap();
        }
        for encoding in Encoding::ALL {
            let mapped = crate::map_values(&encode(&rows, encoding).unwrap(), f).unwrap();
            prop_assert_eq!(info(&mapped).unwrap().encoding, encoding);
            prop_assert!(same_but_for_nans(&crate::decode(&mapped).unwrap(), &expected), "{}", encoding);
            // what became 0 is no entry any more
            let opened = open::<f64>(&mapped).unwrap();
            let mut entries = 0;
            (0..rows.len()).for_each(|i| opened.each_entry_of_row(i, &mut |_, _| entries += 1));
            prop_assert_eq!(entries, expected.nnz());
        }
    }

    #[test]
    fn operations_by_element_are_those_of_the_plain_matrix(
        (a, b) in (any_rows(), any_rows()),
        c in prop_oneof![Just(0.0), Just(-0.0), Just(-2.0), Just(0.1), Just(f64::INFINITY), any::<u64>().prop_map(f64::from_bits)],
    ) {
        let of_one: [&dyn Fn(f64) -> f64; 9] = [
            &|x| x * c, &|x| x + c, &|x| x - c, &|x| c - x, &|x| x / c, &|x| c / x, &|x| x.powf(c), &|x| x.powf(2.0), &|x| -x,
        ];
        let named = Function::ALL.map(|(function, _)| function);
        let of_two: [&dyn Fn(f64, f64) -> f64; 4] = [&|x, y| x + y, &|x, y| x - y, &|x, y| y - x, &|x, y| x + y + 1.0];
        let plain = dense(&a).concat();
        let other: Vec<f64> = plain.iter().enumerate().map(|(i, _)| c * (i % 3) as f64).collect();
        let same = |bytes: &[u8], expected: Vec<f64>| {
            let found = crate::decode_dense(bytes).unwrap();
            let same = |(x, y): (&f64, &f64)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
            found.len() == expected.len() && found.iter().zip(&expected).all(same)
        };
        for encoding in Encoding::ALL {
            let bytes = encode(&a, encoding).unwrap();
            for (i, f) in of_one.iter().enumerate() {
                let found = crate::map(&bytes, f).unwrap();
                prop_assert!(same(&found, plain.iter().map(|x| f(*x)).collect()), "{} {} {}", encoding, i, c);
            }
            for function in named {
                let found = crate::map(&bytes, |x| function.of(x)).unwrap();
                prop_assert!(same(&found, plain.iter().map(|x| function.of(*x)).collect()), "{} {:?}", encoding, function);
            }
            for (i, f) in of_two.iter().enumerate() {
                let expected = || plain.iter().zip(&other).map(|(x, y)| f(*x, *y)).collect();
                prop_assert!(same(&crate::zip_dense(&bytes, &other, f).unwrap(), expected()), "{} {}", encoding, i);
                if a.columns() == 0 {
                    continue;
                }
                let mut rows = Rows::new(a.columns());
                other.chunks(a.columns()).for_each(|row| rows.push_dense(row).unwrap());
                let second = encode(&rows, Encoding::ALL[i]).unwrap();
                prop_assert!(same(&crate::zip(&bytes, &second, f).unwrap(), expected()), "{} {}", encoding, i);
            }
            let fit = (a.len(), a.columns()) == (b.len(), b.columns());
            let zipped = crate::zip(&bytes, &encode(&b, encoding).unwrap(), |x, y| x + y);
            prop_assert_eq!(zipped.is_ok(), fit, "{:?}", zipped);
        }
    }

    #[test]
    fn a_number_is_added_to_zeros_too(rows in small_rows(), c in -2i8..3) {
        let c = f64::from(c);
        let sums: Vec<f64> = dense(&rows).concat().iter().map(|x| x + c).collect();
        for encoding in Encoding::ALL {
            let added = crate::map_entries(&encode(&rows, encoding).unwrap(), |x| x + c).unwrap();
            prop_assert_eq!(&crate::decode_dense(&added).unwrap(), &sums);
        }
    }

    #[test]
    fn what_was_changed_is_found(rows in any_rows(), bit in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        for encoding in Encoding::ALL {
            let bytes = encode(&rows, encoding).unwrap();
            let mut changed = bytes.clone();
            let bit = bit.index(bytes.len() * 8);
            changed[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(crate::decode(&changed).is_err());
            prop_assert!(open::<f32>(&changed).is_err());
            prop_assert!(crate::decode(&bytes[..cut.index(bytes.len())]).is_err());
        }
    }

    #[test]
    fn bytes_with_a_good_checksum_that_are_no_matrix_do_no_harm(
        rows in any_rows(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        for encoding in Encoding::ALL {
            let mut bytes = encode(&rows, encoding).unwrap();
            for (place, byte) in &changes {
                let place = place.index(bytes.len());
                // the highest bytes of rows and columns apart: what is within the limits may take long
                if !matches!(place, 6 | 7 | 10 | 11) {
                    bytes[place] = *byte;
                }
            }
            if let Some(cut) = cut {
                bytes.truncate(HEADER.max(cut.index(bytes.len())));
            }
            survive(&seal(bytes));
        }
    }
}

/// Does all that can be done with bytes: what opens computes, what does not is an error.
pub(crate) fn survive(bytes: &[u8]) {
    let decoded = crate::decode(bytes);
    let opened = open::<f32>(bytes);
    assert_eq!(decoded.is_ok(), opened.is_ok(), "{decoded:?}");
    if let (Ok(rows), Ok(opened)) = (decoded, opened) {
        let (n, columns) = (opened.rows(), opened.columns());
        // or the products themselves would need much memory
        if n > 1 << 12 || columns > 1 << 12 || rows.nnz() > 1 << 16 {
            return;
        }
        let mut scratch = Vec::new();
        opened.times_vector(&vec![1.0; columns], &mut vec![0.0; n], &mut scratch);
        opened.vector_times(&vec![1.0; n], &mut vec![0.0; columns], &mut scratch);
        opened.times_matrix(&vec![1.0; columns * 2], 2, &mut vec![0.0; n * 2], &mut scratch);
        opened.transposed_times_matrix(&vec![1.0; n * 2], 2, &mut vec![0.0; columns * 2], &mut scratch);
        if n > 0 {
            opened.each_entry_of_row(n - 1, &mut |_, _| ());
        }
        assert!(crate::decode(&encode(&rows, Encoding::Toc).unwrap()).unwrap() == rows);
        assert!(crate::map_values(bytes, |x| x).is_ok());
    }
}

fn same_but_for_nans(a: &Rows, b: &Rows) -> bool {
    let same = |x: &f64, y: &f64| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
    a.len() == b.len()
        && a.iter().zip(b.iter()).all(|((i, x), (j, y))| i == j && x.iter().zip(y).all(|(x, y)| same(x, y)))
}

#[test]
fn rows_and_columns_may_be_none() {
    for (n, columns) in [(0, 0), (0, 5), (5, 0), (3, 4)] {
        let mut rows = Rows::new(columns);
        (0..n).for_each(|_| rows.push_sparse(&[], &[]).unwrap());
        for encoding in Encoding::ALL {
            let bytes = encode(&rows, encoding).unwrap();
            assert_eq!(crate::decode(&bytes).unwrap(), rows, "{encoding}");
            check_operations::<f64>(&rows, &bytes, 3, &mut Vec::new());
        }
    }
}

#[test]
fn many_columns_are_no_matter_without_many_entries() {
    let mut rows = Rows::new(1 << 31);
    for i in 0..300u32 {
        rows.push_sparse(&[i, (1 << 31) - 1 - i / 7], &[1.0, f64::from(i % 3)]).unwrap();
    }
    for encoding in [Encoding::Csr, Encoding::Cvi, Encoding::Toc] {
        assert_eq!(crate::decode(&encode(&rows, encoding).unwrap()).unwrap(), rows);
    }
    assert_eq!(crate::decode(&encode_smallest(&rows).unwrap()).unwrap(), rows);
    for encoding in [Encoding::Den, Encoding::Dvi, Encoding::Gzip, Encoding::Snappy] {
        assert!(matches!(encode(&rows, encoding), Err(Error::TooLarge { rows: 300, .. })));
    }
}

#[test]
fn more_nodes_than_two_bytes_can_number() {
    let mut rows = Rows::new(1000);
    let row = |i: usize| (0..1000).map(|j| ((i * 31 + j * 17 + i * j) % 251) as f64).collect::<Vec<_>>();
    (0..400).for_each(|i| rows.push_dense(&row(i)).unwrap());
    let bytes = encode(&rows, Encoding::Toc).unwrap();
    assert_eq!(crate::decode(&bytes).unwrap(), rows);
    let (toc, den) = (open::<f64>(&bytes).unwrap(), open::<f64>(&encode(&rows, Encoding::Den).unwrap()).unwrap());
    let v = numbers(1000, 1);
    let mut outs = [vec![0.0; 400], vec![0.0; 400]];
    toc.times_vector(&v, &mut outs[0], &mut Vec::new());
    den.times_vector(&v, &mut outs[1], &mut Vec::new());
    assert_eq!(outs[0], outs[1]);
}

#[test]
fn few_bytes_cannot_claim_many_rows_or_columns() {
    let mut rows = Rows::new(1);
    rows.push_dense(&[1.0]).unwrap();
    for encoding in Encoding::ALL {
        let bytes = encode(&rows, encoding).unwrap();
        // 2^24 + 1 rows, 2^31 + 1 columns, and 255 * 2^16 + 1 rows, which are allowed but not there: except in DVI,
        // where entries that are all the same take no bytes
        for (place, byte) in [(7, 1), (11, 0x80), (6, 0xFF)] {
            if encoding == Encoding::Dvi && place == 6 {
                continue;
            }
            let mut bytes = bytes.clone();
            bytes[place] = byte;
            let bytes = seal(bytes);
            assert!(open::<f32>(&bytes).is_err() && crate::decode(&bytes).is_err(), "{encoding}");
        }
    }
}

/// Rows of numbers of few digits, and one that has no end.
#[test]
fn one_number_without_end_does_not_end_the_compression() {
    let row = |i: usize| {
        (0..20).map(|j| if (i + j).is_multiple_of(3) { 0.0 } else { ((i * 7 + j * 3) % 40) as f64 / 8.0 }).collect()
    };
    let mut rows: Vec<Vec<f64>> = (0..250).map(row).collect();
    let encoded = |rows: &[Vec<f64>], encoding| {
        let mut all = Rows::new(20);
        rows.iter().for_each(|row| all.push_dense(row).unwrap());
        let bytes = encode(&all, encoding).unwrap();
        assert!(crate::decode(&bytes).unwrap() == all);
        bytes
    };
    for encoding in [Encoding::Den, Encoding::Csr, Encoding::Cvi, Encoding::Dvi, Encoding::Toc] {
        let before = encoded(&rows, encoding);
        rows[100][7] = 1.0 / 3.0;
        let after = encoded(&rows, encoding);
        rows[100][7] = 0.5;
        assert!(!info(&before).unwrap().exceptions && before[0] == 1, "bytes of before are as they were");
        assert!(after.len() <= before.len() + 40, "{encoding}: {} {}", before.len(), after.len());
        // what has exceptions is of a version that older readers refuse, and no version says what it does not have
        assert!(info(&after).unwrap().exceptions && after[0] == 2, "{encoding}");
        for (version, flags) in [(1, 3), (2, 2), (2, 0)] {
            let mut changed = after.clone();
            (changed[0], changed[2]) = (version, flags);
            assert!(matches!(info(&changed), Err(Error::Malformed(_))));
        }
        let mapped = crate::map_values(&after, |x| x * 2.0).unwrap();
        assert!(crate::decode(&mapped).unwrap().row(100).1.contains(&(2.0 / 3.0)), "{encoding}");
        check_operations_of_one_number(&after);
    }
}

fn check_operations_of_one_number(bytes: &[u8]) {
    let opened = open::<f64>(bytes).unwrap();
    let mut out = vec![0.0; 250];
    let mut v = vec![0.0; 20];
    v[7] = 1.0;
    opened.times_vector(&v, &mut out, &mut Vec::new());
    assert_eq!(out[100].to_bits(), (1.0f64 / 3.0).to_bits());
}

#[test]
fn names_are_read_in_any_case() {
    for (function, name) in Function::ALL {
        assert_eq!(name.to_uppercase().parse(), Ok(function));
    }
    assert!("gamma".parse::<Function>().is_err());
    for encoding in Encoding::ALL {
        assert_eq!(encoding.to_string().to_uppercase().parse(), Ok(encoding));
    }
    assert!("lzw".parse::<Encoding>().is_err());
}

/// What the fuzzer found worth keeping (fuzz/), and each of them changed at random a few times.
#[test]
fn what_the_fuzzer_kept_does_no_harm() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/decode");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 50, "the corpus is committed");
    let mut stream = SplitMix64::seed_from_u64(6);
    let mut random = move || stream.next_u64() as usize;
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        if bytes.len() < HEADER {
            continue;
        }
        survive(&seal(bytes.clone()));
        for _ in 0..8 {
            let mut changed = bytes.clone();
            let place = random() % changed.len();
            if !matches!(place, 6 | 7 | 10 | 11) {
                changed[place] = random() as u8;
            }
            if random() % 4 == 0 {
                changed.truncate(HEADER + random() % (changed.len() - HEADER + 1));
            }
            survive(&seal(changed));
        }
    }
}

#[test]
fn every_encoding_of_a_large_mini_batch_makes_pauses() {
    thread_local! {
        static PAUSES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }
    let (rows_of, columns) = (300, 1000);
    let mut rows = Rows::new(columns);
    for i in 0..rows_of {
        let row: Vec<f64> = (0..columns).map(|j| 1.0 + ((i * 31 + j * 7) % 97) as f64 / 3.0).collect();
        rows.push_dense(&row).unwrap();
    }
    tuples::pause::set_host(|| PAUSES.set(PAUSES.get() + 1));
    for encoding in Encoding::ALL.into_iter().filter(|encoding| *encoding != Encoding::Snappy) {
        PAUSES.set(0);
        encode(&rows, encoding).unwrap();
        let expected = rows_of * columns / tuples::pause::PER_PAUSE;
        assert!(PAUSES.get() >= expected, "{encoding}: {} pauses, {expected} expected", PAUSES.get());
    }
    tuples::pause::set_host(|| ());
}

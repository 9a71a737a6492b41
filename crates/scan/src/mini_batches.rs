//! The rows of a source, gathered into mini-batches that are to be compressed.
//!
//! Features are read as doubles, so that nothing of them is lost.

use super::plan::shuffled;
use super::scan_control::ScanControl;
use super::source::Source;
use super::tuple_shuffle::TupleShuffle;
use decode::column;
use errors::limits::MAX_WEIGHTS;
use errors::{ArgumentError, DecoderError, Error, Result, RowAt, RowFault, SourceError, TocError};
use options::rows::NullRows;
use options::shuffling::Shuffling;
use pg::catalog::names::place_of;
use pg::catalog::names::quote_identifier;
use pg::catalog::relation::{has_places, may_read_places};
use pg::catalog::types::{base_type, qualified_type_name, type_name};
use pg::check_for_interrupts;
use pg::executor::custom_scan::Flags;
use pg::executor::query::{Column, Running};
use pg::snapshot::Snapshot;
use pg::tuples::row::Row;
use pg::values::array::{ArrayBuilder, ArrayFault, BuiltArray};
use pg::values::number::{NumberFault, NumberType};
use pg::values::sparse::{SparseFault, is_index_array};
use pg::values::sparse_vector::SparseVectorReader;
use pg::values::tid::row_at;
use pg::values::typed::TypedDatum;
use pg::values::vector::VectorReader;
use toc::Rows;

/// Which columns are read, and how.
pub struct BatchSpec<'a> {
    pub label: &'a str,
    pub features: &'a [String],
    pub nulls: NullRows,
    /// what sparse features call their first dimension
    pub index_base: u32,
    /// dimensions of sparse features; None if there are as many as the rows have
    pub dimensions: Option<usize>,
}

/// Where the features are, behind the label.
enum Kind {
    /// one array, or another vector
    Vector(VectorReader),
    Columns(Vec<NumberType>),
    /// arrays of indices and of values
    Sparse {
        indices: VectorReader,
        values: VectorReader,
    },
    SparseVector(SparseVectorReader),
}

impl Kind {
    /// What the columns of the features are.
    fn find(source: &Source, spec: &BatchSpec) -> Result<Kind> {
        let columns = spec.features.iter().map(|name| source.column(name)).collect::<Result<Vec<_>>>()?;
        let reader = |column: &Column| VectorReader::new(column.type_oid);
        let kind = if let [only] = columns.as_slice()
            && let Some(reader) = reader(only)
        {
            Kind::Vector(reader)
        } else if let [only] = columns.as_slice()
            && let Some(reader) = SparseVectorReader::new(only.type_oid)
        {
            Kind::SparseVector(reader)
        } else if let [indices, values] = columns.as_slice()
            && is_index_array(indices.type_oid)
            && let (Some(indices), Some(values @ VectorReader::Array(_))) = (reader(indices), reader(values))
        {
            Kind::Sparse { indices, values }
        } else if columns.is_empty() {
            return Err(SourceError::NoFeatures { hint: FEATURES.into() }.into());
        } else {
            Kind::Columns(columns.iter().map(|column| number(column)).collect::<Result<Vec<_>>>()?)
        };
        if !matches!(kind, Kind::Sparse { .. }) && spec.dimensions.is_some() {
            let reason = "applies only to sparse features: an array of indices and an array of values".to_owned();
            return Err(ArgumentError::InvalidArgument { argument: "dimensions", reason, hint: None }.into());
        }
        Ok(kind)
    }
}

/// The rows of a source, mini-batch by mini-batch.
pub struct MiniBatches {
    query: Running,
    reader: RowReader,
}

/// Reads the rows one by one, and gathers them.
struct RowReader {
    kind: Kind,
    names: Vec<String>,
    label: Column,
    nulls: NullRows,
    base: i64,
    /// columns of the matrices; of arrays, the length of the first; None until it is known
    dim: Option<usize>,
    labels: ArrayBuilder,
    rows: Option<Rows>,
    /// the row that was read last
    row: RowNumbers,
    /// do rows have their place behind their features?
    has_place: bool,
    read: u64,
    skipped: u64,
}

/// The features of a row, in buffers that the next one uses, too.
#[derive(Default)]
struct RowNumbers {
    numbers: Vec<f64>,
    indices: Vec<f64>,
    entries: Vec<(u32, f64)>,
    columns: Vec<u32>,
}

/// The epoch whose order is that of the mini-batches.
const FIRST_EPOCH: u64 = 1;

/// The largest number of dimensions of sparse features.
const MAX_DIMENSIONS: usize = MAX_WEIGHTS;

const FEATURES: &str = "Compressed features are one column of arrays, of pgvector's vectors or of bytes, an array of indices and one of values, or \
     columns of numbers.";

impl MiniBatches {
    /// Plans and starts the read of a source.
    pub fn open(source: &Source, spec: &BatchSpec, shuffling: &Shuffling) -> Result<MiniBatches> {
        let kind = Kind::find(source, spec)?;
        let label = column(source.columns(), spec.label)?.clone();
        let wanted = std::iter::once(spec.label).chain(spec.features.iter().map(String::as_str));
        let mut wanted: Vec<String> = wanted.map(quote_identifier).collect();
        let has_place = source.relation().is_some_and(|table| has_places(table) && may_read_places(table));
        if has_place {
            wanted.extend(["tableoid", "ctid"].map(str::to_owned));
        }
        let query = source.read(&wanted.join(", "))?;
        let query =
            Snapshot::with_active(|snapshot| Running::start(shuffled(query, shuffling), snapshot, 0, Flags::NONE));
        let reader = RowReader {
            dim: match &kind {
                Kind::Columns(types) => Some(types.len()),
                Kind::Sparse { .. } => spec.dimensions,
                Kind::Vector(_) | Kind::SparseVector(_) => None,
            },
            kind,
            names: spec.features.to_vec(),
            labels: ArrayBuilder::new(label.type_oid).ok_or_else(|| no_arrays(&label))?,
            label,
            nulls: spec.nulls,
            base: spec.index_base.into(),
            rows: None,
            row: RowNumbers::default(),
            has_place,
            read: 0,
            skipped: 0,
        };
        Ok(MiniBatches { query, reader })
    }

    /// Must all rows be read before it is known how many columns there are?
    pub fn must_count(&self) -> bool {
        matches!(self.reader.kind, Kind::Sparse { .. }) && self.reader.dim.is_none()
    }

    /// Reads all rows to find out how many columns there are, and starts over.
    pub fn count(&mut self) -> Result<()> {
        let MiniBatches { query, reader } = self;
        let dim = query.run_rows(|| -> Result<usize> {
            let mut dim = 0;
            while reader.next(query, false)? {
                dim = reader.row.entries.last().map_or(dim, |(index, _)| dim.max(*index as usize + 1));
            }
            Ok(dim)
        })?;
        self.reader.dim = Some(dim);
        self.query.rescan();
        self.query.top::<TupleShuffle>().with(|scan, node| scan.control(node, &ScanControl::epoch(FIRST_EPOCH)));
        (self.reader.read, self.reader.skipped) = (0, 0);
        Ok(())
    }

    /// Rows left out because of NULLs.
    pub fn skipped(&self) -> u64 {
        self.reader.skipped
    }

    pub fn label(&self) -> &Column {
        &self.reader.label
    }

    /// The next `rows` rows, or what is left of them: their labels and their features.
    /// None at the end.
    pub fn next(&mut self, rows: usize) -> Result<Option<(BuiltArray<'_>, &Rows)>> {
        let MiniBatches { query, reader } = self;
        let taken = query.run_rows(|| reader.gather(query, rows))?;
        match &reader.rows {
            Some(matrix) if taken > 0 => Ok(Some((reader.labels.take(), matrix))),
            _ => Ok(None),
        }
    }

    /// Ends the read.
    pub fn finish(self) {
        self.query.finish();
    }
}

impl RowReader {
    /// Reads the next `rows` rows, or what is left of them, in place of those that it had. Gives how many they are.
    fn gather(&mut self, query: &Running, rows: usize) -> Result<usize> {
        if let Some(rows) = &mut self.rows {
            rows.clear();
        }
        let mut taken = 0;
        while taken < rows && self.next(query, true)? {
            let dim = *self.dim.get_or_insert(self.row.numbers.len());
            let matrix = self.rows.get_or_insert_with(|| Rows::new(dim));
            let pushed = match self.kind {
                Kind::Sparse { .. } | Kind::SparseVector(_) => {
                    self.row.columns.clear();
                    allocation::extend(&mut self.row.columns, self.row.entries.iter().map(|(index, _)| *index));
                    self.row.numbers.clear();
                    allocation::extend(&mut self.row.numbers, self.row.entries.iter().map(|(_, value)| *value));
                    matrix.push_sparse(&self.row.columns, &self.row.numbers)
                }
                _ => matrix.push_dense(&self.row.numbers),
            };
            pushed.map_err(|error| TocError::NotCompressible(error.to_string()))?;
            taken += 1;
        }
        Ok(taken)
    }

    /// Reads the next row that is not left out, and appends its label to the labels if they are kept; its features are
    /// in `numbers`, or, if they are sparse, in `entries`. False at the end.
    fn next(&mut self, query: &Running, keeps_labels: bool) -> Result<bool> {
        loop {
            check_for_interrupts();
            let Some(slot) = query.row() else { return Ok(false) };
            if slot.with_row(|row| self.read(row, keeps_labels))? {
                return Ok(true);
            }
        }
    }

    /// Reads a row, and appends its label if it is kept. False if the row is left out.
    fn read(&mut self, row: Row<'_>, keeps_labels: bool) -> Result<bool> {
        self.read += 1;
        let fault = match self.features(row) {
            Ok(label) => {
                if keeps_labels {
                    self.labels.push(label);
                }
                return Ok(true);
            }
            Err(fault) => fault,
        };
        if self.nulls == NullRows::Skip && fault.is_null() {
            self.skipped += 1;
            return Ok(false);
        }
        let place = 1 + self.names.len();
        // of another source there are no such columns
        let place = if self.has_place { row.get(place).zip(row.get(place + 1)) } else { None };
        let at = place.map_or(RowAt::Read(self.read), |(table, row)| row_at(table, row));
        let fault = Box::new(fault);
        Err(if fault.is_null() {
            DecoderError::NullInRow { place: place_of(at), fault }.into()
        } else {
            fault.at(place_of(at)).into()
        })
    }

    /// Reads the features of a row, and gives its label.
    fn features<'r>(&mut self, row: Row<'r>) -> std::result::Result<TypedDatum<'r>, RowFault> {
        let label = row.get(0).ok_or(RowFault::NullLabel)?;
        self.row.numbers.clear();
        match &mut self.kind {
            Kind::Vector(reader) => {
                let array = row.get(1).ok_or(RowFault::NullFeatures)?;
                read(*reader, array, &mut self.row.numbers, &self.names[0])?;
                match (self.row.numbers.len(), self.dim) {
                    (0, _) => return Err(RowFault::Empty),
                    (found, Some(expected)) if found != expected => return Err(RowFault::Length(found, expected)),
                    _ => {}
                }
            }
            Kind::Columns(types) => {
                for (i, number) in types.iter().enumerate() {
                    let value = row.get(i + 1).ok_or_else(|| RowFault::NullFeature(self.names[i].clone()))?;
                    self.row.numbers.push(number.read(value));
                }
            }
            Kind::Sparse { indices, values } => {
                let arrays = row.get(1).zip(row.get(2)).ok_or(RowFault::NullFeatures)?;
                self.row.indices.clear();
                read(*indices, arrays.0, &mut self.row.indices, &self.names[0])?;
                read(*values, arrays.1, &mut self.row.numbers, &self.names[1])?;
                self.sparse()?;
            }
            Kind::SparseVector(reader) => {
                let reader = *reader;
                self.sparse_vector(reader, row.get(1).ok_or(RowFault::NullFeatures)?)?;
            }
        }
        let names = &self.names;
        match self.row.numbers.iter().position(|number| !number.is_finite()) {
            None => Ok(label),
            Some(i) => Err(RowFault::NotFinite(
                match (&self.kind, names.as_slice()) {
                    (Kind::Columns(_), names) => names[i].clone(),
                    (_, [.., name]) => format!("{name}[{}]", i + 1),
                    (_, []) => String::new(),
                },
                self.row.numbers[i],
            )),
        }
    }

    /// Makes entries of a sparse vector; all have as many dimensions as the first.
    fn sparse_vector(
        &mut self,
        reader: SparseVectorReader,
        vector: TypedDatum<'_>,
    ) -> std::result::Result<(), RowFault> {
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        let read = reader.with(vector, |vector| {
            let vector = vector?;
            (indices, values) = (allocation::zeros(vector.len()), allocation::zeros(vector.len()));
            vector.read(&mut indices, &mut values).map(|()| vector.dimensions())
        });
        let found = read.map_err(|fault| match fault {
            SparseFault::Value(index, NumberFault::NotFinite(value) | NumberFault::OutOfRange(value)) => {
                RowFault::NotFinite(format!("{}[{index}]", self.names[0]), value)
            }
            _ => RowFault::DamagedVector,
        })?;
        if found > MAX_DIMENSIONS {
            return Err(RowFault::TooManyDimensions { dimensions: found, limit: MAX_DIMENSIONS });
        }
        let dim = *self.dim.get_or_insert(found);
        if found != dim {
            return Err(RowFault::Length(found, dim));
        }
        self.row.entries.clear();
        allocation::extend(&mut self.row.entries, indices.into_iter().zip(values.into_iter().map(f64::from)));
        Ok(())
    }

    /// Makes entries of indices and values.
    fn sparse(&mut self) -> std::result::Result<(), RowFault> {
        let column = || self.names[0].clone();
        if self.row.indices.len() != self.row.numbers.len() {
            let lengths = [self.row.indices.len(), self.row.numbers.len()];
            return Err(RowFault::Lengths { columns: [column(), self.names[1].clone()], lengths });
        }
        let limit = self.dim.unwrap_or(MAX_DIMENSIONS) as i64;
        self.row.entries.clear();
        for (index, value) in self.row.indices.iter().zip(&self.row.numbers) {
            let (index, base) = (*index as i64, self.base);
            if index < base {
                return Err(RowFault::IndexBelow { column: column(), index, base });
            }
            if index - base >= limit {
                let (last, said) = (base + limit - 1, self.dim.is_some());
                return Err(RowFault::IndexBeyond { column: column(), index, last, said, of_model: false });
            }
            allocation::push(&mut self.row.entries, ((index - base) as u32, *value));
        }
        self.row.entries.sort_unstable_by_key(|(index, _)| *index);
        match self.row.entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(RowFault::IndexTwice { column: column(), index: i64::from(pair[0].0) + self.base }),
            None => Ok(()),
        }
    }
}

fn no_arrays(label: &Column) -> Error {
    TocError::LabelArray(qualified_type_name(label.type_oid)).into()
}

fn number(column: &Column) -> Result<NumberType> {
    NumberType::from_oid(base_type(column.type_oid)).ok_or_else(|| {
        SourceError::ColumnType {
            role: "feature",
            column: column.name.clone(),
            type_name: type_name(column.type_oid),
            hint: (FEATURES).into(),
        }
        .into()
    })
}

fn read(
    reader: VectorReader,
    array: TypedDatum<'_>,
    into: &mut Vec<f64>,
    name: &str,
) -> std::result::Result<(), RowFault> {
    reader.read_doubles(array, into).map_err(|fault| match fault {
        ArrayFault::Null(i) => RowFault::NullElement(name.to_owned(), i),
        ArrayFault::Dimensions(n) => RowFault::ColumnDimensions(name.to_owned(), n),
        ArrayFault::Length(n) => RowFault::Length(n, n),
        ArrayFault::Number(i, _) => RowFault::NullElement(name.to_owned(), i),
        ArrayFault::Damaged => RowFault::DamagedVector,
    })
}

//! A growing buffer of dense tuples in three allocations: rows, labels, order.
//!
//! Guarantees: rows are aligned to cache lines, so no row of at most 15 features ever costs two; a row slot is prepared
//! (constant 1, zero padding) exactly once, however often the buffer is refilled; the order is the identity over the rows
//! after every fill. Failure prevented: decoding that pays for clearing memory which the next line overwrites, and a
//! backend that aborts because `Vec` could not grow.

/// Floats per SIMD chunk; the stride of every row is a multiple of it.
pub const LANES: usize = 16;

/// Rows start at multiples of this many bytes, a cache line and the widest vector register.
const ALIGNMENT: usize = LANES * size_of::<f32>();

/// The memory for more tuples could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {bytes} bytes of training tuples could not be allocated")]
pub struct OutOfMemory {
    /// What the batch would have needed in all, in bytes.
    pub bytes: usize,
}

/// A buffer of dense training tuples, and the order in which to learn from them.
///
/// Row `i` has [`stride`](Batch::stride) floats: `dim` features, a constant 1 (the input of the intercept), zeros.
#[derive(Debug)]
pub struct Batch {
    dim: usize,
    stride: usize,
    len: usize,
    /// `offset` floats of slack, then every row slot that was ever used; never longer than its first allocation, because
    /// moving it would move the alignment
    floats: Vec<f32>,
    offset: usize,
    /// row slots that `floats` has memory for
    capacity: usize,
    labels: Vec<f32>,
    order: Vec<u32>,
    /// whether `order` may be something else than the identity
    reordered: bool,
}

impl Batch {
    /// An empty batch of tuples with `dim` features. Allocates nothing.
    pub fn new(dim: usize) -> Batch {
        Batch {
            dim,
            stride: stride_of(dim),
            len: 0,
            floats: Vec::new(),
            offset: 0,
            capacity: 0,
            labels: Vec::new(),
            order: Vec::new(),
            reordered: false,
        }
    }

    /// Features per tuple.
    #[inline]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Floats from one row to the next: `dim + 1`, rounded up to a multiple of [`LANES`].
    #[inline]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Tuples in the batch.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no tuple in the batch.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory that one tuple of `dim` features takes, in bytes: its row, its label and its place in the order.
    pub fn row_bytes(dim: usize) -> usize {
        stride_of(dim).saturating_mul(size_of::<f32>()).saturating_add(size_of::<f32>() + size_of::<u32>())
    }

    /// Memory that the tuples in the batch take, in bytes. The allocation may be up to twice as large, and three times
    /// while it grows: whoever knows the number of tuples calls [`reserve`](Batch::reserve) first.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.len * Self::row_bytes(self.dim)
    }

    /// Tuples that fit without another allocation.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Removes all tuples and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.labels.clear();
        self.order.clear();
        self.reordered = false;
    }

    /// Removes all tuples behind the first `len`; the order becomes the identity again.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.labels.truncate(len);
        self.order.truncate(len);
        self.restore_order();
    }

    /// Removes the tuples behind the first `first` whose label `keep` refuses; the others close up in their sequence, and
    /// the order becomes the identity again.
    pub fn retain_from(&mut self, first: usize, keep: impl Fn(f32) -> bool) {
        let first = first.min(self.len);
        let mut kept = first;
        for i in first..self.len {
            if keep(self.labels[i]) {
                let from = self.offset + i * self.stride;
                self.floats.copy_within(from..from + self.stride, self.offset + kept * self.stride);
                self.labels[kept] = self.labels[i];
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Makes room for `more` tuples behind those that are there: exactly, or twice the old room if that is more.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator refuses or the number of tuples would not fit an index of 32 bits. The batch is
    /// as it was.
    pub fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        match self.len.checked_add(more) {
            Some(needed) if needed <= self.capacity => Ok(()),
            Some(needed) => self.grow(needed),
            None => Err(OutOfMemory { bytes: usize::MAX }),
        }
    }

    /// Appends one tuple and returns its features, `dim` long.
    ///
    /// They hold unspecified values, those of an earlier tuple in the same place for instance, and must all be written.
    ///
    /// # Errors
    /// As [`reserve`](Batch::reserve).
    #[inline]
    pub fn push(&mut self, label: f32) -> Result<&mut [f32], OutOfMemory> {
        self.append(1)?;
        let last = self.len - 1;
        self.labels[last] = label;
        Ok(self.features_mut(last))
    }

    /// Appends `n` tuples at once, a heap page's worth, whose labels and features the caller fills in any order.
    ///
    /// Their labels are 0. Their features hold unspecified values and must all be written.
    ///
    /// # Errors
    /// As [`reserve`](Batch::reserve).
    #[inline]
    pub fn extend(&mut self, n: usize) -> Result<RowsMut<'_>, OutOfMemory> {
        let first = self.len;
        self.append(n)?;
        let start = self.offset + first * self.stride;
        Ok(RowsMut {
            dim: self.dim,
            stride: self.stride,
            labels: &mut self.labels[first..],
            rows: &mut self.floats[start..start + n * self.stride],
        })
    }

    /// The features of tuple `i`, `dim` long.
    ///
    /// # Panics
    /// If there is no tuple `i`; so do all methods that take an `i`.
    #[inline]
    pub fn features(&self, i: usize) -> &[f32] {
        &self.row(i)[..self.dim]
    }

    /// The features of tuple `i`, `dim` long.
    #[inline]
    pub fn features_mut(&mut self, i: usize) -> &mut [f32] {
        assert!(i < self.len, "no tuple {i} in a batch of {}", self.len);
        let start = self.offset + i * self.stride;
        &mut self.floats[start..start + self.dim]
    }

    /// The whole row of tuple `i`: features, constant 1, zeros; `stride` long.
    #[inline]
    pub fn row(&self, i: usize) -> &[f32] {
        assert!(i < self.len, "no tuple {i} in a batch of {}", self.len);
        let start = self.offset + i * self.stride;
        &self.floats[start..start + self.stride]
    }

    /// All rows, `len * stride` long; row `i` begins at `i * stride`.
    #[inline]
    pub fn rows(&self) -> &[f32] {
        &self.floats[self.offset..self.offset + self.len * self.stride]
    }

    /// All rows to be changed in place, as a [`RowsMut`] over the whole batch.
    pub fn rows_mut(&mut self) -> RowsMut<'_> {
        let end = self.offset + self.len * self.stride;
        RowsMut {
            dim: self.dim,
            stride: self.stride,
            labels: &mut self.labels,
            rows: &mut self.floats[self.offset..end],
        }
    }

    /// The label of tuple `i`.
    #[inline]
    pub fn label(&self, i: usize) -> f32 {
        self.labels[i]
    }

    /// The labels, by place, not by order.
    #[inline]
    pub fn labels(&self) -> &[f32] {
        &self.labels
    }

    /// The labels, by place, not by order.
    #[inline]
    pub fn labels_mut(&mut self) -> &mut [f32] {
        &mut self.labels
    }

    /// The order in which SGD sees the tuples: the identity after a fill, until shuffled.
    #[inline]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The order, exactly `len` long, to be permuted. It stays until the next tuple comes or [`clear`](Batch::clear).
    #[inline]
    pub fn order_mut(&mut self) -> &mut [u32] {
        self.reordered = true;
        &mut self.order
    }

    #[inline]
    fn append(&mut self, n: usize) -> Result<(), OutOfMemory> {
        if n > self.capacity - self.len {
            self.reserve(n)?;
        }
        if self.reordered {
            self.restore_order();
        }
        let len = self.len + n;
        if self.offset + len * self.stride > self.floats.len() {
            self.prepare(len);
        }
        self.labels.resize(len, 0.0);
        // grow() refuses what does not fit 32 bits
        self.order.extend(self.len as u32..len as u32);
        self.len = len;
        Ok(())
    }

    /// Writes padding and constant 1 into the row slots up to `len` that were never used.
    #[cold]
    fn prepare(&mut self, len: usize) {
        let first = self.floats.len();
        self.floats.resize(self.offset + len * self.stride, 0.0);
        for row in self.floats[first..].chunks_exact_mut(self.stride) {
            row[self.dim] = 1.0;
        }
    }

    #[cold]
    fn restore_order(&mut self) {
        for (place, i) in self.order.iter_mut().zip(0..) {
            *place = i;
        }
        self.reordered = false;
    }

    #[cold]
    fn grow(&mut self, needed: usize) -> Result<(), OutOfMemory> {
        let wanted = needed.max(self.capacity.saturating_mul(2));
        let wanted = wanted.min(needed.max(u32::MAX as usize));
        let error = OutOfMemory { bytes: wanted.saturating_mul(Self::row_bytes(self.dim)) };
        if u32::try_from(needed).is_err() {
            return Err(error);
        }
        let floats = wanted.checked_mul(self.stride).and_then(|f| f.checked_add(LANES));
        let floats = floats.ok_or(error)?;
        let more = wanted - self.len;
        self.labels.try_reserve_exact(more).map_err(|_| error)?;
        self.order.try_reserve_exact(more).map_err(|_| error)?;
        let mut moved: Vec<f32> = Vec::new();
        moved.try_reserve_exact(floats).map_err(|_| error)?;
        // align_offset may decline to answer, by usize::MAX; then rows are merely unaligned
        let offset = moved.as_ptr().align_offset(ALIGNMENT).min(LANES);
        moved.resize(offset, 0.0);
        moved.extend_from_slice(self.rows());
        self.floats = moved;
        self.offset = offset;
        self.capacity = wanted;
        Ok(())
    }
}

fn stride_of(dim: usize) -> usize {
    dim.saturating_add(1).checked_next_multiple_of(LANES).unwrap_or(usize::MAX)
}

/// Tuples that were appended together and wait for their contents.
#[derive(Debug)]
pub struct RowsMut<'a> {
    dim: usize,
    stride: usize,
    labels: &'a mut [f32],
    rows: &'a mut [f32],
}

impl RowsMut<'_> {
    /// How many tuples there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// All labels, and all rows, [`Batch::stride`] floats apart, of which the first `dim` floats each are to be written.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [f32], &mut [f32], usize) {
        (self.labels, self.rows, self.stride)
    }

    /// Label and features (`dim` long) of the `i`th of these tuples.
    ///
    /// # Panics
    /// If there is no `i`th.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> (&mut f32, &mut [f32]) {
        let start = i * self.stride;
        (&mut self.labels[i], &mut self.rows[start..start + self.dim])
    }
}

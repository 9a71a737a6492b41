//! Single pictures: decoded, resized, cropped.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use serde::{Deserialize, Serialize};

use crate::recipe::Step;

/// The longest side of a picture.
pub(crate) const MAX_SIDE: u32 = 1 << 15;

/// The most pixels of a picture.
const MAX_PIXELS: u64 = 1 << 26;

/// The most memory that is used to decode one.
const MAX_BYTES: u64 = 1 << 30;

/// How pixels between pixels are made up. All but the first look at every pixel of a picture that becomes smaller, as
/// Pillow's do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// The next one.
    Nearest,
    /// The mean of those that are there.
    Box,
    /// By their distance.
    #[default]
    Bilinear,
    /// By a cubic curve of their distance.
    Bicubic,
    /// By a windowed sine of their distance, three pixels wide.
    Lanczos,
}

impl Filter {
    fn algorithm(self) -> ResizeAlg {
        match self {
            Self::Nearest => ResizeAlg::Nearest,
            Self::Box => ResizeAlg::Convolution(FilterType::Box),
            Self::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
            Self::Bicubic => ResizeAlg::Convolution(FilterType::CatmullRom),
            Self::Lanczos => ResizeAlg::Convolution(FilterType::Lanczos3),
        }
    }
}

/// Rows of pixels, and pixels in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) height: u32,
    pub(crate) width: u32,
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by {}", self.height, self.width)
    }
}

/// The size of a picture after a step, if it had this one.
pub(crate) fn size_after(step: &Step, before: Option<Size>) -> Result<Size, String> {
    match step {
        Step::Resize { height, width, .. } => Ok(Size { height: *height, width: *width }),
        Step::Crop { top, left, height, width, .. } => {
            let size = Size { height: *height, width: *width };
            fits(size, (*top, *left), before).map(|()| size)
        }
        Step::CenterCrop { height, width, .. } => {
            let size = Size { height: *height, width: *width };
            fits(size, (0, 0), before).map(|()| size)
        }
        Step::Decode { .. } | Step::Python { .. } | Step::Drop { .. } => {
            before.ok_or_else(|| "nothing is known".into())
        }
    }
}

/// Whether a part with a corner there is within a picture.
fn fits(part: Size, (top, left): (u32, u32), of: Option<Size>) -> Result<(), String> {
    let Some(of) = of else { return Ok(()) };
    let inside = |start: u32, length: u32, of: u32| start.checked_add(length).is_some_and(|end| end <= of);
    if inside(top, part.height, of.height) && inside(left, part.width, of.width) {
        return Ok(());
    }
    let at = if (top, left) == (0, 0) { String::new() } else { format!(", from row {top} and pixel {left} on") };
    Err(format!("{part} pixels cannot be cut out of {of}{at}"))
}

/// The pixels of a picture, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) size: Size,
    pub(crate) channels: u8,
    pub(crate) pixels: Vec<u8>,
}

impl Picture {
    /// Decodes a JPEG or PNG.
    pub(crate) fn decode(bytes: &[u8], channels: u8) -> Result<Self, String> {
        // The decoders are well tested, and yet a panic in one of them should be about one picture.
        let decoded = catch_unwind(AssertUnwindSafe(|| decode(bytes)));
        let decoded = decoded.unwrap_or_else(|_| Err("the picture cannot be decoded".into()))?;
        let size = Size { height: decoded.height(), width: decoded.width() };
        let pixels = match channels {
            1 => gray(decoded),
            3 => decoded.into_rgb8().into_raw(),
            _ => decoded.into_rgba8().into_raw(),
        };
        Ok(Self { size, channels, pixels })
    }

    pub(crate) fn after(self, step: &Step, resizer: &mut Resizer) -> Result<Self, String> {
        let size = size_after(step, Some(self.size))?;
        match step {
            Step::Resize { filter, .. } => self.resize(size, *filter, resizer),
            Step::Crop { top, left, .. } => Ok(self.crop(size, *top, *left)),
            Step::CenterCrop { .. } => {
                let (top, left) = (self.size.height - size.height, self.size.width - size.width);
                // as torchvision rounds: to the even one of two
                let half = |length: u32| length / 2 + u32::from(length % 4 == 3);
                Ok(self.crop(size, half(top), half(left)))
            }
            Step::Decode { .. } | Step::Python { .. } | Step::Drop { .. } => Ok(self),
        }
    }

    fn resize(self, to: Size, filter: Filter, resizer: &mut Resizer) -> Result<Self, String> {
        if self.size == to {
            return Ok(self);
        }
        let of = match self.channels {
            1 => PixelType::U8,
            3 => PixelType::U8x3,
            _ => PixelType::U8x4,
        };
        let failed = |error: &dyn std::fmt::Display| format!("the picture cannot be resized: {error}");
        let from =
            ImageRef::new(self.size.width, self.size.height, &self.pixels, of).map_err(|error| failed(&error))?;
        let mut resized = Image::new(to.width, to.height, of);
        let options = ResizeOptions::new().resize_alg(filter.algorithm());
        resizer.resize(&from, &mut resized, &options).map_err(|error| failed(&error))?;
        Ok(Self { size: to, channels: self.channels, pixels: resized.into_vec() })
    }

    /// A part that is within it.
    fn crop(self, to: Size, top: u32, left: u32) -> Self {
        if self.size == to {
            return self;
        }
        let channels = usize::from(self.channels);
        let row = self.size.width as usize * channels;
        let (start, length) = (left as usize * channels, to.width as usize * channels);
        let rows = self.pixels.chunks_exact(row).skip(top as usize).take(to.height as usize);
        let pixels = rows.flat_map(|row| &row[start..start + length]).copied().collect();
        Self { size: to, channels: self.channels, pixels }
    }
}

fn decode(bytes: &[u8]) -> Result<DynamicImage, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the picture cannot be decoded: {error}");
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|error| failed(&error))?;
    if !matches!(reader.format(), Some(ImageFormat::Jpeg | ImageFormat::Png)) {
        return Err("there is neither a JPEG nor a PNG".into());
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|error| failed(&error))?;
    let (width, height) = decoder.dimensions();
    let size = Size { height, width };
    // before the memory for them is asked for
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(format!("the picture has {size} pixels, and may have {MAX_PIXELS}"));
    }
    if width == 0 || height == 0 {
        return Err(format!("the picture has {size} pixels"));
    }
    DynamicImage::from_decoder(decoder).map_err(|error| failed(&error))
}

/// Gray as Pillow computes it, by the weights of ITU-R 601. Those of the library are others.
fn gray(picture: DynamicImage) -> Vec<u8> {
    if matches!(
        picture,
        DynamicImage::ImageLuma8(_)
            | DynamicImage::ImageLumaA8(_)
            | DynamicImage::ImageLuma16(_)
            | DynamicImage::ImageLumaA16(_)
    ) {
        return picture.into_luma8().into_raw();
    }
    let weighted = |[red, green, blue]: [u8; 3]| {
        let sum = u32::from(red) * 19_595 + u32::from(green) * 38_470 + u32::from(blue) * 7_471;
        // The weights are 65536 together, so that this is at most 255.
        ((sum + 0x8000) >> 16) as u8
    };
    picture.into_rgb8().pixels().map(|pixel| weighted(pixel.0)).collect()
}

//! The chunked coding (RFC 9112, 7.1): in come pieces of a stream cut anywhere, out goes the body's content.
//!
//! Extensions and trailers are read and passed over. Line ends are CR LF, nothing else: a lenient reader would count
//! an answer as good that other clients refuse.

/// The most bytes of the extensions of one chunk, and of all trailers.
const MOST_ASIDE: usize = 64 * 1024;

/// The digits that a 64-bit size can have.
const MOST_DIGITS: u8 = 16;

/// Reads one chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    stage: Stage,
    /// The size being read, then the bytes left of the chunk.
    left: u64,
    /// Digits of the size read so far.
    digits: u8,
    /// Bytes of extensions or trailers read so far.
    aside: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Size,
    Extension,
    SizeEnd,
    Data,
    DataEnd,
    DataEndLf,
    Trailer,
    TrailerText,
    TrailerEnd,
    LastLf,
    Whole,
}

impl Chunked {
    /// Takes what it can of `input`, hands content to `sink`, and says how many bytes it took: all of them unless the
    /// body became whole.
    pub(super) fn feed(&mut self, input: &[u8], mut sink: impl FnMut(&[u8])) -> Result<usize, &'static str> {
        let mut at = 0;
        while at < input.len() && self.stage != Stage::Whole {
            if self.stage == Stage::Data {
                let here = input.len() - at;
                let taken = usize::try_from(self.left).map_or(here, |left| left.min(here));
                sink(&input[at..at + taken]);
                at += taken;
                self.left -= taken as u64;
                if self.left == 0 {
                    self.stage = Stage::DataEnd;
                }
            } else {
                self.stage = self.step(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// Whether the last chunk and the trailers were read.
    pub(super) fn is_whole(&self) -> bool {
        self.stage == Stage::Whole
    }

    /// Where one byte outside the content leads.
    fn step(&mut self, byte: u8) -> Result<Stage, &'static str> {
        match (self.stage, byte) {
            (Stage::Size, b'\r') if self.digits > 0 => Ok(Stage::SizeEnd),
            (Stage::Size, b';' | b' ' | b'\t') if self.digits > 0 => self.pass(Stage::Extension),
            (Stage::Size, _) => self.digit(byte),
            (Stage::Extension, b'\r') => Ok(Stage::SizeEnd),
            (Stage::Extension, b'\n') => Err("a chunk's extension holds a line feed"),
            (Stage::Extension, _) => self.pass(Stage::Extension),
            (Stage::SizeEnd, b'\n') => {
                self.aside = 0;
                Ok(if self.left == 0 { Stage::Trailer } else { Stage::Data })
            }
            (Stage::DataEnd, b'\r') => Ok(Stage::DataEndLf),
            (Stage::DataEndLf, b'\n') => {
                self.digits = 0;
                Ok(Stage::Size)
            }
            (Stage::Trailer, b'\r') => Ok(Stage::LastLf),
            (Stage::TrailerText, b'\r') => Ok(Stage::TrailerEnd),
            (Stage::Trailer | Stage::TrailerText, b'\n') => Err("a trailer ends without a carriage return"),
            (Stage::Trailer | Stage::TrailerText, _) => self.pass(Stage::TrailerText),
            (Stage::TrailerEnd, b'\n') => Ok(Stage::Trailer),
            (Stage::LastLf, b'\n') => Ok(Stage::Whole),
            _ => Err("a line of the chunked coding does not end in CR LF"),
        }
    }

    /// Takes a digit of a chunk's size.
    fn digit(&mut self, byte: u8) -> Result<Stage, &'static str> {
        let digit = char::from(byte).to_digit(16).ok_or("a chunk's size is no hexadecimal number")?;
        if self.digits == MOST_DIGITS {
            return Err("a chunk's size is beyond 64 bits");
        }
        self.left = self.left << 4 | u64::from(digit);
        self.digits += 1;
        Ok(Stage::Size)
    }

    /// Passes over a byte of an extension or a trailer.
    fn pass(&mut self, stage: Stage) -> Result<Stage, &'static str> {
        self.aside += 1;
        if self.aside > MOST_ASIDE { Err("the chunk extensions or trailers do not end") } else { Ok(stage) }
    }
}

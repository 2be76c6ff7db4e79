//! Values as they are once templates are filled in: what only a run knows is a typed [`Hole`] in a [`Text`].

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What only a run knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hole {
    /// A directory of this run.
    Place(Place),
    /// The port of the server with this id.
    Port(String),
    /// The URL of the server with this id.
    Url(String),
    /// The directory of the server with this id.
    Dir(String),
    /// Something of the server that is measured.
    Server(ServerField),
    /// The computed value of a claim.
    Claim(ClaimField),
}

/// A directory of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The folder of the scenario.
    ScenarioDir,
    /// A fresh directory of this run.
    RunDir,
    /// A fresh directory of the process in whose strings it stands.
    Dir,
}

/// Something of the server that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerField {
    /// Its id.
    Name,
    /// Its port.
    Port,
    /// Its URL.
    Url,
}

/// Something of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimField {
    /// Its value, rounded.
    Value,
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(Place::ScenarioDir) => f.write_str("{scenario_dir}"),
            Self::Place(Place::RunDir) => f.write_str("{run_dir}"),
            Self::Place(Place::Dir) => f.write_str("{dir}"),
            Self::Port(id) => write!(f, "{{{id}.port}}"),
            Self::Url(id) => write!(f, "{{{id}.url}}"),
            Self::Dir(id) => write!(f, "{{{id}.dir}}"),
            Self::Server(ServerField::Name) => f.write_str("{server.name}"),
            Self::Server(ServerField::Port) => f.write_str("{server.port}"),
            Self::Server(ServerField::Url) => f.write_str("{server.url}"),
            Self::Claim(ClaimField::Value) => f.write_str("{value}"),
        }
    }
}

/// A piece of a [`Text`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Piece {
    /// Text as it stands.
    Plain(String),
    /// What only a run knows.
    Hole(Hole),
}

/// A string of the plan: a plain string, or a list of parts where a part is known only to a run, such as
/// `["postgres://bench@127.0.0.1:", {"port": "pgbouncer"}, "/bench"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written", into = "Written")]
#[schemars(with = "Written")]
pub struct Text {
    pieces: Vec<Piece>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Written {
    Plain(String),
    Pieces(Vec<Piece>),
}

impl From<Written> for Text {
    fn from(written: Written) -> Self {
        match written {
            Written::Plain(text) => Self::from(text),
            Written::Pieces(pieces) => pieces.into_iter().fold(Self::default(), Self::with),
        }
    }
}

impl From<Text> for Written {
    fn from(text: Text) -> Self {
        match text.plain() {
            Some(plain) => Self::Plain(plain.to_owned()),
            None => Self::Pieces(text.pieces),
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        if text.is_empty() { Self::default() } else { Self { pieces: vec![Piece::Plain(text)] } }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<Hole> for Text {
    fn from(hole: Hole) -> Self {
        Self::default().with(Piece::Hole(hole))
    }
}

impl Text {
    fn with(mut self, piece: Piece) -> Self {
        self.push(piece);
        self
    }

    /// Adds a piece at the end; plain text joins plain text.
    pub fn push(&mut self, piece: Piece) {
        match (self.pieces.last_mut(), piece) {
            (_, Piece::Plain(text)) if text.is_empty() => {}
            (Some(Piece::Plain(last)), Piece::Plain(text)) => last.push_str(&text),
            (_, piece) => self.pieces.push(piece),
        }
    }

    /// Adds all of `other` at the end.
    pub fn append(&mut self, other: Self) {
        for piece in other.pieces {
            self.push(piece);
        }
    }

    /// Its pieces.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The whole of it, where it has no hole.
    #[must_use]
    pub fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Plain(text)] => Some(text),
            _ => None,
        }
    }

    /// Its holes.
    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Hole(hole) => Some(hole),
            Piece::Plain(_) => None,
        })
    }

    /// The string, its holes filled.
    pub fn fill(&self, mut value: impl FnMut(&Hole) -> String) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Plain(text) => text.clone(),
            Piece::Hole(hole) => value(hole),
        });
        pieces.collect()
    }

    /// Bytes of plain text in it.
    #[must_use]
    pub fn len(&self) -> usize {
        let plain = |piece: &Piece| if let Piece::Plain(text) = piece { text.len() } else { 0 };
        self.pieces.iter().map(plain).sum()
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// For people: holes stand in braces.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fill(ToString::to_string))
    }
}

/// A value, its templates filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A string.
    Text(Text),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A truth.
    Boolean(bool),
    /// A list.
    List(Vec<Value>),
    /// A table, in file order.
    Table(Vec<(String, Value)>),
}

impl Value {
    /// What it is, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Boolean(_) => "a boolean",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// As it stands in the midst of a string; `None` for lists and tables.
    #[must_use]
    pub fn text(&self) -> Option<Text> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Integer(number) => Some(Text::from(number.to_string())),
            Self::Float(number) => Some(Text::from(number.to_string())),
            Self::Boolean(value) => Some(Text::from(value.to_string())),
            Self::List(_) | Self::Table(_) => None,
        }
    }

    /// About how many bytes of memory it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        const NODE: usize = 160;
        match self {
            Self::Text(text) => NODE + text.len(),
            Self::Integer(_) | Self::Float(_) | Self::Boolean(_) => NODE / 4,
            Self::List(items) => NODE + items.iter().map(Self::weight).sum::<usize>(),
            Self::Table(members) => {
                NODE + members.iter().map(|(key, value)| NODE + key.len() + value.weight()).sum::<usize>()
            }
        }
    }

    /// As JSON, holes filled.
    pub fn json(&self, value: &mut dyn FnMut(&Hole) -> String) -> serde_json::Value {
        match self {
            Self::Text(text) => text.fill(|hole| value(hole)).into(),
            Self::Integer(number) => (*number).into(),
            Self::Float(number) => (*number).into(),
            Self::Boolean(truth) => (*truth).into(),
            Self::List(items) => items.iter().map(|item| item.json(value)).collect(),
            Self::Table(members) => {
                serde_json::Value::Object(members.iter().map(|(key, item)| (key.clone(), item.json(value))).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_its_parts() {
        let mut text = Text::from("http://127.0.0.1:");
        text.push(Piece::Hole(Hole::Port("db".to_owned())));
        text.append(Text::from("/x"));
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(json, r#"["http://127.0.0.1:",{"port":"db"},"/x"]"#);
        assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text);
        assert_eq!(serde_json::to_string(&Text::from("plain")).unwrap(), "\"plain\"");
        let place = Text::from(Hole::Place(Place::RunDir));
        assert_eq!(serde_json::to_string(&place).unwrap(), r#"[{"place":"run_dir"}]"#);
    }
}

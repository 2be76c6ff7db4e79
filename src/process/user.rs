//! Whom a process may run as, from the system's own files.

use std::fs;
use std::io;
use std::path::PathBuf;

/// A user of this machine with its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The number of its main group.
    pub gid: u32,
    /// All its groups.
    pub groups: Vec<u32>,
    /// Its name, what USER and LOGNAME say.
    pub name: String,
    /// Its home directory, what HOME says.
    pub home: PathBuf,
}

/// A user that is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// No such name in `/etc/passwd`.
    #[error("there is no user {0}")]
    NotFound(String),
    /// A file that lists users or groups cannot be read.
    #[error("the users of this machine cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

impl User {
    /// The user of this name, from `/etc/passwd` and `/etc/group`.
    ///
    /// # Errors
    /// When there is none, or the files cannot be read.
    pub fn find(name: &str) -> Result<User, UserError> {
        let users = fs::read_to_string("/etc/passwd")?;
        let groups = fs::read_to_string("/etc/group")?;
        find(name, &users, &groups).ok_or_else(|| UserError::NotFound(name.to_owned()))
    }
}

fn find(name: &str, users: &str, groups: &str) -> Option<User> {
    let fields = |line: &'_ str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let user = users.lines().map(fields).find(|user| user.len() >= 6 && user[0] == name)?;
    let (uid, gid) = (user[2].parse().ok()?, user[3].parse().ok()?);
    let member = |group: &Vec<String>| group.len() >= 4 && group[3].split(',').any(|member| member == name);
    let others = groups.lines().map(fields).filter(member).filter_map(|group| group[2].parse().ok());
    let mut groups = others.chain([gid]).collect::<Vec<u32>>();
    groups.sort_unstable();
    groups.dedup();
    Some(User { uid, gid, groups, name: name.to_owned(), home: user[5].clone().into() })
}

#[cfg(test)]
mod tests {
    use super::find;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/bash\npostgres:x:114:120:PostgreSQL,,,:/var/lib/postgresql:/bin/bash\n";
    const GROUPS: &str = "root:x:0:\nssl-cert:x:119:www,postgres\npostgres:x:120:\nnot:x:7:postgres2\n";

    #[test]
    fn a_user_has_its_main_group_and_those_that_list_it() {
        let user = find("postgres", USERS, GROUPS).unwrap();
        assert_eq!((user.uid, user.gid, user.groups), (114, 120, vec![119, 120]));
        assert_eq!(user.home.to_str(), Some("/var/lib/postgresql"));
        assert_eq!(find("postgre", USERS, GROUPS), None);
    }
}

//! Pages of lists: how many objects an answer has, and where the next one goes on.

use std::net::IpAddr;

use prost::Message;
use xxhash_rust::xxh64::xxh64;

use super::convert::WrongField;

/// Objects of a page whose size the caller leaves open, and most of any page.
const DEFAULT_SIZE: usize = 1_000;
const MAX_SIZE: u32 = 10_000;

/// Most bytes of the objects of a page, unless it has only one: clients take answers of 4 MiB unless they are told
/// otherwise.
const MAX_BYTES: usize = 3 << 20;

/// What lists are sorted by. A page goes on after the last key of the page before, whether or not that object still
/// exists, so a list that changes meanwhile has all objects that stay, each once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PageKey {
    /// Pool of a backend; empty for other objects.
    pool: String,
    /// Address of a backend.
    address: Option<IpAddr>,
    /// Name of another object, or a backend's address that is none.
    name: String,
}

impl PageKey {
    pub(super) fn backend(pool: &str, address: IpAddr) -> Self {
        Self { pool: pool.into(), address: Some(address), name: String::new() }
    }

    pub(super) fn new(pool: &str, name: &str) -> Self {
        let address = if pool.is_empty() { None } else { name.parse().ok() };
        let name = if address.is_some() { String::new() } else { name.into() };
        Self { pool: pool.into(), address, name }
    }

    pub(super) fn pool(&self) -> &str {
        &self.pool
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address
    }
}

/// Which page of a list is asked for.
#[derive(Debug)]
pub(super) struct PageRequest {
    size: usize,
    after: Option<PageKey>,
    /// Digest of what is asked for.
    list: u64,
}

impl PageRequest {
    /// `list` says what is listed: the call and its filters. A token of one list is refused for another.
    ///
    /// # Errors
    /// The size or the token is wrong.
    pub(super) fn new(size: u32, token: &str, list: &str) -> Result<Self, WrongField> {
        let size = match size {
            0 => DEFAULT_SIZE,
            1..=MAX_SIZE => size as usize,
            _ => {
                let cause = format!("{size} is not within 1 to {MAX_SIZE}");
                return Err(WrongField::new("page_size", cause));
            }
        };
        let list = xxh64(list.as_bytes(), 0);
        let after = match token {
            "" => None,
            token => {
                let wrong = || {
                    let cause = "is not the next_page_token of an answer to the same request";
                    WrongField::new("page_token", cause)
                };
                Some(key_of_token(token, list).ok_or_else(wrong)?)
            }
        };
        Ok(Self { size, after, list })
    }

    /// The last key of the page before.
    pub(super) fn after(&self) -> Option<&PageKey> {
        self.after.as_ref()
    }

    /// The page of a sorted list, and the token of the next one, which is empty after the last page. `head` is the size of
    /// what else the answer has, bytes.
    pub(super) fn page<L, M: Message>(
        &self,
        listed: impl Iterator<Item = (PageKey, L)>,
        message: impl Fn(L) -> M,
        head: usize,
    ) -> (Vec<M>, String) {
        let (mut page, mut bytes, mut last) = (Vec::new(), head, None);
        let rest = listed.filter(|(key, _)| self.after.as_ref().is_none_or(|after| key > after));
        for (key, object) in rest {
            if page.len() == self.size {
                return (page, self.token(last.as_ref()));
            }
            let object = message(object);
            bytes += object.encoded_len();
            if bytes > MAX_BYTES && !page.is_empty() {
                return (page, self.token(last.as_ref()));
            }
            page.push(object);
            last = Some(key);
        }
        (page, String::new())
    }

    fn token(&self, last: Option<&PageKey>) -> String {
        let Some(PageKey { pool, address, name }) = last else { return String::new() };
        let name = address.map_or_else(|| name.clone(), |address| address.to_string());
        format!("{:016x}/{pool}/{name}", self.list)
    }
}

fn key_of_token(token: &str, list: u64) -> Option<PageKey> {
    let (digest, key) = token.split_once('/')?;
    let (pool, name) = key.split_once('/')?;
    let is_same = digest.len() == 16 && u64::from_str_radix(digest, 16) == Ok(list);
    (is_same && !name.is_empty()).then(|| PageKey::new(pool, name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn pages(keys: &BTreeSet<PageKey>, size: u32, bytes: usize) -> Vec<Vec<String>> {
        let (mut pages, mut token) = (Vec::new(), String::new());
        loop {
            let request = PageRequest::new(size, &token, "a list").unwrap();
            let listed = keys.iter().map(|key| (key.clone(), key));
            let (page, next) =
                request.page(listed, |key| format!("{key:?}{}", " ".repeat(bytes)), 0);
            pages.push(page.iter().map(|text| text.trim_end().to_owned()).collect());
            token = next;
            if token.is_empty() {
                return pages;
            }
        }
    }

    fn keys() -> impl Strategy<Value = BTreeSet<PageKey>> {
        let backend = ("[a-c]", any::<IpAddr>()).prop_map(|(pool, it)| PageKey::backend(&pool, it));
        let other = "[a-z]{1,3}".prop_map(|name| PageKey::new("", &name));
        prop_oneof![
            prop::collection::btree_set(backend, 0..40),
            prop::collection::btree_set(other, 0..40)
        ]
    }

    proptest! {
        #[test]
        fn the_pages_of_a_list_are_the_list(keys in keys(), size in 1_u32..50) {
            let pages = pages(&keys, size, 0);
            let (last, full) = pages.split_last().unwrap();
            prop_assert!(full.iter().all(|page| page.len() == size as usize));
            prop_assert!(last.len() <= size as usize && (full.is_empty() || !last.is_empty()));
            let all: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
            prop_assert_eq!(pages.concat(), all);
        }

        #[test]
        fn any_token_is_refused_or_a_place_in_the_list(token in ".{1,60}") {
            prop_assert!(PageRequest::new(0, &token, "a list").is_err());
        }
    }

    #[test]
    fn a_page_has_fewer_objects_if_they_are_large() {
        let keys = ["a", "b", "c", "d", "e"].map(|name| PageKey::new("", name)).into();
        let lengths = |bytes| -> Vec<_> { pages(&keys, 0, bytes).iter().map(Vec::len).collect() };
        assert_eq!(lengths(1 << 20), [2, 2, 1]);
        assert_eq!(lengths(5 << 20), [1, 1, 1, 1, 1], "one object alone may be larger");
    }

    #[test]
    fn a_token_is_for_its_list_alone() {
        let request = PageRequest::new(1, "", "backends of web").unwrap();
        let keys = ["10.0.0.1", "10.0.0.2"].map(|it| PageKey::new("web", it));
        let (_, token) = request.page(keys.into_iter().map(|key| (key, ())), |()| String::new(), 0);
        assert!(PageRequest::new(7, &token, "backends of web").is_ok());
        let cause = "page_token: is not the next_page_token of an answer to the same request";
        for (token, list) in [(&*token, "backends of api"), (&token[1..], "backends of web")] {
            assert_eq!(PageRequest::new(1, token, list).unwrap_err().to_string(), cause);
        }
        let wrong = PageRequest::new(10_001, "", "").unwrap_err();
        assert_eq!(wrong.to_string(), "page_size: 10001 is not within 1 to 10000");
    }
}

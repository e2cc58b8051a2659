//! The servers of etcd, and which of them is asked. Each has a connection of its own: a client of several asks one at random,
//! also one whose host is gone without the end of its connections, and cannot make a request again at another one.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use etcd_client::{Client, ConnectOptions, GetOptions};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{EtcdError, client::timed};

/// How long one server is waited for before another one is asked too.
const ANSWER: Duration = Duration::from_millis(1500);

/// How long a server has to say that it is there, and the time before it is asked: together [`ANSWER`].
const PROBE: Duration = Duration::from_secs(1);
const BEFORE_PROBE: Duration = Duration::from_millis(500);

/// How often a request is made that no server gets. Servers that are restarted refuse connections for a while.
const TRIES: usize = 12;

/// Between two of them.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Clones share the connections.
#[derive(Clone)]
pub(crate) struct Servers(Arc<[Arc<Server>]>);

/// A server, and whether it answers.
pub(crate) struct Server {
    url: String,
    client: Client,
    probed: Arc<str>,
    /// It was asked in vain, and has not answered since.
    is_silent: watch::Sender<bool>,
}

impl Servers {
    /// Prepares connections. `probed` is a key that may be read.
    ///
    /// # Errors
    /// The options cannot be used, or there are no servers.
    pub(crate) async fn connect(
        urls: &[String],
        options: &ConnectOptions,
        probed: &str,
    ) -> Result<Self, EtcdError> {
        let mut servers = Vec::new();
        for url in urls {
            let client = Client::connect([url], Some(options.clone())).await?;
            let (is_silent, _) = watch::channel(false);
            let (url, probed) = (url.clone(), probed.into());
            servers.push(Arc::new(Server { url, client, probed, is_silent }));
        }
        match servers.is_empty() {
            true => Err(EtcdError::Refused("there are no servers".into())),
            false => Ok(Self(servers.into())),
        }
    }

    /// A client of each server, also of silent ones.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Client> {
        self.0.iter().map(|server| &server.client)
    }

    /// One that is not silent, as far as that is known, or any. `None`: all are among the `others`.
    fn choose(&self, others: &[Arc<Server>]) -> Option<Arc<Server>> {
        let is_other = |server: &&Arc<Server>| !others.iter().any(|it| Arc::ptr_eq(it, server));
        let all: Vec<_> = self.0.iter().filter(is_other).collect();
        let answering: Vec<_> = all.iter().filter(|it| !*it.is_silent.borrow()).collect();
        match answering.is_empty() {
            true => fastrand::choice(all).cloned(),
            false => fastrand::choice(answering).map(|it| Arc::clone(it)),
        }
    }

    /// Makes a request that may be made several times: one server that is slow, is silent or dies does not hold it up.
    ///
    /// # Errors
    /// That of the request, or [`EtcdError::NoAnswer`].
    pub(crate) async fn ask<C, T, F>(
        &self,
        client: impl Fn(&Client) -> C,
        call: impl Fn(C) -> F,
    ) -> Result<T, EtcdError>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let mut waiting: Vec<(Arc<Server>, Pin<Box<F>>)> = Vec::new();
        let asked = async {
            let mut tries = 1;
            loop {
                let others: Vec<_> = waiting.iter().map(|(server, _)| Arc::clone(server)).collect();
                let next = self.choose(&others);
                if let Some(server) = &next {
                    let answer = Box::pin(call(client(&server.client)));
                    waiting.push((Arc::clone(server), answer));
                }
                let limit = if next.is_some() { ANSWER } else { Duration::MAX };
                let Ok((server, answer)) = timeout(limit, first(&mut waiting)).await else {
                    next.iter().for_each(Server::note_silence);
                    continue;
                };
                match answer.map_err(EtcdError::from) {
                    Err(error) if error.is_without_answer() => {
                        server.note_silence();
                        if tries == TRIES {
                            return Err(error);
                        }
                        tries += 1;
                        sleep(BETWEEN_TRIES).await;
                    }
                    answer => return answer,
                }
            }
        };
        timed(asked).await
    }

    /// Makes a request that must not be made twice. It is made again only if no server got it.
    ///
    /// # Errors
    /// That of the request, or [`EtcdError::NoAnswer`], soon if the server that was asked is silent.
    pub(crate) async fn ask_once<C, T, F>(
        &self,
        client: impl Fn(&Client) -> C,
        call: impl Fn(C) -> F,
    ) -> Result<T, EtcdError>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        self.ask_one(client, call).await.map(|(_, answer)| answer)
    }

    /// The same, with the server that answered.
    ///
    /// # Errors
    /// As of [`Self::ask_once`].
    pub(crate) async fn ask_one<C, T, F>(
        &self,
        client: impl Fn(&Client) -> C,
        call: impl Fn(C) -> F,
    ) -> Result<(Arc<Server>, T), EtcdError>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let mut tries = 1;
        loop {
            let server = self.choose(&[]).ok_or(EtcdError::NoAnswer)?;
            let call = timed(call(client(&server.client)));
            let answer = tokio::select! {
                biased;
                answer = call => answer,
                () = server.is_gone(BEFORE_PROBE) => Err(EtcdError::NoAnswer),
            };
            match answer {
                Err(EtcdError::NotConnected(_)) if tries < TRIES => {
                    server.note_silence();
                    tries += 1;
                    sleep(BETWEEN_TRIES).await;
                }
                answer => return answer.map(|answer| (server, answer)),
            }
        }
    }
}

impl Server {
    /// Waits until it does not answer, although it may be slow with what it was asked.
    pub(crate) async fn is_gone(self: &Arc<Self>, probe_every: Duration) {
        loop {
            sleep(probe_every).await;
            if !self.answers().await {
                return self.note_silence();
            }
        }
    }

    /// Whether it says anything: of what it has itself, so that it needs no other server.
    async fn answers(&self) -> bool {
        let options = GetOptions::new().with_serializable().with_keys_only();
        let mut kv = self.client.kv_client();
        let asked = timeout(PROBE, kv.get(&*self.probed, Some(options))).await;
        let answer =
            asked.map_or(Err(EtcdError::NoAnswer), |answer| answer.map_err(EtcdError::from));
        !answer.is_err_and(|error| error.is_without_answer())
    }

    /// Others are asked from now on, until it answers.
    fn note_silence(self: &Arc<Self>) {
        if self.is_silent.send_replace(true) {
            return;
        }
        tracing::info!("etcd at {} does not answer", self.url);
        let server = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                sleep(PROBE).await;
                let Some(server) = server.upgrade() else { return };
                if server.answers().await {
                    tracing::info!("etcd at {} answers again", server.url);
                    server.is_silent.send_replace(false);
                    return;
                }
            }
        });
    }
}

/// The first answer, with the server that gave it. There has to be a request that waits for one.
async fn first<F: Future>(
    waiting: &mut Vec<(Arc<Server>, Pin<Box<F>>)>,
) -> (Arc<Server>, F::Output) {
    poll_fn(|context: &mut Context<'_>| {
        let ready = waiting.iter_mut().enumerate().find_map(|(place, (_, answer))| {
            match answer.as_mut().poll(context) {
                Poll::Ready(answer) => Some((place, answer)),
                Poll::Pending => None,
            }
        });
        match ready {
            Some((place, answer)) => Poll::Ready((waiting.swap_remove(place).0, answer)),
            None => Poll::Pending,
        }
    })
    .await
}
